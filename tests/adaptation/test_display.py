"""One display over all steps: the time left of the whole, and plain lines in a log."""

from io import StringIO

import pytest
from rich.console import Console

from isoglot.adaptation.display import StepDisplay
from isoglot.progress import progress_bars

STEPS = {"before": "scores before", "grow": "growing", "train": "training", "after": "scores after"}


class Clock:
    """A time that is set."""

    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def log_display(clock):
    text = StringIO()
    return StepDisplay(Console(file=text, width=120), STEPS, clock=clock), text


def test_the_time_left_is_of_the_step_that_runs_and_of_those_to_come(clock):
    display, _ = log_display(clock)
    display.expect("train", 100.0)
    display.begin("before")
    clock.now = 20.0
    display.finish("before")
    display.expect("after", 20.0)
    display.begin("train")
    assert display.seconds_left() == 120
    clock.now = 50.0
    assert display.seconds_left() == 90, "as expected, until the step's own speed is known"
    display.advance(0.5)
    assert display.seconds_left() == pytest.approx(30 + 20), "30 s for the first half"
    assert display.share_done() == pytest.approx((120 - 50 - 20) / 120)
    display.finish("train")
    display.begin("after")
    display.finish("after")
    assert display.seconds_left() is None
    assert display.share_done() == 1


def test_a_log_has_a_line_when_a_step_begins_and_one_a_minute(clock):
    display, text = log_display(clock)
    display.drop("grow")
    display.expect("train", 600.0)
    with display:
        display.begin("before")
        display.say("  sw: 3.2 bits per character")
        display.finish("before")
        display.begin("train")
        for second in range(0, 181, 10):
            clock.now = float(second)
            display.advance(second / 600)
    assert text.getvalue().splitlines() == [
        "[1/3] scores before ... (10 min left of the whole)",
        "  sw: 3.2 bits per character",
        "[2/3] training ... (10 min left of the whole)",
        "training: 10 % (9 min left of the whole)",
        "training: 20 % (8 min left of the whole)",
        "training: 30 % (7 min left of the whole)",
    ]


def test_on_a_terminal_the_bar_stays_while_a_step_shows_its_own(clock):
    text = StringIO()
    console = Console(file=text, force_terminal=True, width=100)
    with StepDisplay(console, STEPS, clock=clock) as display:
        display.expect("train", 90.0)
        display.begin("train")
        with progress_bars(console, counts=True) as bars:
            task = bars.add_task("adapt", total=4)
            bars.update(task, completed=2)
            display.advance(0.5)
            display.say("held out: [mlm] perplexity 3")
    shown = text.getvalue()
    assert "[3/4] training" in shown
    assert "left of the whole" in shown
    assert "held out: [mlm] perplexity 3" in shown, "no markup is read into it"
    assert "2/4" in shown
