"""Train arms: the time of a step alone on the GPU, and one cell with its held-out losses.

Equal time: before any cell, each arm takes a few steps alone on the GPU. A cell then takes as many
steps as fit the seconds that all arms have, so its schedules know their number in advance, and
cells that run side by side count by the seconds they would take alone.
"""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.cells import forget_compiled
from benchmarks.levers.arms import parts_of, settings_of, steps_in, timed_as

if TYPE_CHECKING:
    from isoglot.pretraining.train_step import StepResult

RECIPE = Path(__file__).with_name("baseline.yaml")
POINTS = 10
"""Validations along a training."""
_SKIPPED, _TIMED = 15, 40
"""Steps that are not timed (compilation, the first batches), and steps that are."""


class _EnoughError(Exception):
    """Ends a training that is only timed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What all cells of a call share; goes to the worker processes."""

    work: Path
    """Folder with the corpus."""
    gpu_seconds: float
    """Training time of every cell, as if it were alone on the GPU."""
    timing: dict[str, dict[str, float]]
    """Arm -> seconds of a step, alone: `full`, and with the first rows of a warm-up `small`."""
    loader_workers: int
    small: bool

    def steps(self, arm: str) -> int:
        """Optimizer steps of an arm."""
        timed = self.timing[timed_as(arm)]
        return steps_in(self.gpu_seconds, timed["full"], timed.get("small"))

    def __call__(self, name: str) -> dict[str, Any]:
        """Train a cell, `ARM-SEED`."""
        arm, _, seed = name.rpartition("-")
        return train_cell(self, arm, int(seed))


def _pretrain(setting: Setting, folder: Path, settings: list[str], on_step: Any) -> Any:
    from rich.console import Console

    from isoglot.corpus import Corpus
    from isoglot.pretraining.run import pretrain
    from isoglot.recipe import dump, load_recipe

    told = [f"loader.num_workers={setting.loader_workers}", *settings]
    recipe = load_recipe(str(RECIPE), told)
    return pretrain(
        recipe,
        Corpus.open(setting.work / "corpus"),
        folder,
        name=recipe.name,
        recipe_text=dump(recipe),
        console=Console(stderr=True),
        on_step=on_step,
    )


def time_steps(setting: Setting, arm: str) -> dict[str, float]:
    """Seconds of an arm's step, alone on the GPU: mean over 40 steps."""
    skipped, timed = (2, 3) if setting.small else (_SKIPPED, _TIMED)
    warm = "batch-warmup" in parts_of(arm)
    ends: list[float] = []

    def note(_: StepResult) -> None:
        ends.append(time.perf_counter())
        if len(ends) == (2 if warm else 1) * (skipped + timed):
            raise _EnoughError

    folder = setting.work / "runs" / f"time-{arm}"
    shutil.rmtree(folder, ignore_errors=True)
    settings = settings_of(arm, 1000, skipped + timed, small=setting.small)
    try:
        _pretrain(setting, folder, settings, note)
    except _EnoughError:
        pass
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        forget_compiled()
    found = {"full": (ends[-1] - ends[-1 - timed]) / timed}
    if warm:
        found["small"] = (ends[skipped + timed - 1] - ends[skipped - 1]) / timed
    return found


def train_cell(setting: Setting, arm: str, seed: int) -> dict[str, Any]:
    """Train an arm with a seed; gives its held-out losses along the training."""
    import torch

    from isoglot.report.metrics import RunMetrics
    from isoglot.study.transfer import heldout_losses

    steps = 4 if setting.small else setting.steps(arm)
    every = max(1, steps // POINTS)
    folder = setting.work / "runs" / f"{arm}-{seed}"
    shutil.rmtree(folder, ignore_errors=True)
    settings = [
        f"seed={seed}",
        f"logging.validate_every_steps={every}",
        *settings_of(arm, steps, small=setting.small),
    ]
    tokens: list[int] = []
    began = time.perf_counter()
    done = _pretrain(setting, folder, settings, lambda step: tokens.append(step.num_tokens))
    seconds = time.perf_counter() - began
    losses = heldout_losses(RunMetrics(folder), "mlm")
    points = [
        {"step": step, "tokens": sum(tokens[:step]), "losses": by_language}
        for step, by_language in sorted((int(step), found) for step, found in losses.items())
    ]
    shutil.rmtree(folder, ignore_errors=True)
    forget_compiled()
    timed = setting.timing[timed_as(arm)]
    return {
        "arm": arm,
        "seed": seed,
        "gpu_seconds": setting.gpu_seconds,
        "step_seconds_alone": timed,
        "steps": done.total_steps,
        "tokens": done.tokens,
        "train_seconds": round(seconds, 1),
        "points": points,
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
        "torch": torch.__version__,
    }
