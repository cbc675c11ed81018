"""The results file of a model: whose scores it has, and the commit of the code."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from isoglot import model_results
from isoglot.model_results import (
    add_scores,
    current_commit,
    existing_results,
    fingerprint,
    hash_examples,
    reuse_note,
    scored_data,
)
from isoglot.results import Results, ResultsError, Score
from isoglot.tasks import find_task
from isoglot.tasks.examples import AlignedPair, SentencePair

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


def test_scores_of_another_model_are_refused_and_kept(folder, tmp_path):
    out = tmp_path / "results.json"
    results = add_scores(existing_results(folder, out), [SCORE], out)
    assert existing_results(folder, out) == results
    (folder / "model.safetensors").write_bytes(b"other")
    with pytest.raises(ResultsError, match="scores of another model"):
        existing_results(folder, out)
    assert Results.read(out) == results


def test_the_hash_of_examples_changes_with_any_of_them():
    pairs = [SentencePair(first="a", second="b"), SentencePair(first="c", second="d")]
    found = hash_examples(pairs)
    assert found == hash_examples(list(pairs))
    assert found != hash_examples(pairs[::-1])
    assert found != hash_examples(pairs[:1])
    assert found != hash_examples([pairs[0], replace(pairs[1], second="e")])
    assert found != hash_examples(pairs[:1], pairs[1:]), "two sets are not their union"


def test_the_hash_does_not_depend_on_the_order_of_a_set():
    links = [(1, 2), (3, 4), (9, 1), (2**40, 7)]
    one, other = (
        AlignedPair(first=("a",), second=("b",), sure=frozenset(some), possible=frozenset(some))
        for some in (links, links[::-1])
    )
    assert hash_examples([one]) == hash_examples([other])


def test_the_data_of_scores():
    task = find_task("tatoeba")
    scores = [
        replace(SCORE, data="x"), replace(SCORE, data=None, language="de-en"),
        replace(SCORE, data="y", scenario="centered"), replace(SCORE, data="z", version=0),
    ]  # fmt: skip
    assert scored_data(scores, task, "sw-en", None) == {"x"}
    assert scored_data(scores, task, "de-en", None) == {None}
    assert scored_data(scores, task, "fr-en", None) == set()


def test_a_note_names_what_is_reused_and_what_is_not(tmp_path):
    out = tmp_path / "results.json"
    assert reuse_note(out, "tatoeba", [], []) == ""
    note = reuse_note(out, "tatoeba", ["sw-en"], ["de-en"])
    assert f"tatoeba in sw-en is taken from {out}: weights and data are the same." in note
    assert "tatoeba in de-en is scored again" in note


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


def test_scores_of_commands_that_run_at_once_are_all_kept(tmp_path, monkeypatch):
    """Both have read the file before either writes."""

    def score(language: str, value: float) -> Score:
        return replace(SCORE, language=language, value=value)

    monkeypatch.setattr(model_results, "current_commit", lambda: None)
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    out = tmp_path / "results.json"
    first, second = existing_results(tmp_path, out), existing_results(tmp_path, out)
    add_scores(first, [score("de", 0.1)], out)
    joined = add_scores(second, [score("sw", 0.2)], out)
    add_scores(first, [score("de", 0.3)], out)
    assert {s.language for s in joined.scores} == {"de", "sw"}
    assert {s.language: s.value for s in Results.read(out).scores} == {"de": 0.3, "sw": 0.2}
    (tmp_path / "model.safetensors").write_bytes(b"other weights")
    other = Results(model="m", fingerprint=model_results.fingerprint(tmp_path), scores=())
    with pytest.raises(ResultsError, match="another model"):
        add_scores(other, [score("de", 0.1)], out)
    assert [path.name for path in tmp_path.glob(".*")] == []
