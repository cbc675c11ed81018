"""The results file of a model: whose scores it has, and the commit of the code."""

from __future__ import annotations

import subprocess
from hashlib import sha256
from pathlib import Path

import pytest

from isoglot import model_results
from isoglot.errors import ModelError
from isoglot.model_results import (
    add_scores,
    current_commit,
    existing_results,
    fingerprint,
    model_folder,
)
from isoglot.results import Results, ResultsError, Score

SCORE = Score(task="tatoeba", version=1, language="sw-en", metric="accuracy@1", value=0.5, count=9)


@pytest.fixture
def folder(tmp_path) -> Path:
    place: Path = tmp_path / "run/model"
    place.mkdir(parents=True)
    (place / "config.json").write_text("{}")
    (place / "model.safetensors").write_bytes(b"weights")
    return place


def test_the_fingerprint_is_that_of_the_weights(folder):
    digest = sha256(b"weights").digest()
    assert fingerprint(folder) == sha256(digest).hexdigest()


def test_a_folder_or_a_run(folder, tmp_path):
    assert model_folder(folder) == folder
    assert model_folder(folder.parent) == folder
    with pytest.raises(ModelError, match="holds no model"):
        model_folder(tmp_path)


def test_scores_of_another_model_are_refused_and_kept(folder, tmp_path):
    out = tmp_path / "results.json"
    results = add_scores(existing_results(folder, out), [SCORE], out)
    assert existing_results(folder, out) == results
    (folder / "model.safetensors").write_bytes(b"other")
    with pytest.raises(ResultsError, match="scores of another model"):
        existing_results(folder, out)
    assert Results.read(out) == results


def test_existing_scores_of_tasks_are_noted(folder, tmp_path):
    notes: list[str] = []
    out = tmp_path / "results.json"
    add_scores(existing_results(folder, out, tasks=["tatoeba"], note=notes.append), [SCORE], out)
    assert notes == []
    existing_results(folder, out, tasks=["xnli", "tatoeba"], note=notes.append)
    (note,) = notes
    assert f"{out} has scores of tatoeba." in note


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_the_commit_of_a_checkout_and_none_of_a_package(tmp_path, monkeypatch):
    file = tmp_path / "src/isoglot/model_results.py"
    file.parent.mkdir(parents=True)
    file.write_text("")
    monkeypatch.setattr(model_results, "__file__", str(file))
    assert current_commit() is None
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "first")
    head = git(tmp_path, "rev-parse", "HEAD")
    assert current_commit() == head
    file.write_text("# changed\n")
    assert current_commit() == f"{head}+"
