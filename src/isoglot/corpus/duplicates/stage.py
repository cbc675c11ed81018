"""The second stage: partitions searched in parallel, and what each unit has to leave out."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Literal

import numpy as np

from isoglot.corpus.cleaned import Repeated
from isoglot.corpus.disk import writing
from isoglot.corpus.duplicates.find import Search, hand_out
from isoglot.corpus.duplicates.runs import rows_of
from isoglot.corpus.heldout import SPLITS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from isoglot.corpus.cleaned import CleanTask

Kind = Literal["duplicate", "near-duplicate"]
_BYTES_A_PARTITION = 1 << 26
_FEWEST = 16


def partitions_for(size: int) -> int:
    """How many partitions serve this many bytes of files: some hundred thousand lines in each."""
    return max(_FEWEST, -(-size // _BYTES_A_PARTITION))


def searches(tasks: Sequence[CleanTask], folder: Path) -> list[Search]:
    """What there is to search when all units are cleaned."""
    config, partitions = tasks[0].duplicates, tasks[0].partitions
    kinds: dict[Kind, str] = {"duplicate": "exact"} if config.scope != "none" else {}
    if kinds and config.near:
        kinds["near-duplicate"] = "near"
    return [
        Search(
            kind=kind,
            partition=partition,
            hashes=tuple(task.hashes(name) for task in tasks),
            similarity=config.similarity,
            output=folder / f"{name}-{partition:05d}.npy",
        )
        for kind, name in kinds.items()
        for partition in range(partitions)
    ]


def repeated_of(tasks: Sequence[CleanTask], done: Sequence[Search]) -> list[Repeated | None]:
    """For each unit, the rows that repeat others; an equal line is not called a similar one."""
    exact = hand_out([s.output for s in done if s.kind == "duplicate"], len(tasks))
    near = hand_out([s.output for s in done if s.kind == "near-duplicate"], len(tasks))
    found: list[Repeated | None] = []
    for task, equal, similar in zip(tasks, exact, near, strict=True):
        places = {"duplicate": equal, "near-duplicate": np.setdiff1d(similar, equal)}
        places = {reason: rows for reason, rows in places.items() if len(rows)}
        if not places:
            found.append(None)
            continue
        path = task.folder / "repeated.npz"
        with writing(path):
            np.savez(path, allow_pickle=False, **places)
        found.append(
            Repeated(
                path=path,
                sha256=sha256(b"".join(rows.tobytes() for rows in places.values())).hexdigest(),
                rows={
                    split: {reason: len(rows_of(rows, split)) for reason, rows in places.items()}
                    for split in SPLITS
                },
            )
        )
    return found
