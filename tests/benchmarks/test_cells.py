"""Cells in worker processes: results, failures, deadlines, preparations, resuming."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from benchmarks.cells import CellQueue, Deadline, ResultsFile, unpack
from benchmarks.workers import STOP_SECONDS, Workers, training_slot


class Work:
    """A cell, decided by its name; marks of what was begun are files in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, name: str) -> dict[str, Any]:
        sys.stdout.write("seen in the log\n")
        mark = self.folder / f"{name}.begun"
        is_first = not mark.exists()
        mark.touch()
        if "dies" in name and (is_first or "always" in name):
            os._exit(1)
        if "bad" in name:
            raise ValueError("a bad cell")
        if "slow" in name:
            time.sleep(1.0)
        if "hangs" in name:
            with training_slot():
                time.sleep(600)
        with training_slot():
            found = {"length": len(name), "process": os.getpid()}
        return found | ({"errors": {"part": "no good"}} if "partly" in name else {})


def queue(tmp_path: Path, workers: Workers, seconds: float = 300.0, **others: Any) -> CellQueue:
    results = ResultsFile(tmp_path / "out" / "all.json", render=lambda cells: f"{len(cells)} cells")
    return CellQueue(
        **{
            "work": Work(tmp_path),
            "results": results,
            "deadline": Deadline(seconds=seconds),
            "workers": workers,
            "summary": lambda result: f"length {result['length']}",
            "logs": tmp_path / "logs",
            **others,
        }
    )


def run(
    tmp_path: Path, names: list[str], parallel: int = 1, trainings: int | None = None, **others: Any
) -> tuple[list[str], dict[str, Any]]:
    with Workers(parallel, imports=(), trainings=trainings) as workers:
        failed = queue(tmp_path, workers, **others).run(names)
    file = tmp_path / "out" / "all.json"
    return failed, json.loads(file.read_text())["cells"] if file.exists() else {}


def test_one_failure_stops_no_other_cell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    failed, cells = run(tmp_path, ["a-0", "bad-0", "long-0"])
    assert failed == ["bad-0"]
    assert {name: cell["length"] for name, cell in cells.items()} == {"a-0": 3, "long-0": 6}
    assert cells["a-0"]["process"] != cells["long-0"]["process"], "an error of CUDA stays in one"
    assert "a bad cell" in capsys.readouterr().out
    assert (tmp_path / "out" / "all.md").read_text() == "2 cells"
    assert (tmp_path / "logs" / "a-0.txt").read_text() == "seen in the log\n"
    again = ResultsFile(tmp_path / "out" / "all.json")
    assert set(again.cells) == {"a-0", "long-0"}, "a later call skips them"


def test_a_process_that_dies_loses_its_cell_alone_which_is_run_again(tmp_path: Path) -> None:
    names = ["slow-0", "dies-0", "dies-always-0", "a-0"]
    failed, cells = run(tmp_path, names, parallel=2)
    assert failed == ["dies-always-0"]
    assert set(cells) == {"slow-0", "dies-0", "a-0"}


def test_a_part_that_failed_is_told_and_the_cell_is_run_again_by_a_later_call(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    failed, cells = run(tmp_path, ["partly-0", "a-0"])
    assert failed == ["partly-0, part"]
    assert set(cells) == {"partly-0", "a-0"}
    assert cells["partly-0"]["process"] != cells["a-0"]["process"]
    capsys.readouterr()
    run(tmp_path, ["partly-0", "a-0"])
    assert "1 cells to run" in capsys.readouterr().out


def test_a_cell_that_hangs_is_ended_and_its_training_slot_is_free_again(tmp_path: Path) -> None:
    deadline = Deadline(seconds=300.0, expected=2.0, taken=[2.0])
    names = ["hangs-0", "a-0", "b-0"]
    failed, cells = run(tmp_path, names, parallel=2, trainings=1, deadline=deadline)
    assert failed == ["hangs-0"]
    assert set(cells) == {"a-0", "b-0"}, "they waited for its slot"


def test_what_has_not_ended_by_the_deadline_is_ended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    began = time.monotonic()
    deadline = Deadline(seconds=4.0, expected=-38.0)
    assert run(tmp_path, ["hangs-0", "b-0"], deadline=deadline) == ([], {})
    assert time.monotonic() - began < 60, "SIGTERM, or SIGKILL after 15 s"
    told = capsys.readouterr().out
    assert "hangs-0 " in told
    assert "has not ended in time" in told
    assert "not begun for lack of time: b-0" in told


def test_nothing_begins_that_would_end_too_late(tmp_path: Path) -> None:
    late = Deadline(seconds=100.0, expected=70.0)
    assert not late.allows(), "70 s and a start, at first guess"
    late.taken += [200.0, 10.0, 10.0, 10.0, 10.0, 10.0, 10.0]
    assert late.allows(), "the last cells took 10 s"
    assert not late.allows(cost=10.0), "a cell of ten times the size"
    late.began = time.monotonic() - 95.0
    assert not late.allows()
    assert run(tmp_path, ["a-0"], seconds=1.0) == ([], {})


def test_a_short_cell_begins_where_a_long_one_would_end_too_late(tmp_path: Path) -> None:
    deadline = Deadline(seconds=60.0, taken=[10.0])
    costs = {"long-0": 20.0}
    _, cells = run(
        tmp_path, ["long-0", "a-0"], deadline=deadline, cost=lambda name: costs.get(name, 1.0)
    )
    assert set(cells) == {"a-0"}


def test_failed_cells_say_nothing_about_time(tmp_path: Path) -> None:
    deadline = Deadline(seconds=300.0)
    run(tmp_path, ["bad-0", "a-0"], deadline=deadline)
    assert len(deadline.taken) == 1


def test_cells_wait_for_their_preparation_and_others_do_not(tmp_path: Path) -> None:
    prepared: dict[str, Any] = {}
    needs = {"a-0": ["prep-slow"], "b-0": ["prep-bad"], "c-0": ["prep-refused"]}

    def note(name: str, result: dict[str, Any]) -> None:
        if "refused" in name:
            raise ValueError("other weights")
        prepared[name] = result["length"]

    failed, cells = run(
        tmp_path,
        ["a-0", "b-0", "c-0", "d-0"],
        parallel=2,
        needs=lambda name: needs.get(name, []),
        prepared=note,
    )
    assert prepared == {"prep-slow": 9}
    assert sorted(failed) == ["b-0", "c-0", "prep-bad", "prep-refused"]
    assert set(cells) == {"a-0", "d-0"}, "a preparation is no cell"


def test_a_preparation_whose_process_dies_is_begun_again_once(tmp_path: Path) -> None:
    needs = {"a-0": ["prep-dies"], "b-0": ["prep-dies-always"]}
    failed, cells = run(
        tmp_path, ["a-0", "b-0", "c-0"], parallel=2, needs=lambda name: needs.get(name, [])
    )
    assert sorted(failed) == ["b-0", "prep-dies-always"]
    assert set(cells) == {"a-0", "c-0"}


def test_cells_far_behind_do_not_begin_before_those_that_wait(tmp_path: Path) -> None:
    waiting = [f"a-{seed}" for seed in range(5)]
    needs = {"z-0": [], "y-0": ["for-y"]}
    with Workers(1, imports=()) as workers:
        own = queue(tmp_path, workers, seconds=1e6, needs=lambda name: needs.get(name, ["first"]))
        own._waiting = ["y-0", *waiting, "z-0"]
        assert [own._next() for _ in range(3)] == ["for-y", "first", None]
        own._waiting = ["z-0", *waiting]
        assert [own._next() for _ in range(2)] == ["z-0", None]


def test_a_page_that_cannot_be_written_stops_no_study(tmp_path: Path) -> None:
    def broken(cells: dict[str, Any]) -> str:
        raise KeyError("scores")

    results = ResultsFile(tmp_path / "out" / "all.json", render=broken)
    failed, cells = run(tmp_path, ["a-0", "b-0"], results=results)
    assert (failed, set(cells)) == ([], {"a-0", "b-0"})


def test_a_misspelled_file_of_known_cells_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        ResultsFile(tmp_path / "all.json", [tmp_path / "known.json"])


def test_an_archive_that_was_unpacked_in_part_is_unpacked_again(tmp_path: Path) -> None:
    import tarfile

    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "text").write_text("whole")
    with tarfile.open(tmp_path / "corpus.tar.xz", "w:xz") as packed:
        packed.add(tmp_path / "corpus", "corpus")
    work = tmp_path / "work"
    (work / "corpus").mkdir(parents=True)  # what a killed call has left
    for expected in ("whole", "changed"):
        unpack(tmp_path / "corpus.tar.xz", work)
        text = work / "corpus" / "text"
        assert text.read_text() == expected
        text.write_text("changed")  # and it is not unpacked once more


def held(name: str) -> dict[str, Any]:
    """A cell whose training takes a moment: when it was in its slot."""
    with training_slot():
        began = time.monotonic()
        time.sleep(0.3)
        return {"length": len(name), "from": began, "to": time.monotonic()}


@pytest.mark.parametrize(("trainings", "together"), [(1, False), (None, True)])
def test_no_more_trainings_at_a_time_than_there_are_slots(
    tmp_path: Path, trainings: int | None, *, together: bool
) -> None:
    names = ["a-0", "b-0", "c-0", "d-0"]
    _, cells = run(tmp_path, names, parallel=2, trainings=trainings, work=held)
    spans = sorted((cell["from"], cell["to"]) for cell in cells.values())
    assert any(late[0] < early[1] for early, late in pairwise(spans)) == together


def stopped(name: str) -> dict[str, Any]:
    """A training that a signal stops: it saves something, and ends as `pretrain` does."""

    def save(*_: object) -> None:
        Path(name).write_text("a checkpoint", encoding="utf-8")
        raise SystemExit("stopped")

    signal.signal(signal.SIGTERM, save)
    with training_slot():
        time.sleep(600)
    return {}


def test_a_training_saves_a_checkpoint_at_the_deadline(tmp_path: Path) -> None:
    began = time.monotonic()
    deadline = Deadline(seconds=4.0, expected=-38.0)
    saved = str(tmp_path / "saved")
    run(tmp_path, [saved], trainings=1, deadline=deadline, work=stopped, logs=tmp_path)
    assert Path(saved).read_text(encoding="utf-8") == "a checkpoint"
    assert time.monotonic() - began < 4 + STOP_SECONDS, "and nobody waits for it to be killed"


STUDY = """
import sys
from pathlib import Path
from tests.benchmarks.test_cells import queue
from benchmarks.workers import Workers
if __name__ == "__main__":
    folder = Path(sys.argv[1])
    with Workers(2, imports=()) as workers:
        queue(folder, workers).run([f"a-{n}" for n in range(3000)])
"""


def test_results_survive_a_kill_at_any_moment(tmp_path: Path) -> None:
    script = tmp_path / "study.py"
    script.write_text(STUDY)
    file, number = tmp_path / "out" / "all.json", 0
    root = Path(__file__).parents[2]
    paths = os.pathsep.join([str(root), str(root / "src"), os.environ.get("PYTHONPATH", "")])
    for _ in range(2):
        study = subprocess.Popen(
            [sys.executable, str(script), str(tmp_path)],
            env=os.environ | {"PYTHONPATH": paths},
            stdout=subprocess.DEVNULL,
        )
        until = time.monotonic() + 120
        while time.monotonic() < until:
            if file.exists() and len(json.loads(file.read_text())["cells"]) >= number + 5:
                break
            time.sleep(0.01)
        study.send_signal(signal.SIGKILL)
        study.wait()
        found = len(ResultsFile(file).cells)
        assert found >= number + 5, "what was written is read, and the call went on from there"
        number = found
    number = len(list(tmp_path.glob("*.begun")))
    time.sleep(2.0)
    assert len(list(tmp_path.glob("*.begun"))) == number, "workers end with the study"
