from __future__ import annotations

from isoglot.fetching import ProgressLines


def test_a_line_every_fifteen_seconds_with_the_time_left():
    lines: list[str] = []
    times = iter([0.0, 0.0, 5.0, 20.0, 21.0, 40.0])
    progress = ProgressLines(lines.append, lambda: next(times))
    for done in (0, 5_000_000, 20_000_000, 21_000_000):
        progress("a.zip", done, 100_000_000)
    progress("b.zip", 3_000_000, None)
    assert lines == ["a.zip: 20 MB of 100 MB, 1 min 20 s left\n", "b.zip: 3 MB\n"]
