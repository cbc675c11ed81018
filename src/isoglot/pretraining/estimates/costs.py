"""What the parts of a run cost, and what a number of steps costs then.

`RunCosts` has what was measured (`trial.py`): seconds of a step, a validation, a checkpoint. The
time of a run is their sum over its schedule; the steps that fill a given time are found from it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from isoglot.errors import IsoglotError
from isoglot.progress import duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isoglot.pretraining.config import PretrainConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class StageCosts:
    """What one stage costs."""

    open_seconds: float
    """Opening its streams and filling its queues, before its first step."""
    step_seconds: float
    """One optimizer step, after compilation."""
    step_tokens: float
    """Tokens of one step over all processes, without padding."""
    first_validation_seconds: float
    """The first validation, which may compile."""
    validation_seconds: float
    """A later validation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCosts:
    """What a run costs by its parts, measured on this machine."""

    build_seconds: float
    """Building the model and reading its weights."""
    compile_seconds: float
    """What the first steps of the stages take longer than others, compiling included."""
    stages: tuple[StageCosts, ...]
    peak_bytes: int
    """Memory of one process: of its GPU, or of the process on a CPU."""
    checkpoint_seconds: float
    """Time that training waits for a checkpoint."""
    checkpoint_write_seconds: float = 0.0
    """Time until it is on disk besides; training waits for that at the end of a stage."""
    checkpoint_bytes: int
    export_seconds: float
    export_bytes: int
    """All exported folders together."""

    def plain(self) -> dict[str, Any]:
        """The numbers as JSON holds them."""
        return asdict(self)

    @classmethod
    def read(cls, content: dict[str, Any]) -> RunCosts:
        """The inverse of `plain`."""
        stages = tuple(StageCosts(**stage) for stage in content["stages"])
        return cls(**{**content, "stages": stages})

    @classmethod
    def highest(cls, of_processes: Sequence[RunCosts]) -> RunCosts:
        """The slowest process decides: each number is the highest of all processes'."""
        first = of_processes[0]
        stages = [
            {key: max(asdict(one.stages[n])[key] for one in of_processes) for key in asdict(stage)}
            for n, stage in enumerate(first.stages)
        ]
        plain = [one.plain() for one in of_processes]
        numbers = {key: max(one[key] for one in plain) for key in plain[0] if key != "stages"}
        return cls(**numbers, stages=tuple(StageCosts(**stage) for stage in stages))


@dataclass(frozen=True, slots=True, kw_only=True)
class Occasions:
    """How often a run validates, saves and exports besides training."""

    validations: tuple[int, ...]
    """Of each stage."""
    checkpoints: int
    intermediate_exports: int


def occasions(config: PretrainConfig, steps: Sequence[int]) -> Occasions:
    """The occasions of a run with these steps of its stages; intervals count over the whole run."""
    validations, checkpoints, before = [], 0, 0
    for number in steps:
        validations.append(_times(before, number, config.logging.validate_every_steps))
        checkpoints += _times(before, number, config.checkpoint.every_steps)
        before += number
    every = config.export.every_steps
    return Occasions(
        validations=tuple(validations),
        checkpoints=checkpoints,
        intermediate_exports=1 + before // every if every else 0,
    )


def _times(before: int, steps: int, every: int) -> int:
    """Multiples of an interval among a stage's steps, and its last step."""
    if not every:
        return 1
    multiples = (before + steps) // every - before // every
    return multiples + ((before + steps) % every != 0)


def seconds_of_run(config: PretrainConfig, costs: RunCosts, steps: Sequence[int]) -> float:
    """The time from building the model to the exported folder."""
    found = occasions(config, steps)
    total = costs.build_seconds + costs.compile_seconds
    for stage, number, validations in zip(costs.stages, steps, found.validations, strict=True):
        total += stage.open_seconds + number * stage.step_seconds + stage.first_validation_seconds
        total += (validations - 1) * stage.validation_seconds
    exports = 1 + found.intermediate_exports
    total += len(steps) * costs.checkpoint_write_seconds
    return total + found.checkpoints * costs.checkpoint_seconds + exports * costs.export_seconds


def disk_of_run(config: PretrainConfig, costs: RunCosts, steps: Sequence[int]) -> int:
    """Bytes that a finished run has on disk at most: one checkpoint more while one is written."""
    found = occasions(config, steps)
    kept = min(found.checkpoints, config.checkpoint.keep + 1)
    exports = 1 + found.intermediate_exports
    return kept * costs.checkpoint_bytes + exports * costs.export_bytes


def steps_for_hours(
    config: PretrainConfig, costs: RunCosts, proportions: Sequence[int], seconds: float
) -> tuple[int, ...]:
    """The steps of each stage, in the recipe's proportions, that fill a time.

    Args:
        config: the recipe, for its schedule of validations and checkpoints.
        costs: what was measured.
        proportions: steps of each stage as the recipe has them.
        seconds: time from building the model to the exported folder.

    Raises:
        IsoglotError: not even one step of each stage fits.
    """
    least = seconds_of_run(config, costs, [1] * len(proportions))
    if least > seconds:
        raise IsoglotError(
            f"--hours: {duration(max(seconds, 0.0))} are left for training, and one step of each "
            f"stage with building the model, validation, checkpoint and export takes "
            f"{duration(least)}. Give more hours, or validate on fewer examples "
            "(logging.validate_examples)."
        )
    low, high = 0, 10**9
    while low < high:  # the largest number of steps of all stages that fits
        middle = (low + high + 1) // 2
        steps = _in_proportion(proportions, middle)
        low, high = (
            (middle, high) if seconds_of_run(config, costs, steps) <= seconds else (low, middle - 1)
        )
    return _in_proportion(proportions, low)


def _in_proportion(proportions: Sequence[int], total: int) -> tuple[int, ...]:
    whole = sum(proportions)
    return tuple(max(1, total * one // whole) for one in proportions)
