"""Early stopping and the best checkpoint: one held-out number, watched in a run's last stage.

The number is the mean of the held-out retrieval of all pairs of languages, or the mean held-out
loss of all objectives. Two things are remembered, in every checkpoint (`HeldoutProgress`):

- the best validation: the first one with the best number; its checkpoint is never removed by
  `checkpoint.keep`;
- the validations without improvement: since the number was last better than its reference by more
  than `min_delta`; it is the new reference then. So many small improvements count, too.

A run stops at the validation at which the second reaches `patience`. Earlier stages take all of
their steps: numbers of other objectives do not compare.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Literal

import torch

from isoglot.errors import RecipeError
from isoglot.objectives.contrast.pooling import ContrastObjective
from isoglot.pretraining.monitoring.heldout_scores import Metric, heldout_value, is_better
from isoglot.pretraining.optimizers.optimizer import learning_rate
from isoglot.ranges import Range, check_ranges

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from accelerate import Accelerator

    from isoglot.objectives import Objective
    from isoglot.pretraining.checkpoints.checkpoint_state import TrainState
    from isoglot.pretraining.config import PretrainConfig, StageConfig
    from isoglot.pretraining.train_step import StageContext


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlyStoppingConfig:
    """When a run ends before its last step."""

    metric: Literal["auto", "retrieval", "loss"] = "auto"
    """The number that must improve: held-out retrieval, or the mean held-out loss; auto: retrieval
    if the last stage contrasts translations and some are held out, else the loss."""
    patience: Annotated[int, Range(1, 10**6)] = 5
    """Validations without improvement after which the run stops."""
    min_delta: Annotated[float, Range(0, 1e6)] = 0.0
    """An improvement is a change by more than this: of retrieval from 0 to 1, or of the loss."""

    def __post_init__(self) -> None:
        check_ranges(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldoutProgress:
    """The best validation so far, and the validations since an improvement."""

    metric: Metric
    best: float
    best_step: int
    """The step of the best validation, over all stages; it has a checkpoint."""
    reference: float
    """The number that the next improvement is measured from."""
    stale: int = 0
    """Validations without improvement."""

    def after(self, value: float, step: int, *, min_delta: float) -> HeldoutProgress:
        """The progress after one more validation; a number that is not finite is no improvement."""
        changed = self
        if is_better(value, self.best, self.metric):
            changed = replace(changed, best=value, best_step=step)
        if is_better(value, self.reference, self.metric, by=min_delta):
            return replace(changed, reference=value, stale=0)
        return replace(changed, stale=self.stale + 1)

    def check(self) -> None:
        """A `TypeError` if a number of it, read from a checkpoint, is none."""
        counts, values = (self.best_step, self.stale), (self.best, self.reference)
        if not all(type(one) is int and one >= 0 for one in counts):
            raise TypeError("a count is not a number from 0 on")
        if not all(type(one) in (int, float) and math.isfinite(one) for one in values):
            raise TypeError("a held-out value is not a number")

    def record(self) -> dict[str, float | int]:
        """What metrics.jsonl and trackers get beside a validation."""
        return {
            "heldout/best": self.best,
            "heldout/best_step": self.best_step,
            "heldout/stale": self.stale,
        }

    def describe(self) -> str:
        """The best number and its step, in words."""
        if self.metric == "retrieval":
            return f"held-out retrieval {100 * self.best:.1f} % (step {self.best_step})"
        return f"mean held-out loss {self.best:.3f} (step {self.best_step})"


class HeldoutWatch:
    """Follows the number over the last stage of a run, the same on all processes."""

    def __init__(
        self,
        config: PretrainConfig,
        objectives: Mapping[str, Objective],
        accelerator: Accelerator,
    ) -> None:
        self._config, self._accelerator = config, accelerator
        self._settings = config.early_stopping or EarlyStoppingConfig()
        asked = self._settings.metric
        self.metric: Metric = (
            asked if asked != "auto" else _metric_of(config.stages[-1], objectives)
        )
        """The number that is watched."""
        self.is_on = config.early_stopping is not None or config.export.checkpoint == "best"
        """Does the run look for its best validation?"""

    def check(self, available: Collection[Metric]) -> None:
        """Refuse, before training, a corpus that does not hold out what the number is of.

        Without held-out pairs, `metric: auto` is the loss.
        """
        if self._settings.metric == "auto" and "retrieval" not in available:
            self.metric = "loss"
        if not self.is_on or self.metric in available:
            return
        setting = (
            "export.checkpoint: best"
            if self._config.early_stopping is None
            else f"early_stopping (metric: {self.metric})"
        )
        what = "pairs" if self.metric == "retrieval" else "examples"
        raise RecipeError(
            f"{setting} needs held-out {what}, and the corpus has none for the last stage. Set "
            "heldout_share in the prepare file and prepare again, or leave the setting out."
        )

    def update(
        self, before: HeldoutProgress | None, scores: Mapping[str, float], *, stage: int, step: int
    ) -> HeldoutProgress | None:
        """The progress after a validation; none while there is no finite number."""
        if not self.is_on or stage != len(self._config.stages) - 1:
            return None
        value = self._agreed(heldout_value(scores, self.metric))
        if before is not None and before.metric == self.metric:
            return before.after(value, step, min_delta=self._settings.min_delta)
        if not math.isfinite(value):
            return None
        return HeldoutProgress(metric=self.metric, best=value, best_step=step, reference=value)

    def is_over(self, progress: HeldoutProgress | None) -> bool:
        """Has the number not improved for `patience` validations?"""
        if self._config.early_stopping is None or progress is None:
            return False
        return progress.metric == self.metric and progress.stale >= self._settings.patience

    def explain(self, state: TrainState, stage: StageContext, steps: int) -> str:
        """Why a run stops before the last of `steps`, and where its learning rate was."""
        progress, config = state.heldout, stage.optimizer_config
        assert progress is not None
        rate = learning_rate(config, state.step - 1, stage.steps) / config.learning_rate
        return (
            f"stopped early after step {state.total_steps:,} of {steps:,}: no improvement in "
            f"{progress.stale} validations; best: {progress.describe()}. The schedule was not at "
            f"its end: the learning rate was {100 * rate:.0f} % of optimizer.learning_rate."
        )

    def _agreed(self, value: float | None) -> float:
        """The main process's number, on all processes."""
        number = math.nan if value is None else value
        if self._accelerator.num_processes == 1:
            return number
        own = number if self._accelerator.is_main_process else 0.0
        shared = torch.tensor(own, dtype=torch.float64, device=self._accelerator.device)
        return float(self._accelerator.reduce(shared))


def _metric_of(stage: StageConfig, objectives: Mapping[str, Objective]) -> Metric:
    """Retrieval, if the stage contrasts translations; else the loss."""
    contrasts = any(
        stream.kind == "parallel" and isinstance(objectives[name], ContrastObjective)
        for stream in stage.streams.values()
        for name in stream.objectives
    )
    return "retrieval" if contrasts else "loss"
