"""The guard against slower code: what counts as slower, and that a speed is a ratio of times."""

from __future__ import annotations

import json
import time

from benchmarks.guard import SHARE, STORED, faster, slower


def test_a_ratio_far_below_the_stored_one_is_told():
    stored = {"rows": 4.0, "pairs": 3.0}
    assert slower({"rows": 4.0 * SHARE, "pairs": 9.0, "new": 0.1}, stored) == []
    (said,) = slower({"rows": 3.99 * SHARE, "pairs": 3.0}, stored)
    assert said.startswith("rows: 2.79 times as fast")
    assert "4.00 before" in said


def test_the_best_times_are_compared_without_the_first_ones():
    calls = {"ours": 0, "theirs": 0}

    def sleep(name: str, seconds: float) -> None:
        calls[name] += 1
        time.sleep(seconds if calls[name] > 1 else 0.2)  # the first call compiles

    ratio = faster(lambda: sleep("ours", 0.01), lambda: sleep("theirs", 0.04))
    assert 2.5 < ratio < 5
    assert calls == {"ours": 4, "theirs": 4}


def test_the_stored_ratios_are_those_that_are_measured():
    for kind in json.loads(STORED.read_text(encoding="utf-8")).values():
        assert set(kind["ratios"]) == {"rows", "pairs", "embed", "tokenize"}
        assert kind["machine"]
