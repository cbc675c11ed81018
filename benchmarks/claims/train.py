"""Train the cells and score them."""

from __future__ import annotations

import json
import math
import re
import shutil
import time
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from benchmarks.cells import forget_compiled, loader_workers
from benchmarks.claims import translation
from benchmarks.claims.checkpoints import SMALL, SMALL_MODEL, TrainedCheckpoint, train_checkpoint
from benchmarks.claims.table import CHECKPOINT, COUNTS, DEFAULT, SCRATCH, Arm, read_table
from benchmarks.workers import training_slot
from isoglot.atomic import write_json

if TYPE_CHECKING:
    from collections.abc import Iterator

NOT_AGAIN = "transplant=null"
"""A second part continues the model of the first, which has the corpus's vocabulary."""
TRAINED = "trained"
"""A file in the folder of a cell whose model is trained and not yet scored."""
ADDED = ("steps", "tokens", "train_seconds")
"""Facts of the parts of an arm that are added."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What all cells of a call share; goes to the worker processes."""

    work: Path
    """Folder with corpora and `tests`."""
    checkpoints: dict[str, TrainedCheckpoint]
    """Those that the cells need."""
    steps: int
    stage0_steps: int
    """Of the default checkpoint."""
    loader_workers: int
    small: bool
    settings: tuple[str, ...] = ()

    def __call__(self, name: str) -> dict[str, Any]:
        """Train and score a cell, `ARM-SEED`, or prepare a checkpoint or counts."""
        if name.startswith(CHECKPOINT):
            return self._train_checkpoint(name.removeprefix(CHECKPOINT))
        if name.startswith(COUNTS):
            return prepare_counts(self, name.removeprefix(COUNTS))
        arm, _, seed = name.rpartition("-")
        return train_cell(self, arm, int(seed))

    def _train_checkpoint(self, name: str) -> dict[str, Any]:
        began = time.perf_counter()
        loaders = 0 if self.small else loader_workers(1)
        trained, facts = train_checkpoint(
            name, self.work, self.stage0_steps, loaders, small=self.small
        )
        seconds = time.perf_counter() - began
        return {"trained": trained, "facts": facts, "seconds": seconds, "machine": machine()}

    def filled(self, settings: tuple[str, ...]) -> list[str]:
        """Settings with folders in place of `<work>` and `<CHECKPOINT>`."""
        places = {"work": self.work} | {name: of.model for name, of in self.checkpoints.items()}
        found = list(settings)
        for name, place in places.items():
            found = [setting.replace(f"<{name}>", str(place)) for setting in found]
        return found

    def settings_of(self, arm: Arm, steps: int, *more: str) -> list[str]:
        """Everything that a run of an arm changes in its recipe."""
        tiny = (*SMALL, *(SMALL_MODEL if arm.start == SCRATCH else ())) if self.small else ()
        if self.small and arm.is_translation:
            tiny += translation.SMALL
        return [
            f"stages.0.steps={steps}",
            f"loader.num_workers={self.loader_workers}",
            *map(self._reduced, self.filled((*arm.settings, *more))),
            *tiny,
            *self.settings,
        ]

    def _reduced(self, setting: str) -> str:
        """A setting with a layer that the model of `--small` has, and a short queue."""
        if not self.small:
            return setting
        return re.sub(r"\bsize: \d+", "size: 32", re.sub(r"(\.layer=)\d+$", r"\g<1>1", setting))

    def about(self, arm: Arm, name: str, seed: int) -> dict[str, Any]:
        """What decides the training of a cell; another one is not continued."""
        used = {one: self.checkpoints[one].fingerprint for one in sorted(read_table().needs(name))}
        return {
            "recipe": str(arm.file),
            "settings": self.settings_of(arm, self.steps),
            "stage0_steps": self.stage0_steps,
            "seed": seed,
            "checkpoints": used,
        }


def machine() -> dict[str, str]:
    """Device, version of PyTorch, and today's date."""
    import torch

    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
    return {
        "device": device,
        "torch": torch.__version__,
        "date": datetime.now(tz=UTC).date().isoformat(),
    }


def train_cell(setting: Setting, name: str, seed: int) -> dict[str, Any]:
    """Train an arm with a seed from its start, score it, and remove its run.

    A training that was stopped, or has not been scored, is continued.
    """
    from benchmarks.claims.scores import all_scores

    arm = read_table().arms[name]
    about = setting.about(arm, name, seed)
    with cell_folder(setting.work / "cells" / f"{name}-{seed}", about) as place:
        with training_slot():
            model, facts = train_arm(setting, name, seed, place)
            (place / TRAINED).touch()
            forget_compiled()
        began = time.perf_counter()
        if arm.is_translation:
            tests = (setting.work / arm.corpus).with_name("tests")
            found = translation.all_scores(model, tests, small=setting.small)
        else:
            found = all_scores(model, setting.work / "tests", seed, small=setting.small)
            found["scores"] |= text_scores(setting, arm, model.parent)
        if "errors" not in found:
            (place / TRAINED).unlink()
    rounded = {key: round(value, 1) for key, value in facts.items() if key.endswith("seconds")}
    used: dict[str, str] = about["checkpoints"]
    return {
        "arm": name,
        "seed": seed,
        "start": used.get(arm.start, SCRATCH),
        "checkpoints": used,
        "versions": {score: read_table().scores[score].version for score in found["scores"]},
        **facts,
        **rounded,
        "score_seconds": round(time.perf_counter() - began, 1),
        **found,
    }


@contextmanager
def cell_folder(place: Path, about: dict[str, Any]) -> Iterator[Path]:
    """The folder of a cell, with what an earlier call has left of the same training.

    It is removed after the block, unless a signal has stopped the training, or scores of a trained
    model have failed: a later call then scores it.
    """
    file = place / "about.json"
    if not file.is_file() or json.loads(file.read_text(encoding="utf-8")) != about:
        shutil.rmtree(place, ignore_errors=True)
        write_json(file, about)
    is_stopped = False
    try:
        yield place
    except (SystemExit, KeyboardInterrupt):
        is_stopped = True
        raise
    finally:
        if not is_stopped and not (place / TRAINED).exists():
            shutil.rmtree(place, ignore_errors=True)
        forget_compiled()


def train_arm(setting: Setting, name: str, seed: int, place: Path) -> tuple[Path, dict[str, Any]]:
    """Train an arm, in two runs if it has a first part; gives its model and facts."""
    from benchmarks.alignment.cell import train

    arm = read_table().arms[name]
    corpus = setting.work / arm.corpus
    start = None if arm.start == SCRATCH else setting.checkpoints[arm.start].model
    steps = read_table().steps(name, setting.steps, setting.stage0_steps)
    before: dict[str, Any] = {}
    more: tuple[str, ...] = ()
    if arm.first is not None:
        first, steps = arm.first.steps(steps)
        told = setting.settings_of(arm, first, *arm.first.settings)
        start, before = train(place / "first", str(arm.file), seed, start, told, corpus=corpus)
        forget_compiled()
        more = (NOT_AGAIN,)
    told = setting.settings_of(arm, steps, *more)
    model, facts = train(place, str(arm.file), seed, start, told, corpus=corpus)
    return model, facts | {key: facts[key] + before.get(key, 0) for key in ADDED}


def text_scores(setting: Setting, arm: Arm, run: Path) -> dict[str, float]:
    """Held-out MLM perplexity of a run, exp of the mean loss of all languages.

    Empty for an arm that reads pairs alone, and for one whose MLM masks otherwise than by default:
    it is validated on other tokens.
    """
    from isoglot.objectives.mlm import MLM
    from isoglot.pretraining.config import objectives_of
    from isoglot.recipe import load_recipe
    from isoglot.report.metrics import RunMetrics
    from isoglot.study.transfer import heldout_losses

    recipe = load_recipe(str(arm.file), setting.filled(arm.settings))
    losses = heldout_losses(RunMetrics(run), "mlm")
    mlm = objectives_of(recipe).get("mlm")
    if not losses or not isinstance(mlm, MLM) or mlm.masking != MLM().masking:
        return {}
    by_language = losses[max(losses)]
    if any("-" in language for language in by_language):
        return {}
    return {"perplexity": math.exp(fmean(by_language.values()))}


def train_nothing(setting: Setting, seed: int) -> dict[str, Any]:
    """The scores of the default checkpoint itself."""
    from benchmarks.claims.scores import all_scores

    model = setting.checkpoints[DEFAULT].model
    found = all_scores(model, setting.work / "tests", seed, small=setting.small)
    forget_compiled()
    return found


def prepare_counts(setting: Setting, name: str) -> dict[str, Any]:
    """Count pairs or phrases of the corpus of an arm, once for all cells."""
    from isoglot.corpus import Corpus
    from isoglot.pretraining.config import objectives_of
    from isoglot.recipe import load_recipe

    began = time.perf_counter()
    arm = read_table().arms[name]
    recipe = load_recipe(str(arm.file), setting.filled(arm.settings))
    for objective in objectives_of(recipe).values():
        objective.prepare(Corpus.open(setting.work / arm.corpus))
    return {"seconds": time.perf_counter() - began}
