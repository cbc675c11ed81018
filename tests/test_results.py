"""Results files: written and read back, older ones, and those that are refused."""

from __future__ import annotations

import json

import pytest

from isoglot.results import SCHEMA, Results, ResultsError, Score

SCORE = Score(
    task="xnli", version=1, language="sw", metric="accuracy", value=0.5, count=10,
    higher_is_better=True, layer=None, seed=3, scenario="zero-shot",
    commit="c0", selection="source-dev", epoch=2,
)  # fmt: skip
RESULTS = Results(model="m", fingerprint="f", scores=(SCORE,))


def test_what_is_written_is_read(tmp_path):
    RESULTS.write(tmp_path / "results.json")
    assert Results.read(tmp_path / "results.json") == RESULTS
    assert json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))["schema"] == 4


def test_the_first_schema_is_still_read(tmp_path):
    old = {
        "schema": 1, "isoglot": "0.1.0", "model": "m", "fingerprint": "f",
        "scores": [
            {"task": "retrieval", "version": 1, "language": "en-de", "metric": "accuracy@1",
             "value": 1.0, "count": 2, "higher_is_better": True, "layer": 0}
        ],
    }  # fmt: skip
    (tmp_path / "old.json").write_text(json.dumps(old), encoding="utf-8")
    found = Results.read(tmp_path / "old.json")
    (score,) = found.scores
    assert (score.commit, score.seed, score.layer) == (None, None, 0)


def test_what_the_second_schema_says_of_the_file_is_said_of_its_scores(tmp_path):
    score = {
        "task": "xnli", "version": 1, "language": "sw", "metric": "accuracy", "value": 0.5,
        "count": 10,
    }  # fmt: skip
    old = {
        "schema": 2, "model": "m", "fingerprint": "f", "commit": "c0", "selection": "all-dev",
        "scores": [{**score, "seed": 0}, {**score, "seed": None}],
    }  # fmt: skip
    (tmp_path / "old.json").write_text(json.dumps(old), encoding="utf-8")
    trained, read = Results.read(tmp_path / "old.json").scores
    assert (trained.commit, trained.selection) == ("c0", "all-dev")
    assert (read.commit, read.selection) == ("c0", None), "nothing was chosen for it"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not JSON"),
        ("[1]", "has no schema number"),
        ("{}", "has no schema number"),
        (json.dumps({"schema": SCHEMA + 1, "isoglot": "9.9"}), "written by isoglot 9.9"),
        (json.dumps({"schema": 2, "model": "m", "fingerprint": "f"}), "'scores'"),
        (json.dumps({"schema": 2, "model": "m", "scores": []}), "fingerprint"),
        (json.dumps({"schema": 2, "model": "m", "fingerprint": "f", "scores": [{"x": 1}]}), "'x'"),
    ],
)
def test_what_is_refused(tmp_path, content, message):
    file = tmp_path / "results.json"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(ResultsError, match=message) as caught:
        Results.read(file)
    assert str(file) in str(caught.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(ResultsError, match="No such file"):
        Results.read(tmp_path / "results.json")
