"""Two commands that write to one place: one works, the other waits or is refused."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import socket
import threading
import time
from pathlib import Path

import pytest

from isoglot import locks
from isoglot.errors import LockedError, WriteError
from isoglot.locks import lock_file, lock_folder

FORK = multiprocessing.get_context("fork")


@pytest.fixture(params=[lock_folder, lock_file])
def lock(request):
    return request.param


def hold(lock, path, pipe):
    """In another process: take the lock and keep it until told to let it go."""
    with lock(path):
        pipe.send("held")
        pipe.poll(30)


@pytest.fixture
def holder(lock, tmp_path):
    """A process that holds the lock of `tmp_path/out`, and a function that lets it go."""
    ours, theirs = FORK.Pipe()
    process = FORK.Process(target=hold, args=(lock, tmp_path / "out", theirs))
    process.start()
    assert ours.recv() == "held"
    yield process, lambda: ours.send("release")
    process.kill()
    process.join(30)


def test_a_second_command_is_refused_and_told_by_whom(lock, holder, tmp_path):
    process, release = holder
    with pytest.raises(LockedError) as refused, lock(tmp_path / "out"):
        pass
    message = str(refused.value)
    assert f"{tmp_path / 'out'} is being written by another command" in message
    assert f"process {process.pid} on {socket.gethostname()}" in message
    assert "Wait until it has ended, or choose another output." in message
    release()
    process.join(30)
    with lock(tmp_path / "out"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_waiting_ends_when_the_other_does(lock, holder, tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "_NOTE_SECONDS", 0.0)
    _, release = holder
    notes: list[str] = []
    threading.Timer(0.4, release).start()
    began = time.monotonic()
    with lock(tmp_path / "out", wait=True, note=notes.append):
        assert time.monotonic() - began >= 0.3
    (note,) = notes
    assert note.startswith("waiting for `")


def test_the_lock_of_a_killed_command_is_taken_over_at_once(lock, holder, tmp_path):
    process, _ = holder
    os.kill(process.pid, signal.SIGKILL)
    process.join(30)
    began = time.monotonic()
    with lock(tmp_path / "out"):
        assert time.monotonic() - began < 1.0
    assert not list(tmp_path.rglob(".*lock"))


def test_another_process_with_the_same_id_is_not_the_holder(lock, holder, tmp_path):
    """After a crash the id may belong to anything: the start time tells."""
    (file,) = tmp_path.rglob(".*lock")
    content = json.loads(file.read_text("utf-8"))
    file.write_text(json.dumps({**content, "started": content["started"] - 1}), "utf-8")
    with lock(tmp_path / "out"):
        pass


@pytest.mark.parametrize("left", ["", "{", "[1]", '{"process": 1}'])
def test_a_lock_file_that_names_nobody_is_taken_over(tmp_path, left):
    (tmp_path / ".file.lock").write_text(left, "utf-8")
    with lock_file(tmp_path / "file"):
        assert json.loads((tmp_path / ".file.lock").read_text("utf-8"))["process"] == os.getpid()
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def elsewhere(tmp_path):
    """A lock file of a process on another machine."""
    with lock_file(tmp_path / "file"):
        content = json.loads((tmp_path / ".file.lock").read_text("utf-8"))
    file = tmp_path / ".file.lock"
    file.write_text(json.dumps({**content, "host": "elsewhere"}), "utf-8")
    return file


def test_a_living_command_of_another_machine_is_recognized(elsewhere, tmp_path, monkeypatch):
    """By the signs of life that appear while we look; the clocks are not compared."""
    monkeypatch.setattr(locks, "STALE_SECONDS", 20.0)
    threading.Timer(0.3, os.utime, args=(elsewhere, (1, 1))).start()
    told = pytest.raises(LockedError, match=rf"elsewhere.*remove .*{elsewhere.name}")
    with told, lock_file(tmp_path / "file"):
        pass


def test_a_silent_command_of_another_machine_is_replaced(elsewhere, tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "STALE_SECONDS", 0.5)
    began = time.monotonic()
    with lock_file(tmp_path / "file"):
        assert 0.5 <= time.monotonic() - began < 5
    assert not elsewhere.exists()


def test_a_held_lock_gives_signs_of_life(tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "BEAT_SECONDS", 0.05)
    locks._start_beating.cache_clear()
    with lock_folder(tmp_path):
        os.utime(tmp_path / ".lock", (1, 1))
        deadline = time.monotonic() + 5
        while (tmp_path / ".lock").stat().st_mtime == 1:
            assert time.monotonic() < deadline
            time.sleep(0.02)


def test_one_inside_the_other_and_threads(lock, tmp_path):
    """The same thread may lock again; another thread is another command."""
    refused = []

    def other():
        try:
            with lock(tmp_path / "out"):
                pass
        except LockedError as error:
            refused.append(error)

    with lock(tmp_path / "out"):
        with lock(tmp_path / "out"):
            pass
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert len(refused) == 1
        assert list(tmp_path.rglob(".*lock"))
    assert list(tmp_path.iterdir()) == []


def count_up(file, number):
    for _ in range(number):
        with lock_file(file, wait=True):
            value = int(file.read_text("ascii"))
            time.sleep(0.001)
            file.write_text(str(value + 1), "ascii")


def test_many_processes_take_turns(tmp_path):
    """Read, modify and write: none of 3 × 20 is lost."""
    file = tmp_path / "number"
    file.write_text("0", "ascii")
    processes = [FORK.Process(target=count_up, args=(file, 20)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert file.read_text("ascii") == "60"


def test_a_place_that_cannot_be_written_is_named(lock, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(WriteError, match="cannot be written"), lock(tmp_path / "file/out"):
        pass


def test_a_folder_that_nothing_was_written_to_is_removed_again(tmp_path):
    with pytest.raises(KeyError), lock_folder(tmp_path / "new"):
        raise KeyError
    assert not (tmp_path / "new").exists()
    with lock_folder(tmp_path / "new"):
        (tmp_path / "new/file").touch()
    assert [path.name for path in Path(tmp_path / "new").iterdir()] == ["file"]


def test_a_process_that_ends_at_once_can_release_its_locks_before(lock, holder, tmp_path):
    """And leaves those of others alone."""
    process, _ = holder
    with lock_folder(tmp_path / "mine"):
        assert json.loads(locks.lock_content(tmp_path / "mine") or "")["process"] == os.getpid()
        locks.release_locks()
        assert locks.lock_content(tmp_path / "mine") is None
    assert process.is_alive()
    with pytest.raises(LockedError), lock(tmp_path / "out"):
        pass
