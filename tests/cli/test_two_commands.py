"""A second command that writes to the same place is refused in a sentence, and changes nothing."""

from __future__ import annotations

import errno
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from isoglot import cli
from isoglot.locks import lock_file, lock_folder
from tests.cli.conftest import FEW_STEPS
from tests.corpus.knowledge.small_dumps import write_dumps

COMMANDS = {
    "prepare": (lock_folder, "prepare prepare.yaml -o out"),
    "pretrain": (lock_folder, "pretrain few.yaml --corpus CORPUS -o out --resume"),
    "study": (lock_folder, "study few.yaml --corpus CORPUS -o out --tasks testbed-sentiment"),
    "demo": (lock_folder, "demo -o out"),
    "knowledge extract": (lock_folder, "knowledge extract dumps/dumps.yaml -o out"),
    "transplant": (lock_file, "transplant model -t tokenizer -o out"),
    "vocabulary grow": (lock_file, "vocabulary grow model --words words.txt -o out"),
    "vocabulary trim": (lock_file, "vocabulary trim model --text words.txt -o out"),
}


@contextmanager
def another_command(lock, path: Path) -> Iterator[None]:
    """Another thread, which is another command to the lock, writes to a place meanwhile."""
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with lock(path):
            held.set()
            done.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    assert held.wait(60)
    try:
        yield
    finally:
        done.set()
        thread.join()


@pytest.mark.parametrize("command", COMMANDS)
def test_the_second_is_refused(command, isoglot, raw, corpus):
    lock, arguments = COMMANDS[command]
    (raw / "few.yaml").write_text(FEW_STEPS, encoding="utf-8")
    (raw / "words.txt").write_text("house\n", encoding="utf-8")
    write_dumps(raw / "dumps")
    with another_command(lock, raw / "out"):
        before = sorted(path.name for path in raw.rglob("*"))
        said = isoglot(*arguments.replace("CORPUS", str(corpus.folder)).split())
        assert said.code == 1, said
        assert "out is being written by another command: `" in said.err
        assert f"process {os.getpid()} on" in said.err
        assert "Traceback" not in said.err
        assert sorted(path.name for path in raw.rglob("*")) == before


def test_pages_that_are_written_at_once_wait_for_each_other(isoglot, workdir, corpus):
    page = workdir / "page.html"
    release = threading.Event()

    def hold() -> None:
        with lock_file(page):
            held.set()
            release.wait(60)

    held = threading.Event()
    thread = threading.Thread(target=hold)
    thread.start()
    assert held.wait(60)
    threading.Timer(0.5, release.set).start()
    assert not page.exists()
    said = isoglot("show", "corpus", corpus.folder, "--samples", "0", "--html", page)
    assert said.code == 0, said.err
    assert release.is_set()
    assert page.is_file()
    thread.join()


FAULTS = {
    "a full disk that only the library noticed": (
        RuntimeError("I/O error: No space left on device (os error 28)"),
        "The disk: cannot be written (No space left on device)",
    ),
    "a file that may not be read": (
        PermissionError(errno.EACCES, "Permission denied", "/secret"),
        "/secret: Permission denied.",
    ),
    "a read-only disk": (
        OSError(errno.EROFS, "Read-only file system", "/mnt/out"),
        "/mnt/out: cannot be written (Read-only file system)",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_of_the_system_are_sentences_wherever_they_come_from(fault, isoglot, monkeypatch):
    error, message = FAULTS[fault]

    def fail() -> None:
        raise error

    monkeypatch.setattr(cli, "app", fail)
    said = isoglot("show", "recipes")
    assert said.code == 1
    assert said.err.startswith("isoglot: ")
    assert message in said.err


def test_a_fault_of_the_program_keeps_its_traceback(monkeypatch):
    def fail() -> None:
        raise RuntimeError("shapes differ")

    monkeypatch.setattr(cli, "app", fail)
    monkeypatch.setattr(sys, "argv", ["isoglot", "show", "recipes"])
    with pytest.raises(RuntimeError, match="shapes differ"):
        cli.main()
