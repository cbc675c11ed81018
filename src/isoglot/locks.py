"""Locks on output folders and files: two commands never write to the same place at once.

A lock is a small file: `FOLDER/.lock` for a folder whose content is written in place (a corpus, a
run, a study), `.NAME.lock` beside a file, or beside a folder that is replaced as a whole (a model).
It names the command, its host, process id and start time, and is removed at the end. One that a
killed command left behind is recognized and taken over:

- on the same machine at once, if no process has that id and start time;
- from another machine (or container, or an earlier boot) after 60 s without a sign of life: a
  thread touches the file every 10 s, and the watching process waits for a change of its time stamp
  as the disk reports it, so that the machines' clocks are not compared.

Why a file and not `flock` alone: on network disks `flock` may be local to a machine or missing, and
it is inherited by forked workers, which outlive a killed command. `flock` only guards the moment in
which the file is read and written; where a disk has none, that moment is unguarded.
"""

from __future__ import annotations

import errno
import fcntl
import functools
import json
import os
import socket
import sys
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING

from isoglot.atomic import write_errors
from isoglot.errors import LockedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LOCK = ".lock"
"""The lock file inside a folder."""
BEAT_SECONDS = 10.0
"""Seconds between two signs of life."""
STALE_SECONDS = 60.0
"""A lock of another machine without a sign of life for so long is taken over."""
_POLL_SECONDS = 0.1
_NOTE_SECONDS = 2.0
"""Waiting that takes longer is reported."""
_NO_FLOCK = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)
_LENGTH = 120
"""Characters of a command that a message shows."""


def _print_note(note: str) -> None:
    sys.stderr.write(f"note: {note}\n")


@contextmanager
def lock_folder(
    folder: Path, *, wait: bool = False, note: Callable[[str], None] = _print_note
) -> Iterator[None]:
    """Lock a folder whose content the block writes; the folder is made if there is none.

    Raises:
        LockedError: another command holds the lock; with `wait`, the block waits for it instead.
    """
    made = not folder.exists()
    try:
        with _hold(folder / LOCK, folder, wait=wait, note=note):
            yield
    finally:
        if made:
            with suppress(OSError):
                folder.rmdir()  # fails unless the block wrote nothing


@contextmanager
def lock_file(
    path: Path, *, wait: bool = False, note: Callable[[str], None] = _print_note
) -> Iterator[None]:
    """Lock a file, or a folder that is replaced as a whole; its parent folder is made.

    Raises:
        LockedError: another command holds the lock; with `wait`, the block waits for it instead.
    """
    place = Path(os.path.abspath(path))  # noqa: PTH100 (a link is not followed: it is replaced)
    with _hold(place.with_name(f".{place.name}.lock"), path, wait=wait, note=note):
        yield


def has_files(folder: Path) -> bool:
    """Does a folder exist and hold anything but its lock?"""
    return folder.exists() and any(path.name != LOCK for path in folder.iterdir())


def release_locks() -> None:
    """Remove the lock files of this process, which is about to end without unwinding."""
    for process, file in list(_beating):
        if process == os.getpid():
            _release(file)


def lock_content(folder: Path) -> str | None:
    """What the lock of a folder says, as this machine sees it; none if there is no lock."""
    try:
        return (folder / LOCK).read_text(encoding="utf-8")
    except OSError:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Holder:
    """Who holds a lock: the content of a lock file."""

    command: str
    host: str
    machine: str
    """Boot id and process-id namespace: process ids mean the same where this is equal."""
    process: int
    started: int
    """Start time of the process, as the kernel counts it; 0 where it is not known."""
    since: str

    @classmethod
    def this_process(cls) -> _Holder:
        name, *arguments = sys.argv or ["python"]
        return cls(
            command=" ".join([Path(name).name, *arguments])[:_LENGTH],
            host=socket.gethostname(),
            machine=_machine(),
            process=os.getpid(),
            started=_start_time(os.getpid()) or 0,
            since=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        )

    @classmethod
    def read(cls, file: IO[str]) -> _Holder | None:
        """The holder that a lock file names; none if it was killed before it had written."""
        try:
            return cls(**json.load(file))
        except (ValueError, TypeError):
            return None

    @property
    def is_here(self) -> bool:
        """Is it a process of this machine, so that its id can be looked up?"""
        return (self.host, self.machine) == (socket.gethostname(), _machine())

    def is_alive(self) -> bool:
        """Does the process still run? Only for processes of this machine."""
        started = _start_time(self.process)
        return started is not None and self.started in (0, started)

    def refusal(self, path: Path, file: Path) -> str:
        """The sentence for another command that wants the same place."""
        left = "" if self.is_here else f" If it does not run any more, remove {file}."
        return (
            f"{path} is being written by another command: `{self.command}`, process {self.process} "
            f"on {self.host}, since {self.since}. Wait until it has ended, or choose another "
            f"output.{left}"
        )


_held: dict[tuple[int, Path], threading.RLock] = {}
"""(process, lock file) -> a lock between the threads of this process."""
_beating: dict[tuple[int, Path], int] = {}
"""(process, lock file) -> how often it is held, one inside the other."""
_registry = threading.Lock()


@contextmanager
def _hold(file: Path, path: Path, *, wait: bool, note: Callable[[str], None]) -> Iterator[None]:
    key = (os.getpid(), file.resolve())
    with _registry:
        own = _held.setdefault(key, threading.RLock())
    if not own.acquire(blocking=wait):
        raise LockedError(_Holder.this_process().refusal(path, file))
    try:
        if not _beating.get(key):
            _acquire(file, path, wait=wait, note=note)
        _beating[key] = _beating.get(key, 0) + 1
        _start_beating(key[0])
        try:
            yield
        finally:
            _beating[key] -= 1
            if not _beating[key]:
                del _beating[key]
                _release(file)
    finally:
        own.release()


def _acquire(file: Path, path: Path, *, wait: bool, note: Callable[[str], None]) -> None:
    """Write this process into the lock file, once no living process is in it."""
    began, noted, seen = time.monotonic(), False, (0, time.monotonic())
    while True:
        with write_errors(path), _opened(file) as stream:
            holder, beat = _Holder.read(stream), os.fstat(stream.fileno()).st_mtime_ns
            is_beating = seen[0] not in (0, beat)
            if seen[0] != beat:
                seen = (beat, time.monotonic())
            silent = time.monotonic() - seen[1] >= STALE_SECONDS
            if holder is None or silent or (holder.is_here and not holder.is_alive()):
                _write(stream, file)
                return
        if not wait and (holder.is_here or is_beating):
            raise LockedError(holder.refusal(path, file))
        if not noted and time.monotonic() - began >= _NOTE_SECONDS:
            noted = True
            note(f"waiting for `{holder.command}` on {holder.host}, which is writing {path}.")
        time.sleep(_POLL_SECONDS)


def _release(file: Path) -> None:
    """Remove the lock file, unless another command has taken it over."""
    with suppress(OSError), _opened(file) as stream:
        holder = _Holder.read(stream)
        if holder is None or (holder.is_here and holder.process == os.getpid()):
            file.unlink()


@contextmanager
def _opened(file: Path) -> Iterator[IO[str]]:
    """The lock file, made if there is none, while no other process reads or writes it."""
    while True:
        # its folder may have been removed, empty, by the command that held the lock
        file.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        with os.fdopen(handle, "r+", encoding="utf-8") as stream:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX)
            except OSError as error:
                if error.errno not in _NO_FLOCK:
                    raise
            try:
                current = file.stat().st_ino == os.fstat(handle).st_ino
            except FileNotFoundError:
                current = False
            if current:  # otherwise it was removed between opening and locking
                yield stream
                return


def _write(stream: IO[str], file: Path) -> None:
    """Write this process into the lock file; on a full disk, remove the file."""
    try:
        stream.seek(0)
        stream.truncate()
        json.dump(asdict(_Holder.this_process()), stream)
        stream.flush()
    except OSError:
        file.unlink()
        raise


@functools.cache
def _start_beating(process: int) -> None:
    """Start the thread of this process that touches the files of all locks it holds."""

    def beat() -> None:
        while True:
            time.sleep(BEAT_SECONDS)
            for key in list(_beating):
                if key[0] == process:
                    with suppress(OSError):
                        os.utime(key[1])

    threading.Thread(target=beat, name="isoglot-locks", daemon=True).start()


@functools.cache
def _machine() -> str:
    """What process ids are unique in: the boot, and the container."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def _start_time(process: int) -> int | None:
    """Start time of a running process in ticks since boot (0: unknown); none if it has ended."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        if Path("/proc/self/stat").exists():
            return None
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return None
        except PermissionError:
            pass  # somebody else's
        return 0
    state, *fields = stat.rpartition(")")[2].split()  # the name before may hold anything
    return None if state in "ZX" else int(fields[18])
