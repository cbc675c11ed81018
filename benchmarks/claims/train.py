"""Train the shared checkpoint and the cells, and score them."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.cells import forget_compiled
from benchmarks.claims.table import read_table

SMALL = (
    "batch.rows=8",
    "batch.micro_rows=8",
    "batch.row_length=96",
    "logging.validate_examples=4",
)
SMALL_MODEL = ("model.num_layers=2", "model.hidden_size=32", "model.num_heads=2")
"""To try the program on two cores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What all cells of a call share; goes to the worker processes."""

    work: Path
    """Folder with `corpus` and `tests`."""
    start: Path
    """The shared checkpoint."""
    fingerprint: str
    """Of its weights."""
    steps: int
    loader_workers: int
    small: bool
    settings: tuple[str, ...] = ()

    def __call__(self, name: str) -> dict[str, Any]:
        """Train and score a cell, `ARM-SEED`."""
        arm, _, seed = name.rpartition("-")
        return train_cell(self, arm, int(seed))


def train_stage0(
    work: Path, steps: int, loader_workers: int, *, small: bool
) -> tuple[Path, str, dict[str, Any]]:
    """The shared checkpoint: its folder, the fingerprint of its weights, and facts about it."""
    from benchmarks.alignment.cell import train
    from isoglot.model_results import fingerprint
    from isoglot.report.metrics import RunMetrics
    from isoglot.study.transfer import heldout_losses

    stage0 = read_table().stage0
    small_settings = (*SMALL, *SMALL_MODEL) if small else ()
    settings = [
        f"stages.0.steps={steps}",
        f"loader.num_workers={loader_workers}",
        *stage0.settings,
        *small_settings,
    ]
    place = work / "stage0"
    folder = place / "runs" / f"{stage0.recipe}-0"
    if not (folder / "model" / "config.json").is_file():
        shutil.rmtree(folder, ignore_errors=True)
    model, facts = train(place, stage0.recipe, 0, None, settings, corpus=work / "corpus")
    losses = heldout_losses(RunMetrics(folder), "mlm")
    facts["heldout_losses"] = losses[max(losses)]
    forget_compiled()
    return model, fingerprint(model), facts


def train_cell(setting: Setting, name: str, seed: int) -> dict[str, Any]:
    """Train an arm with a seed from the checkpoint, score it, and remove its run."""
    from benchmarks.alignment.cell import train
    from benchmarks.claims.scores import all_scores

    arm = read_table().arms[name]
    steps = arm.steps(setting.steps)
    settings = [
        f"stages.0.steps={steps}",
        f"loader.num_workers={setting.loader_workers}",
        *arm.settings,
        *(SMALL if setting.small else ()),
        *setting.settings,
    ]
    place = setting.work / "cells" / f"{name}-{seed}"
    shutil.rmtree(place, ignore_errors=True)
    try:
        model, facts = train(
            place, str(arm.file), seed, setting.start, settings, corpus=setting.work / "corpus"
        )
        forget_compiled()
        began = time.perf_counter()
        found = all_scores(model, setting.work / "tests", seed, small=setting.small)
    finally:
        shutil.rmtree(place, ignore_errors=True)
        forget_compiled()
    rounded = {key: round(value, 1) for key, value in facts.items() if key.endswith("seconds")}
    return {
        "arm": name,
        "seed": seed,
        "start": setting.fingerprint,
        **facts,
        **rounded,
        "score_seconds": round(time.perf_counter() - began, 1),
        **found,
    }


def train_nothing(setting: Setting, seed: int) -> dict[str, Any]:
    """The scores of the checkpoint itself."""
    from benchmarks.claims.scores import all_scores

    found = all_scores(setting.start, setting.work / "tests", seed, small=setting.small)
    forget_compiled()
    return found


def prepare_counts(setting: Setting, names: list[str]) -> None:
    """Count pairs and phrases of the corpus for the arms that need them, once for all cells."""
    from isoglot.corpus import Corpus
    from isoglot.pretraining.config import objectives_of
    from isoglot.recipe import load_recipe

    for name in dict.fromkeys(names):
        arm = read_table().arms[name]
        recipe = load_recipe(str(arm.file), list(arm.settings))
        for objective in objectives_of(recipe).values():
            objective.prepare(Corpus.open(setting.work / "corpus"))
