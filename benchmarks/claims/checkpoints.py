"""The checkpoints that arms start from: their training, and the check that they are the same ones.

A checkpoint is trained with deterministic kernels, so that machines of one kind get the same
weights. Results record the fingerprints, as `about.checkpoints` and in every cell; files of the
first version have one, of the default checkpoint, as `about.fingerprint`, `about.stage0` and the
`start` of a cell.
"""

from __future__ import annotations

import shutil
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.cells import forget_compiled
from benchmarks.claims.table import DEFAULT, read_table

if TYPE_CHECKING:
    from collections.abc import Iterable

SMALL = (
    "batch.rows=8",
    "batch.micro_rows=8",
    "batch.row_length=96",
    "logging.validate_examples=4",
)
SMALL_MODEL = ("model.num_layers=2", "model.hidden_size=32", "model.num_heads=2")
"""To try the program on two cores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedCheckpoint:
    """A checkpoint on disk."""

    model: Path
    fingerprint: str
    """Of its weights."""


def train_checkpoint(
    name: str, work: Path, default_steps: int, loader_workers: int, *, small: bool
) -> tuple[TrainedCheckpoint, dict[str, Any]]:
    """A checkpoint, trained unless it is there, and facts about it."""
    from benchmarks.alignment.cell import train
    from isoglot.model_results import fingerprint
    from isoglot.report.metrics import RunMetrics
    from isoglot.study.transfer import heldout_losses

    checkpoint = read_table().checkpoints[name]
    corpus = work / checkpoint.corpus
    if not (corpus / "manifest.json").is_file():
        raise SystemExit(
            f"{corpus} is not there. Prepare it (benchmarks/claims/README.md), or name its archive "
            "with --archives."
        )
    steps = checkpoint.steps(default_steps)
    settings = [
        f"stages.0.steps={steps}",
        f"loader.num_workers={loader_workers}",
        *checkpoint.settings,
        *((*SMALL, *SMALL_MODEL) if small else ()),
    ]
    place = work / "checkpoints" / f"{name}-{steps}{'-small' if small else ''}"
    folder = place / "runs" / f"{checkpoint.file.stem}-0"
    if not (folder / "model" / "config.json").is_file():
        shutil.rmtree(folder, ignore_errors=True)
    model, facts = train(place, str(checkpoint.file), 0, None, settings, corpus=corpus)
    losses = heldout_losses(RunMetrics(folder), "mlm")
    facts["heldout_losses"] = losses[max(losses)]
    forget_compiled()
    return TrainedCheckpoint(model=model, fingerprint=fingerprint(model)), facts


def checkpoints_in(about: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Checkpoint -> its fingerprint and facts, as results tell them in either version."""
    found: dict[str, dict[str, Any]] = {}
    if "fingerprint" in about:
        found[DEFAULT] = {"fingerprint": about["fingerprint"], **about.get("stage0", {})}
    found |= about.get("checkpoints", {})
    return found


def fingerprints_of(cell: dict[str, Any]) -> dict[str, str]:
    """Checkpoint -> fingerprint, of those that a cell started from or learned from."""
    found: dict[str, str] = cell.get("checkpoints", {DEFAULT: cell["start"]})
    return found


def known_fingerprints(
    about: dict[str, Any], cells: Iterable[dict[str, Any]]
) -> dict[str, set[str]]:
    """Checkpoint -> its fingerprints in earlier results."""
    found: dict[str, set[str]] = defaultdict(set)
    for name, one in checkpoints_in(about).items():
        found[name].add(one["fingerprint"])
    for cell in cells:
        for name, weights in fingerprints_of(cell).items():
            found[name].add(weights)
    return found
