"""What a log gets of a long command."""

from __future__ import annotations

import io

from rich.console import Console

from isoglot.cli.console import StageProgress


def test_a_log_gets_a_line_every_fifteen_seconds():
    out, now = io.StringIO(), 0.0
    name = "xnli zero-shot from en seed 0, a name that is longer than a line of eighty characters"
    with StageProgress(Console(file=out, width=40), clock=lambda: now) as progress:
        for step in range(1, 41):
            now += 1.0
            progress(name, step, 40)
        progress("another", 1, None)
        now += 20
        progress("another", 1500, None)
    assert out.getvalue().splitlines() == [
        f"{name} ...",
        f"{name}: 16 of 40 (40 %), 1/s, 24 s left",
        f"{name}: 31 of 40 (78 %), 1/s, 9 s left",
        "another ...",
        "another: 1,500, 75/s",
    ]


def test_a_log_gets_a_line_while_a_task_gives_no_news():
    out, now = io.StringIO(), 0.0
    with StageProgress(Console(file=out), clock=lambda: now) as progress:
        progress.remind()
        progress("clean", 0, 64_000_000)
        for seconds in (10.0, 31.0, 45.0):
            now = seconds
            progress.remind()
        progress("clean", 16_000_000, 64_000_000)
        now = 80.0
        progress.remind()
        progress("clean", 64_000_000, 64_000_000)
        now = 200.0
        progress.remind()
    assert out.getvalue().splitlines() == [
        "clean ...",
        "clean: 0 of 64 M (0 %), 31 s so far",
        "clean: 16 M of 64 M (25 %), 200,000/s, 4 min left",
    ]


def test_a_terminal_gets_a_bar():
    out = io.StringIO()
    with StageProgress(Console(file=out, force_terminal=True)) as progress:
        progress("stage", 1, 2)
    assert "50 %" in out.getvalue()
    assert "..." not in out.getvalue()


def test_sizes_of_downloads():
    out, now = io.StringIO(), 0.0
    with StageProgress(Console(file=out), clock=lambda: now, size=True) as progress:
        progress("a.zip", 0, 3 * 10**9)
        now = 20.0
        progress("a.zip", 10**9, 3 * 10**9)
    assert out.getvalue().splitlines()[1] == "a.zip: 1,000 of 3,000 MB (33 %), 50 MB/s, 40 s left"
    out = io.StringIO()
    with StageProgress(Console(file=out, force_terminal=True, width=120), size=True) as progress:
        progress("a.zip", 10**9, 3 * 10**9)
    assert "1.0/3.0 GB" in out.getvalue()


def test_a_stage_that_begins_again_has_its_own_time():
    """A study scores the same task for each of its runs, with training between."""
    now = 0.0
    out = io.StringIO()
    with StageProgress(Console(file=out), clock=lambda: now) as progress:
        for done in range(3):
            progress("tatoeba", done, 2)
        now = 1000.0
        progress("tatoeba", 0, 2)
        now = 1020.0
        progress("tatoeba", 1, 2)
    assert out.getvalue().count("tatoeba ...") == 2
    assert "1 of 2 (50 %), 0.05/s, 20 s left" in out.getvalue()
