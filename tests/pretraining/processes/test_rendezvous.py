"""The prefix that the processes of an attempt agree on, with the keys of killed ones around."""

from __future__ import annotations

import threading
import time
from datetime import timedelta

import pytest
from torch.distributed import HashStore  # type: ignore[attr-defined]

from isoglot.pretraining.processes import rendezvous
from isoglot.pretraining.processes.liveness import InterruptedRunError
from isoglot.pretraining.processes.rendezvous import fresh_prefix, init_method

SOON = timedelta(seconds=20)


def attempt(store: HashStore, world: int, late: int | None = None) -> list[str]:
    """What each rank gets, one of them a moment later than the others."""
    found = [""] * world

    def join(rank: int) -> None:
        time.sleep(0.1 * (rank == late))
        found[rank] = fresh_prefix(store, rank, world, SOON)

    threads = [threading.Thread(target=join, args=(rank,)) for rank in range(world)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


@pytest.mark.parametrize("late", [None, 0, 1, 2])
def test_every_attempt_has_a_prefix_of_its_own(late):
    store = HashStore()
    attempts = [attempt(store, 3, late) for _ in range(4)]
    assert all(len(set(prefixes)) == 1 and prefixes[0] for prefixes in attempts)
    assert len({prefixes[0] for prefixes in attempts}) == 4


def test_processes_that_were_killed_in_the_middle_leave_nothing_that_misleads():
    """Rank 1 has asked and was killed; or rank 0 has answered and was killed before it was read."""
    store = HashStore()
    store.set("isoglot/challenge/1", "old")
    store.set("isoglot/answer/old", "attempt-old")
    store.set("isoglot/received/attempt-old/1", "1")
    for late in (0, 1):
        first, second = attempt(store, 2, late)
        assert first == second != "attempt-old"


@pytest.mark.parametrize(("rank", "who"), [(0, "Ranks 1, 2 of 3 have"), (1, "Rank 0 has")])
def test_a_process_that_does_not_come_is_named(rank, who):
    with pytest.raises(InterruptedRunError, match=f"{who} not started before"):
        fresh_prefix(HashStore(), rank, 3, timedelta(seconds=0.1))


def test_only_the_store_of_an_agent_needs_it(monkeypatch):
    monkeypatch.setattr(rendezvous, "_register", lambda: None)
    monkeypatch.delenv("TORCHELASTIC_USE_AGENT_STORE", raising=False)
    assert init_method() is None
    monkeypatch.setenv("TORCHELASTIC_USE_AGENT_STORE", "False")
    assert init_method() is None
    monkeypatch.setenv("TORCHELASTIC_USE_AGENT_STORE", "True")
    assert init_method() == "isoglot://"
