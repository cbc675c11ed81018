"""The time of a run from its parts, and the steps that fill a time."""

from dataclasses import replace

import pytest

from isoglot.errors import IsoglotError
from isoglot.models.config import ExportConfig
from isoglot.pretraining.checkpoints.checkpoint import CheckpointConfig
from isoglot.pretraining.config import LoggingConfig
from isoglot.pretraining.estimates.costs import (
    RunCosts,
    StageCosts,
    disk_of_run,
    occasions,
    seconds_of_run,
    steps_for_hours,
)
from isoglot.pretraining.runtime import StepSchedule
from tests.pretraining import driver

STAGE = StageCosts(
    open_seconds=1.0,
    step_seconds=0.5,
    step_tokens=100.0,
    first_validation_seconds=6.0,
    validation_seconds=4.0,
)
COSTS = RunCosts(
    build_seconds=10.0,
    compile_seconds=5.0,
    stages=(STAGE, replace(STAGE, step_seconds=2.0)),
    peak_bytes=1000,
    checkpoint_seconds=3.0,
    checkpoint_bytes=70,
    export_seconds=8.0,
    export_bytes=30,
)


def config(validate=0, save=1000, export=0):
    return driver.config(
        logging=LoggingConfig(validate_every_steps=validate, trackers=()),
        checkpoint=CheckpointConfig(every_steps=save),
        export=ExportConfig(every_steps=export),
    )


def simulated(settings, steps):
    """The clock of a run that goes through its schedule step by step."""
    clock, before = COSTS.build_seconds + COSTS.compile_seconds, 0
    if settings.export.every_steps:
        clock += COSTS.export_seconds
    for stage, number in zip(COSTS.stages, steps, strict=True):
        schedule = StepSchedule.of(settings, steps_before=before, last_step=number)
        clock, validated = clock + stage.open_seconds, 0
        for step in range(1, number + 1):
            clock += stage.step_seconds
            if schedule.validates(step):
                clock += stage.validation_seconds if validated else stage.first_validation_seconds
                validated += 1
            clock += COSTS.checkpoint_seconds if schedule.saves(step) else 0.0
            clock += COSTS.export_seconds if schedule.exports(step) else 0.0
        before += number
    return clock + COSTS.export_seconds


@pytest.mark.parametrize("steps", [(1, 1), (10, 5), (7, 13), (9, 21)])
@pytest.mark.parametrize(("validate", "save", "export"), [(0, 1000, 0), (5, 3, 4), (1, 7, 10)])
def test_the_time_is_that_of_going_through_the_schedule(steps, validate, save, export):
    settings = config(validate, save, export)
    assert seconds_of_run(settings, COSTS, steps) == pytest.approx(simulated(settings, steps))


def test_occasions_are_counted_over_the_whole_run():
    found = occasions(config(validate=5, save=4, export=6), (10, 5))
    assert found.validations == (2, 1)
    assert found.checkpoints == 5  # 4, 8, 10; 12, 15
    assert found.intermediate_exports == 3  # 0, 6, 12
    assert disk_of_run(config(save=4, export=6), COSTS, (10, 5)) == 3 * 70 + 4 * 30


@pytest.mark.parametrize("hours", [0.05, 0.1, 2.0])
def test_the_steps_of_hours_fill_them_in_the_recipes_proportions(hours):
    settings = config(validate=50, save=100)
    first, second = steps_for_hours(settings, COSTS, (300, 100), 3600 * hours)
    assert first == pytest.approx(3 * second, abs=3)
    taken = simulated(settings, (first, second))
    # one step more of both stages may bring a validation and a checkpoint of each
    assert 3600 * hours - 30 < taken <= 3600 * hours


def test_hours_that_hold_no_step_are_refused():
    with pytest.raises(IsoglotError, match=r"--hours: 20 s are left .* takes 46 s"):
        steps_for_hours(config(), COSTS, (300, 100), 20.0)


def test_the_slowest_process_decides():
    other = replace(COSTS, peak_bytes=2000, stages=(COSTS.stages[1], COSTS.stages[0]))
    found = RunCosts.highest([COSTS, other])
    assert found.peak_bytes == 2000
    assert [stage.step_seconds for stage in found.stages] == [2.0, 2.0]
    assert RunCosts.read(found.plain()) == found
