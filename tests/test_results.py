"""Results files: written and read back, older ones, and those that are refused."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from isoglot.results import SCHEMA, Results, ResultsError, Score

SCORE = Score(
    task="xnli", version=1, language="sw", metric="accuracy", value=0.5, count=10,
    higher_is_better=True, layer=None, seed=3, scenario="zero-shot",
    commit="c0", selection="source-dev", epoch=2, low=0.4, high=0.6, halves=(0.25, 0.75),
    outcomes="1x10:", data="d0", chance=0.3,
)  # fmt: skip
RESULTS = Results(model="m", fingerprint="f", scores=(SCORE,))


def test_what_is_written_is_read(tmp_path):
    RESULTS.write(tmp_path / "results.json")
    assert Results.read(tmp_path / "results.json") == RESULTS
    assert json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))["schema"] == 5


def test_scores_without_an_epoch_are_read(tmp_path):
    """Schema 3 had no epoch."""
    RESULTS.write(tmp_path / "results.json")
    content = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    content["schema"] = 3
    for name in ("epoch", "low", "high", "halves", "outcomes", "data", "chance"):
        del content["scores"][0][name]
    (tmp_path / "old.json").write_text(json.dumps(content), encoding="utf-8")
    (found,) = Results.read(tmp_path / "old.json").scores
    assert found == Score(**content["scores"][0])
    assert (found.epoch, found.low, found.halves, found.data) == (None, None, None, None)


def test_new_scores_replace_those_of_the_same_thing():
    better, other = replace(SCORE, value=0.7, count=9, low=0.6, data="d1"), replace(SCORE, seed=4)
    assert RESULTS.merged([other, better]).scores == (other, better)


@pytest.mark.parametrize(
    "change",
    [{"language": "de"}, {"metric": "f1"}, {"layer": 3}, {"scenario": None}, {"version": 2}],
)
def test_scores_of_something_else_are_kept(change):
    other = replace(SCORE, **change)
    assert RESULTS.merged([other]).scores == (SCORE, other)


def test_scores_of_other_data_are_dropped_with_the_whole_cell():
    stale = replace(SCORE, metric="f1")
    others = [replace(SCORE, task="xcopa"), replace(SCORE, language="de"),
              replace(SCORE, scenario=None), replace(SCORE, seed=9)]  # fmt: skip
    results = RESULTS.merged([stale, *others])
    again = replace(SCORE, data="d1")
    assert results.merged([again]).scores == (*others, again)
    same = replace(SCORE, value=0.9)
    assert results.merged([same]).scores == (stale, *others, same)
    unknown = replace(SCORE, data=None)
    assert results.merged([unknown]).scores == (stale, *others, unknown)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not JSON"),
        ("[1]", "has no schema number"),
        ("{}", "has no schema number"),
        (json.dumps({"schema": 2}), "reads 3 to 5. Evaluate again"),
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


WRITTEN: dict[str, Any] = {
    "task": "tatoeba", "version": 1, "language": "de", "metric": "accuracy@1", "value": 0.5,
    "count": 9,
}  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [
        {"task": 5},
        {"language": None},
        {"metric": ["x"]},
        {"value": "0.5"},
        {"value": None},
        {"value": True},
        {"count": "9"},
        {"count": 9.5},
        {"version": None, "layer": "x"},
        {"seed": [1]},
        {"halves": [1, "x"]},
        {"halves": 5},
        {"scenario": 5},
        {"higher_is_better": 1},
        {"unknown": 1},
        {"low": "x"},
        {"chance": [0.5]},
    ],
)
def test_scores_of_another_type_than_written_are_refused(tmp_path, change):
    content = {
        "schema": SCHEMA,
        "model": "m",
        "fingerprint": "f",
        "scores": [{**WRITTEN, **change}],
    }
    (tmp_path / "r.json").write_text(json.dumps(content))
    with pytest.raises(ResultsError, match=r"r\.json: does not hold what schema"):
        Results.read(tmp_path / "r.json")
    content["scores"] = [WRITTEN]
    (tmp_path / "r.json").write_text(json.dumps(content))
    assert Results.read(tmp_path / "r.json").scores[0].value == 0.5


@pytest.mark.parametrize("scores", [5, None, "ab", [5], [None], [["x"]], {"a": 1}])
def test_scores_that_are_no_list_are_refused(tmp_path, scores):
    content = {"schema": SCHEMA, "model": "m", "fingerprint": "f", "scores": scores}
    (tmp_path / "r.json").write_text(json.dumps(content))
    with pytest.raises(ResultsError):
        Results.read(tmp_path / "r.json")


@pytest.mark.parametrize("content", ["[" * 100_000, "9" * 9_000, "", "nul"])
def test_no_json_is_refused(tmp_path, content):
    (tmp_path / "r.json").write_text(content)
    with pytest.raises(ResultsError, match=r"r\.json"):
        Results.read(tmp_path / "r.json")
