"""Input files are hashed once, in parallel, and again only where they have changed."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

import pytest

from isoglot.corpus.engine.runner import StageRunner
from isoglot.corpus.pipeline import inputs
from isoglot.corpus.pipeline.inputs import HashTask, hash_file, hash_inputs, remember_hashes


@pytest.fixture
def files(tmp_path) -> list[Path]:
    found = []
    for number in range(5):
        path = tmp_path / "raw" / f"{number}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"text {number}\n" * 1000)
        found.append(path)
    return found


def test_files_are_hashed_once(tmp_path, files, monkeypatch):
    hashed: list[Path] = []

    def noted(task: HashTask) -> str:
        hashed.append(task.path)
        return hash_file(task)

    monkeypatch.setattr(inputs, "hash_file", noted)
    monkeypatch.setattr(inputs, "_SMALL_BYTES", 0)
    runner = StageRunner(work=tmp_path / ".work", workers=3)
    entries, known = hash_inputs(files, tmp_path, runner)
    assert sorted(hashed) == files
    for path, entry in entries.items():
        assert entry.sha256 == sha256(path.read_bytes()).hexdigest()
        assert entry.file == f"raw/{path.name}"
        assert entry.bytes == path.stat().st_size
    assert list(entries) == files
    remember_hashes(runner.work, known)
    hashed.clear()
    before = files[1].stat()
    # of the same size, and later
    files[1].write_text("TEXT 1\n" * 1000)
    os.utime(files[1], ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    again, _ = hash_inputs(files, tmp_path, runner)
    assert hashed == [files[1]]
    assert again[files[1]].sha256 == sha256(files[1].read_bytes()).hexdigest()
    assert {p: e for p, e in again.items() if p != files[1]} == {
        p: e for p, e in entries.items() if p != files[1]
    }


@pytest.mark.parametrize("damage", ["", "[]", "{"])
def test_hashes_that_cannot_be_read_are_made_again(tmp_path, files, damage):
    runner = StageRunner(work=tmp_path / ".work")
    entries, known = hash_inputs(files, tmp_path, runner)
    remember_hashes(runner.work, known)
    (runner.work / "inputs.json").write_text(damage)
    assert hash_inputs(files, tmp_path, runner) == (entries, known)
