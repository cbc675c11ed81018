"""A process of a group that ends in any way ends the others, with a sentence that names it."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
import torch.distributed

from isoglot.locks import lock_folder
from isoglot.pretraining.processes import liveness
from isoglot.pretraining.processes.interruptions import explained_interruptions
from isoglot.pretraining.processes.liveness import watched_processes
from isoglot.pretraining.processes.waiting import wait_for_all
from tests.pretraining.groups import Group

if TYPE_CHECKING:
    from pathlib import Path

    from accelerate import Accelerator

pytestmark = pytest.mark.slow
HOST = socket.gethostname()


def end_somehow(accelerator: Accelerator, how: str, rank: int, folder: Path) -> None:
    """One rank ends; the others are in what gloo does not interrupt, as NCCL's would be."""
    liveness._GRACE_SECONDS = 0.5
    with watched_processes(accelerator), explained_interruptions(accelerator.num_processes):
        wait_for_all(accelerator)
        time.sleep(0.2)  # all are connected
        if accelerator.process_index == rank:
            _end(how)
        if how == "collective":
            accelerator.wait_for_everyone()
        if how == "waiting":
            wait_for_all(accelerator)
        with lock_folder(folder / f"locked-{accelerator.process_index}"):
            threading.Event().wait(60)  # no signal, no exception


def _end(how: str) -> None:
    if how == "error":
        raise MemoryError("the CPU has no memory left")
    if how == "system exit":
        sys.exit(75)
    if os.fork() == 0:  # a loader worker that outlives its parent
        time.sleep(8)
        os._exit(0)
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize(
    ("how", "rank", "words"),
    [
        ("kill", 1, "it was killed"),
        ("kill", 0, "it was killed"),
        ("error", 1, "the CPU has no memory left"),
        ("system exit", 1, "a signal has stopped it"),
        ("collective", 1, "it was killed"),
        ("waiting", 2, "it was killed"),
    ],
)
def test_the_others_end_within_seconds_and_say_who_it_was(how, rank, words, tmp_path):
    group = Group(end_somehow, tmp_path, how, rank, tmp_path, processes=3)
    group.ranks[rank].join(90)
    codes = group.end(timeout=15)
    others, code = [other for other in range(3) if other != rank], 75 if how == "system exit" else 1
    assert [codes[other] for other in others] == [code, code], list(map(group.said, range(3)))
    for other in others:
        assert f"Rank {rank} on {HOST} has ended: {words}" in group.said(other)
        assert "add --resume" in group.said(other)
    assert not list(tmp_path.glob("locked-*/.lock"))


def leave_one_by_one(accelerator: Accelerator) -> None:
    with watched_processes(accelerator):
        wait_for_all(accelerator)
        time.sleep(0.3 * accelerator.process_index)
    time.sleep(0.5)


def test_processes_that_leave_at_the_end_disturb_nobody(tmp_path):
    group = Group(leave_one_by_one, tmp_path, processes=3)
    assert group.end() == [0, 0, 0], [group.said(rank) for rank in range(3)]
    assert [group.said(rank) for rank in range(3)] == ["", "", ""]


@pytest.mark.parametrize("reason", [None, "no space on disk"])
def test_who_connects_late_learns_why_the_first_process_left(reason, monkeypatch):
    store = torch.distributed.HashStore()  # type: ignore[attr-defined]
    monkeypatch.setattr(liveness, "group_store", lambda: store)
    monkeypatch.setattr(liveness, "_next_number", lambda: 0)
    first = liveness._Hub(SimpleNamespace(process_index=0))
    late = liveness._Spoke(SimpleNamespace(process_index=1))
    first.start()
    while not store.check([first._key]):
        time.sleep(0.01)
    first.leave(reason)
    first.join()  # nobody listens any more
    late._watch()
    assert (late.lost and late.lost.reason) == reason


def test_a_stranger_who_connects_is_not_a_process(tmp_path):
    group = Group(meet_a_stranger, tmp_path)
    assert group.end() == [0, 0], group.said(0) + group.said(1)


def meet_a_stranger(accelerator: Accelerator) -> None:
    with watched_processes(accelerator):
        wait_for_all(accelerator)
        if accelerator.process_index == 1:
            import json

            there = json.loads(liveness.group_store().get("isoglot/watch/0"))
            for said in (b"", b"\xff\x00garbage\n", b'{"token": "x", "rank": 1}\n'):
                with socket.create_connection((there["address"], there["port"])) as stranger:
                    stranger.sendall(said)
            time.sleep(0.5)
        wait_for_all(accelerator)
        assert liveness.lost_process() is None
