"""A second command that writes to the same place is refused in a sentence, and changes nothing."""

from __future__ import annotations

import errno
import os
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from isoglot import cli
from isoglot.locks import lock_file, lock_folder
from tests.cli.conftest import SERVING, SILENT, all_commands
from tests.corpus.knowledge.small_dumps import write_dumps


def lock_saved(path: Path) -> AbstractContextManager[None]:
    """The lock of a fine-tuned model, which is a folder in the one that is named."""
    return lock_file(path / "testbed-nli-zero-shot-from-en-testbed-seed-0")


COMMANDS = {
    "prepare": (lock_folder, "prepare prepare.yaml -o out"),
    "pretrain": (lock_folder, "pretrain few.yaml --corpus CORPUS -o out --resume"),
    "study": (lock_folder, "study few.yaml --corpus CORPUS -o out --tasks testbed-sentiment"),
    "demo": (lock_folder, "demo -o out"),
    "knowledge extract": (lock_folder, "knowledge extract dumps/dumps.yaml -o out"),
    "transplant": (lock_file, "transplant model -t tokenizer -o out"),
    "vocabulary grow": (lock_file, "vocabulary grow model --words words.txt -o out"),
    "vocabulary trim": (lock_file, "vocabulary trim model --text words.txt -o out"),
    "adapt": (lock_folder, "adapt model --text en=words.txt -o out"),
    "align": (lock_file, "align aa-bb.tsv --model model -o out"),
    "mine": (lock_file, "mine words.txt words.txt --model model -o out"),
    "export": (lock_file, "export model -f sentence-transformers --to out"),
    "knowledge graph": (lock_folder, "knowledge graph graph.yaml -o out"),
    "knowledge heldout": (lock_folder, "knowledge heldout KNOWING -o out"),
    "knowledge link": (lock_folder, "knowledge link tables -c out"),
    "evaluate": (
        lock_file,
        "evaluate model --tasks mlama --data data -o new/results.json --save-predictions out",
    ),
    "finetune": (
        lock_saved,
        "finetune model --tasks testbed-nli --protocol testbed -o results.json --save-models out",
    ),
}
WAITING = {
    "report": "test_pages_that_are_written_at_once_wait_for_each_other",
    "analyze plot": "the same function writes it",
    "analyze transfer": "the same function writes it",
    "show corpus": "test_pages_that_are_written_at_once_wait_for_each_other",
    "show batch": "the same function writes it",
    "translate": "test_scores_of_commands_that_run_at_once_are_all_kept",
    "cooccurrence count": "the counts of the other command are used",
    "cooccurrence phrases": "the phrases of the other command are used",
    "fetch": "files that are there are not fetched again",
}
"""Commands that wait for another one, and why that is right."""


def test_every_command_that_writes_is_tried():
    assert {*COMMANDS, *WAITING} == all_commands() - SILENT - SERVING
    assert not set(COMMANDS) & set(WAITING)


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


@pytest.fixture
def files(raw, knowing, tiny_model) -> Path:
    """A folder with what the commands read."""
    (raw / "model").symlink_to(tiny_model)
    (raw / "words.txt").write_text("house\nnyumba\n", encoding="utf-8")
    (raw / "aa-bb.tsv").write_text("ka lo\tmitu\n", encoding="utf-8")
    (raw / "graph.yaml").write_text("graphs: {mine: {files: [names.tsv]}}\n", encoding="utf-8")
    (raw / "names.tsv").write_text("Q1\ten\tKenya\nQ1\tde\tKenia\n", encoding="utf-8")
    write_dumps(raw / "dumps")
    facts = raw / "data/mlama1.1/en"
    facts.mkdir(parents=True)
    (facts / "templates.jsonl").write_text('{"relation": "P36", "template": "[X] [Y] ."}')
    (facts / "P36.jsonl").write_text('{"uuid": "1", "sub_label": "kalo", "obj_label": "x"}')
    return raw


@pytest.mark.parametrize("command", COMMANDS)
def test_the_second_is_refused(command, isoglot, files, corpus, knowing):
    lock, arguments = COMMANDS[command]
    for word, folder in {"CORPUS": corpus.folder, "KNOWING": knowing.folder}.items():
        arguments = arguments.replace(word, str(folder))
    if command == "knowledge link":
        shutil.copytree(corpus.folder, files / "out")
        assert isoglot("knowledge", "graph", "graph.yaml", "--out", "tables").code == 0
    with another_command(lock, files / "out"):
        before = sorted(path.name for path in files.rglob("*"))
        said = isoglot(*arguments.split())
        assert said.code == 1, said
        assert "is being written by another command: `" in said.err
        assert f"process {os.getpid()} on" in said.err
        assert "Traceback" not in said.err
        assert sorted(path.name for path in files.rglob("*")) == before


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
