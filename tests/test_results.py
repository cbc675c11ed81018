"""Results files: written and read back, older ones, and those that are refused."""

from __future__ import annotations

import json
from dataclasses import replace

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


def test_scores_without_an_epoch_are_read(tmp_path):
    """Schema 3 had no epoch."""
    RESULTS.write(tmp_path / "results.json")
    content = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    content["schema"] = 3
    del content["scores"][0]["epoch"]
    (tmp_path / "old.json").write_text(json.dumps(content), encoding="utf-8")
    assert Results.read(tmp_path / "old.json").scores == (replace(SCORE, epoch=None),)


def test_new_scores_replace_those_of_the_same_thing():
    better, other = replace(SCORE, value=0.7, count=9), replace(SCORE, seed=4)
    assert RESULTS.merged([other, better]).scores == (other, better)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not JSON"),
        ("[1]", "has no schema number"),
        ("{}", "has no schema number"),
        (json.dumps({"schema": 2}), "reads 3 to 4. Evaluate again"),
        (json.dumps({"schema": SCHEMA + 1, "isoglot": "9.9"}), "written by isoglot 9.9"),
        (json.dumps({"schema": 4, "model": "m", "fingerprint": "f"}), "'scores'"),
        (json.dumps({"schema": 4, "model": "m", "scores": []}), "fingerprint"),
        (json.dumps({"schema": 4, "model": "m", "fingerprint": "f", "scores": [{"x": 1}]}), "'x'"),
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
