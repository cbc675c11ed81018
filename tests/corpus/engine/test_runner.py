"""The engine: results in order wherever they are made, killed workers, finished work."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

import pytest

from isoglot.corpus.engine.runner import TaskCache, run_tasks
from isoglot.corpus.engine.workers import _serve
from isoglot.errors import CorpusError


@dataclass(frozen=True, kw_only=True)
class Task:
    number: int
    folder: Path

    def note(self) -> int:
        """Leave a trace of this call; gives how many there are of this task now."""
        traces = len(list(self.folder.glob(f"{self.number}-*")))
        (self.folder / f"{self.number}-{traces}-{os.getpid()}").touch()
        return traces + 1


@dataclass(frozen=True, kw_only=True)
class Square:
    value: int


def square(task: Task) -> Square:
    task.note()
    return Square(value=task.number**2)


def dies_once(task: Task) -> Square:
    if task.note() == 1 and task.number % 3 == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return Square(value=task.number**2)


def dies_always(task: Task) -> Square:
    if task.number == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return Square(value=task.number**2)


def refuses(task: Task) -> Square:
    if task.number == 3:
        raise CorpusError("file 3: is damaged.")
    time.sleep(0.01)
    return Square(value=task.number**2)


def breaks(task: Task) -> Square:
    return Square(value=1 // (task.number - 2))


def tasks(folder: Path, number: int = 9) -> list[Task]:
    return [Task(number=n, folder=folder) for n in range(number)]


def calls(folder: Path) -> dict[int, int]:
    found: dict[int, int] = {}
    for trace in folder.iterdir():
        number = int(trace.name.split("-", 1)[0])
        found[number] = found.get(number, 0) + 1
    return found


SQUARES = [Square(value=n**2) for n in range(9)]


@pytest.mark.parametrize("workers", [1, 2])
def test_results_are_in_the_order_of_the_tasks_and_progress_ends_at_the_total(tmp_path, workers):
    seen = []
    found = run_tasks(
        square,
        tasks(tmp_path),
        workers=workers,
        sizes=[5, 1, 7, 2, 9, 3, 1, 1, 4],
        progress=lambda done, total: seen.append((done, total)),
    )
    assert found == SQUARES
    assert seen == sorted(seen)
    assert seen[0] == (0, 33)
    assert seen[-1] == (33, 33)
    assert len(seen) == 10
    processes = {trace.name.rpartition("-")[2] for trace in tmp_path.iterdir()}
    assert (str(os.getpid()) in processes) == (workers == 1)


def test_the_largest_task_is_begun_first(tmp_path):
    begun = []
    run_tasks(lambda task: begun.append(task.number), tasks(tmp_path, 4), sizes=[2, 9, 2, 5])
    assert begun == [1, 3, 0, 2]


def test_the_task_of_a_killed_worker_is_done_again_and_no_other(tmp_path):
    assert run_tasks(dies_once, tasks(tmp_path), workers=2) == SQUARES
    assert calls(tmp_path) == {n: 2 if n % 3 == 0 else 1 for n in range(9)}


def test_a_task_that_kills_its_workers_is_named(tmp_path):
    with pytest.raises(CorpusError, match=r"shard 5: .* was killed 3 times.*fewer workers"):
        run_tasks(dies_always, tasks(tmp_path), workers=2, name=lambda task: f"shard {task.number}")


def test_a_users_fault_arrives_as_it_is(tmp_path):
    with pytest.raises(CorpusError, match=r"^file 3: is damaged\.$"):
        run_tasks(refuses, tasks(tmp_path), workers=2)


def test_a_fault_of_ours_arrives_with_its_place(tmp_path):
    with pytest.raises(RuntimeError, match=r"in breaks\n[^$]*ZeroDivisionError"):
        run_tasks(breaks, tasks(tmp_path), workers=2)


def test_a_worker_whose_parent_is_gone_ends_quietly(monkeypatch):
    monkeypatch.setenv("RAYON_NUM_THREADS", "1")
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    ours, theirs = multiprocessing.Pipe()
    ours.send(3)
    ours.close()
    received: list[int] = []
    _serve(theirs, received.append)
    assert received == [3], "the task that was sent is finished, and nothing is raised"


def finished(folder: Path) -> TaskCache[Task, Square]:
    return TaskCache(folder / "finished", Square, always, attrgetter("number"))


def always(task: Task, result: Square) -> bool:
    return True


@pytest.mark.parametrize("workers", [1, 2])
def test_what_is_finished_is_not_done_again(tmp_path, workers):
    traces = tmp_path / "traces"
    traces.mkdir()
    with pytest.raises(CorpusError):
        run_tasks(refuses, tasks(traces), workers=1, cache=finished(tmp_path))
    # the first three were finished before the fault
    found = run_tasks(square, tasks(traces), workers=workers, cache=finished(tmp_path))
    assert found == SQUARES
    assert set(calls(traces)) == {3, 4, 5, 6, 7, 8}


def test_a_task_that_differs_in_anything_is_done(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    run_tasks(square, tasks(one, 2), cache=finished(tmp_path))
    run_tasks(square, tasks(other, 2), cache=finished(tmp_path))
    assert set(calls(other)) == {0, 1}


@pytest.mark.parametrize("damage", ["", '{"value"', '{"value": "four"}', "[]"])
def test_a_damaged_record_is_no_record(tmp_path, damage):
    (tmp_path / "traces").mkdir()
    done, (task,) = finished(tmp_path), tasks(tmp_path / "traces", 1)
    run_tasks(square, [task], cache=done)
    (record,) = (tmp_path / "finished").iterdir()
    record.write_text(damage)
    assert run_tasks(square, [task], cache=done) == [Square(value=0)]
    assert calls(tmp_path / "traces") == {0: 2}


def test_a_result_whose_files_are_gone_is_made_again(tmp_path):
    (tmp_path / "traces").mkdir()
    done: TaskCache[Task, Square] = TaskCache(
        tmp_path / "finished", Square, lambda task, result: False, attrgetter("number")
    )
    for _ in range(2):
        run_tasks(square, tasks(tmp_path / "traces", 1), cache=done)
    assert calls(tmp_path / "traces") == {0: 2}


def test_a_cluster_that_is_not_there_is_told(tmp_path, monkeypatch):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    with pytest.raises(CorpusError, match=r"--cluster auto: no Ray cluster answers.*ray start"):
        run_tasks(square, tasks(tmp_path), cluster="auto")
