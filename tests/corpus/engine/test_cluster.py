"""Tasks on a Ray cluster: results in order; killed workers, lost machines and faults are told."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from isoglot.corpus.engine import cluster
from isoglot.corpus.engine.runner import run_tasks
from isoglot.errors import CorpusError
from tests.corpus.engine.test_runner import (
    SQUARES,
    breaks,
    calls,
    dies_always,
    dies_once,
    finished,
    refuses,
    square,
    tasks,
)


@pytest.mark.slow
def test_a_ray_cluster_does_what_processes_do(tmp_path, ray_cluster, monkeypatch):
    # fewer in flight than tasks
    monkeypatch.setattr(cluster, "_MIN_IN_FLIGHT", 2)
    monkeypatch.setattr(cluster, "_TASKS_PER_CORE", 1)
    folders = [tmp_path / name for name in ("all", "killed", "again")]
    for folder in folders:
        folder.mkdir()
    whole, killed, again = folders
    seen: list[int] = []
    found = run_tasks(
        square, tasks(whole), cluster="auto", progress=lambda done, _: seen.append(done)
    )
    assert found == SQUARES
    assert seen == list(range(10))
    assert run_tasks(dies_once, tasks(killed), cluster="auto") == SQUARES
    assert calls(killed) == {n: 2 if n % 3 == 0 else 1 for n in range(9)}
    with pytest.raises(CorpusError, match=r"shard 5: .* was killed 3 times"):
        run_tasks(dies_always, tasks(whole), cluster="auto", name=lambda t: f"shard {t.number}")
    with pytest.raises(RuntimeError, match=r"shard 2: a task failed[^$]*ZeroDivisionError"):
        run_tasks(breaks, tasks(whole), cluster="auto", name=lambda t: f"shard {t.number}")
    with pytest.raises(CorpusError, match=r"^file 3: is damaged\.$"):
        run_tasks(refuses, tasks(again), cluster="auto", cache=finished(tmp_path))
    # what was finished before the fault is not done again
    assert run_tasks(square, tasks(again), cluster="auto", cache=finished(tmp_path)) == SQUARES
    assert 3 in calls(again)
    assert len(calls(again)) < 9


LOST = """
import os, sys, threading, time
from pathlib import Path
import ray
from ray.cluster_utils import Cluster
from isoglot.corpus.engine.runner import run_tasks
from tests.corpus.engine.test_cluster import slow
from tests.corpus.engine.test_runner import tasks

machines = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
lost = machines.add_node(num_cpus=1)
machines.connect()
folder = Path(sys.argv[1])
thread = threading.Thread(target=lambda: print([r.value for r in run_tasks(
    slow, tasks(folder, 6), cluster="auto")]))
thread.start()
# both machines have begun a task
while len(list(folder.iterdir())) < 2:
    time.sleep(0.05)
machines.remove_node(lost, allow_graceful=False)
thread.join()
ray.shutdown()
machines.shutdown()
"""


def slow(task):
    import time

    result = square(task)
    time.sleep(1)
    return result


@pytest.mark.slow
def test_the_task_of_a_machine_that_is_lost_is_done_by_another(tmp_path):
    root = Path(__file__).parents[3]
    path = os.pathsep.join([str(root), str(root / "src")])
    done = subprocess.run(
        [sys.executable, "-c", LOST, str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=root,
        env={**os.environ, "PYTHONPATH": path, "RAY_USAGE_STATS_ENABLED": "0"},
    )
    assert done.returncode == 0, done.stderr
    assert "[0, 1, 4, 9, 16, 25]" in done.stdout
    assert sum(calls(tmp_path).values()) > 6
