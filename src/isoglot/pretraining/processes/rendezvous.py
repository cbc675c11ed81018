"""The store of one attempt: processes that torchrun has restarted must not read old keys.

torchrun's agent keeps one key-value store for a job, and gives it to the processes of every
attempt (`--max-restarts`). In torch 2.13 the keys of an attempt that has failed are still there:
a restarted process reads the addresses of killed ones and waits for them until its time is over
(https://github.com/pytorch/pytorch/issues/135712). Counts of restarts do not help, as each machine
has its own. So the processes agree on a random prefix first, by three messages in the old store:

    rank r   challenge/r        = C       random, so nobody has answered it before
    rank 0   answer/C           = PREFIX
    rank r   received/PREFIX/r  = 1       rank 0 answers until all have said so
"""

from __future__ import annotations

import functools
import os
import secrets
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import torch.distributed as dist
from torch.distributed.rendezvous import register_rendezvous_handler

from isoglot.pretraining.processes.liveness import InterruptedRunError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch.distributed import Store  # type: ignore[attr-defined]

_SCHEME = "isoglot"
_PAUSE_SECONDS = 0.02


def init_method() -> str | None:
    """How the processes find each other, for `init_process_group`; none: in torch's own way."""
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
        return None  # the first process has a new store in each attempt
    _register()
    return f"{_SCHEME}://"


@functools.cache
def _register() -> None:
    register_rendezvous_handler(_SCHEME, _rendezvous)


def _rendezvous(
    _: str, timeout: timedelta = timedelta(minutes=30), **__: Any
) -> Iterator[tuple[Store, int, int]]:
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    agents = dist.TCPStore(  # type: ignore[attr-defined]
        os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False, timeout=timeout
    )
    prefix = fresh_prefix(agents, rank, world, timeout)
    yield dist.PrefixStore(prefix, agents), rank, world  # type: ignore[attr-defined]


def fresh_prefix(store: Store, rank: int, world: int, timeout: timedelta) -> str:
    """A prefix that no earlier attempt has used, the same on all processes.

    Raises:
        InterruptedRunError: a process has not come in time.
    """
    deadline = time.monotonic() + timeout.total_seconds()
    if rank == 0:
        return _give_prefix(store, world, deadline)
    challenge = secrets.token_hex(16)
    store.set(f"isoglot/challenge/{rank}", challenge)
    while not store.check([f"isoglot/answer/{challenge}"]):
        _pause(deadline, "Rank 0 has")
    prefix: str = store.get(f"isoglot/answer/{challenge}").decode()
    store.set(f"isoglot/received/{prefix}/{rank}", "1")
    return prefix


def _give_prefix(store: Store, world: int, deadline: float) -> str:
    prefix = f"attempt-{secrets.token_hex(16)}"
    missing = set(range(1, world))
    answered: set[bytes] = set()
    while missing:
        for rank in sorted(missing):
            if store.check([f"isoglot/received/{prefix}/{rank}"]):
                missing.discard(rank)
            elif store.check([f"isoglot/challenge/{rank}"]):
                challenge = store.get(f"isoglot/challenge/{rank}")
                if challenge not in answered:
                    answered.add(challenge)
                    store.set(f"isoglot/answer/{challenge.decode()}", prefix)
        if missing:
            names = ", ".join(map(str, sorted(missing)[:8]))
            _pause(deadline, f"Rank{'s' if len(missing) > 1 else ''} {names} of {world} have")
    return prefix


def _pause(deadline: float, who: str) -> None:
    if time.monotonic() > deadline:
        raise InterruptedRunError(
            f"{who} not started before distributed.timeout_minutes were over. See what the other "
            "processes or machines of the run say, and start it again with --resume."
        )
    time.sleep(_PAUSE_SECONDS)
