from __future__ import annotations

import subprocess
from pathlib import Path

import isoglot
from isoglot.evaluate.commit import commit


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_the_commit_of_a_checkout_and_none_of_a_package(tmp_path, monkeypatch):
    file = tmp_path / "src/isoglot/__init__.py"
    file.parent.mkdir(parents=True)
    file.write_text("")
    monkeypatch.setattr(isoglot, "__file__", str(file))
    assert commit() is None
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "first")
    head = git(tmp_path, "rev-parse", "HEAD")
    assert commit() == head
    file.write_text("# changed\n")
    assert commit() == f"{head}+"
