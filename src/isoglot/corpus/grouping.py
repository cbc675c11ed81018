"""How cleaned text is divided for encoding: evenly, whatever files it came from.

A large file is cut into stretches at its marks, small files of a cell are put together; a group has
about as much text as one shard holds. The division follows from the text alone.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from isoglot.corpus.cleaned import Stretch
from isoglot.corpus.finished import key_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from isoglot.corpus.cleaned import Cleaned, CleanTask, Repeated
    from isoglot.corpus.heldout import Split

BYTES_A_TOKEN = 3
"""About so few bytes of text make a token that a group seldom needs a second shard."""


def stretches_of(
    tasks: Sequence[CleanTask],
    cleaned: Sequence[Cleaned],
    repeated: Sequence[Repeated | None],
    split: Split,
) -> Iterator[Stretch]:
    """All cleaned text of one split, in corpus order."""
    before: dict[str, int] = {}
    for task, found, left_out in zip(tasks, cleaned, repeated, strict=True):
        cell, key = task.unit.cell, key_of(task)
        for start, end in pairwise(found.marks[split]):
            yield Stretch(
                cell=cell,
                key=key,
                file=task.unit.files[0],
                text=task.path(split),
                split=split,
                start=start,
                end=end,
                documents_before=before.get(cell.folder, 0),
                repeated=left_out,
            )
        before[cell.folder] = before.get(cell.folder, 0) + found.documents


def grouped(stretches: Sequence[Stretch], size: int) -> list[tuple[Stretch, ...]]:
    """Consecutive stretches of the same cell, together, until they have about `size` bytes."""
    groups: list[list[Stretch]] = []
    held = 0
    for stretch in stretches:
        follows = groups and groups[-1][-1].cell.folder == stretch.cell.folder
        if follows and held + stretch.bytes <= size:
            groups[-1].append(stretch)
            held += stretch.bytes
        else:
            groups.append([stretch])
            held = stretch.bytes
    return [tuple(group) for group in groups]
