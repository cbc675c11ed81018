"""Cells in worker processes: results, failures, deadlines, resuming."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

import pytest
from benchmarks.cells import Deadline, ResultsFile, Workers, run_cells


def work(name: str) -> dict[str, Any]:
    """A cell: its name's length, or a failure."""
    sys.stdout.write("seen in the log\n")
    if "dies" in name:
        os._exit(1)
    if "bad" in name:
        raise ValueError("a bad cell")
    return {"length": len(name)}


def run(tmp_path: Any, names: list[str], seconds: float = 300.0, **settings: Any) -> Any:
    results = ResultsFile(tmp_path / "out" / "all.json", render=lambda cells: f"{len(cells)} cells")
    workers = Workers(1, imports=())
    failed = run_cells(
        names,
        work,
        results,
        Deadline(seconds=seconds, **settings),
        workers=workers,
        summary=lambda result: f"length {result['length']}",
        logs=tmp_path / "logs",
    )
    workers.close()
    return failed, json.loads((tmp_path / "out" / "all.json").read_text())["cells"]


def test_one_failure_stops_no_other_cell(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    failed, cells = run(tmp_path, ["a-0", "bad-0", "long-0"])
    assert failed == ["bad-0"]
    assert {name: cell["length"] for name, cell in cells.items()} == {"a-0": 3, "long-0": 6}
    assert "a bad cell" in capsys.readouterr().out
    assert (tmp_path / "out" / "all.md").read_text() == "2 cells"
    assert (tmp_path / "logs" / "a-0.txt").read_text() == "seen in the log\n"
    again = ResultsFile(tmp_path / "out" / "all.json")
    assert set(again.cells) == {"a-0", "long-0"}, "a later call skips them"


def test_a_process_that_dies_loses_its_cell_alone(tmp_path: Any) -> None:
    failed, cells = run(tmp_path, ["dies-0", "a-0"])
    assert failed == ["dies-0"]
    assert set(cells) == {"a-0"}


def test_nothing_begins_that_would_end_too_late(tmp_path: Any) -> None:
    late = Deadline(seconds=100.0, expected=70.0)
    assert not late.allows(), "70 s and a start, at first guess"
    late.taken += [200.0, 10.0, 10.0, 10.0, 10.0, 10.0, 10.0]
    assert late.allows(), "the last cells took 10 s"
    late.began = time.monotonic() - 95.0
    assert not late.allows()
    failed, cells = run_nothing(tmp_path)
    assert (failed, cells) == ([], {})


def run_nothing(tmp_path: Any) -> Any:
    results = ResultsFile(tmp_path / "none.json")
    deadline = Deadline(seconds=1.0)
    workers = Workers(1, imports=())
    failed = run_cells(
        ["a-0"], work, results, deadline, workers=workers, summary=str, logs=tmp_path / "logs"
    )
    workers.close()
    return failed, results.cells
