"""What happens after which step, in a run of several stages."""

from isoglot.pretrain.calendar import Calendar


def test_moments_are_counted_over_the_run_and_the_last_step_is_one():
    calendar = Calendar(before=7, last=10, validate_every=4, save_every=100, keep_every=5)
    steps = range(1, 11)
    assert [step for step in steps if calendar.validates(step)] == [1, 5, 9, 10]
    assert [step for step in steps if calendar.saves(step)] == [10]
    assert [step for step in steps if calendar.keeps(step)] == [3, 8]
    assert [step for step in steps if calendar.looks(step)] == [1, 3, 5, 8, 9, 10]


def test_zero_is_never_but_for_the_last_step():
    calendar = Calendar(before=0, last=3, validate_every=0, save_every=5, keep_every=0)
    assert [step for step in range(1, 4) if calendar.looks(step)] == [3]
    assert not any(map(calendar.keeps, range(1, 4)))
