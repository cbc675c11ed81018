"""What happens after which step, in a run of several stages."""

from dataclasses import replace

from isoglot.pretraining.runtime import StepSchedule, make_accelerator
from isoglot.recipe import load_recipe


def test_moments_are_counted_over_the_run_and_the_last_step_is_one():
    schedule = StepSchedule(
        steps_before=7, last_step=10, validate_every=4, save_every=100, export_every=5
    )
    steps = range(1, 11)
    assert [step for step in steps if schedule.validates(step)] == [1, 5, 9, 10]
    assert [step for step in steps if schedule.saves(step)] == [10]
    assert [step for step in steps if schedule.exports(step)] == [3, 8]
    assert [step for step in steps if schedule.needs_sync(step)] == [1, 3, 5, 8, 9, 10]


def test_zero_is_never_but_for_the_last_step():
    schedule = StepSchedule(
        steps_before=0, last_step=3, validate_every=0, save_every=5, export_every=0
    )
    assert [step for step in range(1, 4) if schedule.needs_sync(step)] == [3]
    assert not any(map(schedule.exports, range(1, 4)))


def test_runs_of_one_python_process_may_differ_in_precision(tmp_path):
    recipe = load_recipe("tiny", ["logging.trackers=[]"])
    found = [
        make_accelerator(replace(recipe, precision=precision), tmp_path).mixed_precision
        for precision in ("float32", "bf16", "float32")
    ]
    assert found == ["no", "bf16", "no"]
