"""A process of a run that ends makes all others end within seconds, with a sentence.

torchrun ends the processes of its own machine when one is killed, and gloo reports a connection
that was closed. NCCL, other machines and launchers without an agent (srun, mpirun) do not: the
others would wait until `distributed.timeout_minutes` is over. So each process keeps a connection
to the first one, which nothing is sent over until somebody leaves:

    rank 1 ---+
    rank 2 ---+--- rank 0     the kernel closes the connections of a process that ends, however it
    rank 3 ---+               ends; rank 0 tells the others who it was

Keep-alive probes of the kernel find a machine that is lost (15 to 25 s). A process that is only
slow, or holds Python's lock for minutes, answers them: it is not taken for dead.
"""

from __future__ import annotations

import functools
import json
import os
import secrets
import selectors
import socket
import sys
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import torch.distributed
from typing_extensions import override

from isoglot.errors import IsoglotError
from isoglot.locks import release_locks
from isoglot.pretraining.processes.liveness_sockets import (
    keep_alive,
    listen,
    own_address,
    receive,
    send,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from accelerate import Accelerator
    from torch.distributed import Store  # type: ignore[attr-defined]

STOPPED_EXIT_CODE = 75
"""Of a command that a signal has stopped and that can go on (EX_TEMPFAIL of sysexits.h)."""
_GRACE_SECONDS = 5.0
"""Time for this process to end by itself once another one is lost; then it is ended."""
_CONNECT_SECONDS = 60.0
"""Time for the connection to the first process; without one, the run goes on unwatched."""


class InterruptedRunError(IsoglotError):
    """A process that the run needs has ended; the last checkpoint is intact."""

    def __init__(self, message: str, *, exit_code: int | None = None) -> None:
        super().__init__(message)
        self.exit_code = exit_code
        """With this code the command leaves at once: cleaning up would wait for the lost one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """A process that has ended before the run was over."""

    rank: int
    host: str
    reason: str | None = None
    """Its own error; none if it could not say any more."""
    stopped: bool = False
    """Has a signal ended it before it could train?"""

    @property
    def exit_code(self) -> int:
        """That of the processes that end because of it."""
        return STOPPED_EXIT_CODE if self.stopped else 1

    def error(self) -> InterruptedRunError:
        """The error for the others."""
        return InterruptedRunError(self.describe(), exit_code=self.exit_code)

    def describe(self) -> str:
        """The sentence for the others."""
        why = self.reason or (
            "it was killed; mostly memory had run out, or the scheduler took the machine"
        )
        return (
            f"Rank {self.rank} on {self.host} has ended: {why.rstrip('.')}. This process ends "
            "because of it. The last checkpoint is intact: add --resume."
        )


def group_store() -> Store:
    """The key-value store by which the processes of the group have found each other."""
    return torch.distributed.distributed_c10d._get_default_store()  # noqa: SLF001


@contextmanager
def watched_processes(accelerator: Accelerator) -> Iterator[None]:
    """Inside the block, this process ends within seconds of any other process of the run."""
    if accelerator.num_processes == 1:
        yield
        return
    watch = _Hub(accelerator) if accelerator.is_main_process else _Spoke(accelerator)
    _watches.add(watch)
    watch.start()
    try:
        yield
    except SystemExit as end:
        stopped = end.code == STOPPED_EXIT_CODE  # otherwise another one has said why, to all
        reason = "a signal has stopped it while it was not training"
        watch.leave(reason if stopped else None, stopped=stopped)
        raise
    except BaseException as error:
        watch.leave(str(error).strip().split("\n")[0][:1000] or type(error).__name__)
        raise
    else:
        watch.leave(None)
    finally:
        _watches.discard(watch)


def lost_process(wait_seconds: float = 0.0) -> Loss | None:
    """The process of the run that has ended, if one has; it is waited for so long."""
    deadline = time.monotonic() + wait_seconds
    while True:
        for watch in list(_watches):
            if watch.lost is not None:
                return watch.lost
        if time.monotonic() >= deadline:
            return None
        time.sleep(0.02)


def raise_if_lost() -> None:
    """End with a sentence if a process of the run has ended.

    Raises:
        InterruptedRunError: one has.
    """
    if (loss := lost_process()) is not None:
        raise loss.error()


class _Watch(threading.Thread):
    """One process's end of the connections: reads until a process is lost or this one leaves."""

    def __init__(self, accelerator: Accelerator) -> None:
        super().__init__(name="isoglot-liveness", daemon=True)
        self.rank, self.host = accelerator.process_index, socket.gethostname()
        self.lost: Loss | None = None
        self._left = threading.Event()
        self._store = group_store()
        self._key = f"isoglot/watch/{_next_number()}"
        # poll has no handle of its own, which a forked loader worker would share
        self._selector = selectors.PollSelector()
        self._peers: dict[socket.socket, tuple[int, str]] = {}
        _close_in_forked_children()

    def leave(self, reason: str | None, *, stopped: bool = False) -> None:
        """Tell the others that this process leaves, and whether because of an error."""
        said: dict[str, object] = {"rank": self.rank, "host": self.host}
        said |= {"left": True} if reason is None else {"reason": reason, "stopped": stopped}
        self._left.set()
        self._tell_late(said)
        for peer in list(self._peers):
            send(peer, said)
        self.close()

    def _tell_late(self, said: dict[str, Any]) -> None:
        """Leave a word for processes that connect when this one has left."""

    def close(self) -> None:
        """Close the connections, of this process only."""
        for peer in list(self._peers):
            peer.close()

    @override
    def run(self) -> None:
        """Watch; if a process is lost and this one does not end by itself, end it."""
        try:
            self._watch()
        except (OSError, ValueError, RuntimeError) as error:
            if not self._left.is_set():
                sys.stderr.write(
                    f"note: rank {self.rank} on {self.host} is not watched ({error}): the others "
                    "notice its end after distributed.timeout_minutes at the latest.\n"
                )
        if self.lost is None or self._left.wait(_GRACE_SECONDS):
            return
        sys.stderr.write(f"isoglot: {self.lost.describe()}\n")
        sys.stderr.flush()
        release_locks()
        os._exit(self.lost.exit_code)

    def _watch(self) -> None:
        raise NotImplementedError

    def _add(self, peer: socket.socket, rank: int, host: str) -> None:
        keep_alive(peer)
        self._peers[peer] = rank, host
        self._selector.register(peer, selectors.EVENT_READ)

    def _drop(self, peer: socket.socket) -> None:
        self._selector.unregister(peer)
        del self._peers[peer]
        peer.close()

    def _loss(self, peer: socket.socket) -> Loss | None:
        """What a peer that has something to read says: who is lost, or that it leaves (none)."""
        rank, host = self._peers[peer]
        said = receive(peer)
        self._drop(peer)
        return self._loss_told(said, rank, host)

    def _loss_told(self, said: dict[str, Any], rank: int, host: str) -> Loss | None:
        if said.get("left") or self._left.is_set():
            return None
        return Loss(
            rank=int(said.get("rank", rank)),
            host=str(said.get("host", host)),
            reason=said.get("reason"),
            stopped=bool(said.get("stopped")),
        )


class _Hub(_Watch):
    """The first process: all others are connected to it."""

    @override
    def _watch(self) -> None:
        token = secrets.token_hex(16)
        with listen() as server:
            place = {"address": own_address(), "port": server.getsockname()[1]}
            self._store.set(self._key, json.dumps(place | {"host": self.host, "token": token}))
            self._selector.register(server, selectors.EVENT_READ)
            while self.lost is None and not self._left.is_set():
                for key, _ in self._selector.select(timeout=0.5):
                    if key.fileobj is server:
                        self._accept(server, token)
                    elif self.lost is None:
                        self.lost = self._loss(key.fileobj)  # type: ignore[arg-type]
        if self.lost is not None:
            for peer in list(self._peers):
                send(peer, {"lost": True, **asdict(self.lost)})

    @override
    def _tell_late(self, said: dict[str, Any]) -> None:
        with suppress(RuntimeError):  # the store may have ended before
            self._store.set(f"{self._key}/left", json.dumps(said))

    def _accept(self, server: socket.socket, token: str) -> None:
        peer, _ = server.accept()
        peer.settimeout(5.0)
        hello = receive(peer)
        if hello.get("token") == token:
            self._add(peer, int(hello["rank"]), str(hello["host"]))
        else:
            peer.close()  # somebody else


class _Spoke(_Watch):
    """Any other process."""

    @override
    def _watch(self) -> None:
        deadline = time.monotonic() + _CONNECT_SECONDS
        while not self._store.check([self._key]):
            if time.monotonic() > deadline or self._left.wait(0.05):
                return
        there = json.loads(self._store.get(self._key))
        try:
            peer = socket.create_connection((there["address"], there["port"]), _CONNECT_SECONDS)
        except OSError:
            if not self._store.check([f"{self._key}/left"]):
                raise
            said = json.loads(self._store.get(f"{self._key}/left"))
            self.lost = self._loss_told(said, 0, there["host"])
            return
        send(peer, {"token": there["token"], "rank": self.rank, "host": self.host})
        self._add(peer, 0, there["host"])
        while self.lost is None and self._peers and not self._left.is_set():
            if self._selector.select(timeout=0.5):
                self.lost = self._loss(peer)


_watches: set[_Watch] = set()
_numbers = iter(range(sys.maxsize))


def _next_number() -> int:
    """The same on every process for the same run: all call this in the same order."""
    return next(_numbers)


@functools.cache
def _close_in_forked_children() -> None:
    """A forked loader worker would keep the connection of its killed parent open."""

    def close() -> None:
        for watch in list(_watches):
            watch.close()

    os.register_at_fork(after_in_child=close)
