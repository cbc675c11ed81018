"""What is reused, scored again and told; which outcomes are kept; a scorer for every kind."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module

import pytest

from isoglot.evaluation.evaluate import evaluate_tasks
from isoglot.evaluation.retrieval import IDENTICAL
from isoglot.evaluation.settings import FeatureConfig
from isoglot.evaluation.split_scores import SCORERS
from isoglot.tasks import FINE_TUNED_KINDS, all_tasks

SETTINGS = FeatureConfig()


def test_changed_data_are_scored_again_and_both_are_told(folder, data, tmp_path):
    out = tmp_path / "results.json"
    first = evaluate_tasks(folder, ["tatoeba"], data, SETTINGS, out=out)
    file = data / "tatoeba/swh-eng.tsv"
    rows = file.read_text(encoding="utf-8").splitlines()
    file.write_text("\n".join(rows[:-4]), encoding="utf-8")
    told: list[str] = []
    again = evaluate_tasks(folder, ["tatoeba"], data, SETTINGS, out=out, note=told.append)
    (note,) = told
    assert f"tatoeba in de-en is taken from {out}: weights and data are the same." in note
    assert f"tatoeba in sw-en is scored again: the scores in {out} are of other data" in note
    assert len(again.scores) == len(first.scores)
    for before, after in ((first, 20), (again, 16)):
        assert {s.count for s in before.scores if s.language == "sw-en"} == {after}
    told.clear()
    old = replace(again, scores=tuple(replace(s, data=None) for s in again.scores))
    old.write(out)
    evaluate_tasks(folder, ["tatoeba"], data, SETTINGS, out=out, languages=["sw"], note=told.append)
    assert "sw-en is scored again" in told[0]


def test_the_dev_part_of_mining_is_part_of_its_data(folder, data, tmp_path):
    out = tmp_path / "results.json"
    first = evaluate_tasks(folder, ["bucc"], data, SETTINGS, out=out)
    place = data / "bucc2018/de-en"
    for code in ("de", "en"):
        (place / f"de-en.sample.{code}").write_text(f"{code}-1\tka\n", encoding="utf-8")
    (place / "de-en.sample.gold").write_text("", encoding="utf-8")
    again = evaluate_tasks(folder, ["bucc"], data, SETTINGS, out=out)
    assert {s.data for s in first.scores}.isdisjoint({s.data for s in again.scores})


def test_pairs_with_one_text_in_both_languages_are_told(folder, data, tmp_path):
    file = data / "tatoeba/swh-eng.tsv"
    rows = file.read_text(encoding="utf-8").splitlines()
    file.write_text("\n".join([*rows, "Paris\tparis", "NATO\tNATO"]), encoding="utf-8")
    told: list[str] = []
    out = tmp_path / "r.json"
    found = evaluate_tasks(folder, ["tatoeba"], data, SETTINGS, out=out, note=told.append).scores
    (note,) = told
    assert "tatoeba: 2 pairs have the same text in both languages (sw-en 2)" in note
    without = [s for s in found if s.metric == f"accuracy@1 {IDENTICAL}"]
    assert {(s.language, s.count) for s in without} == {("sw-en", 20)}


def test_outcomes_are_kept_where_models_are_compared(folder, data, tmp_path):
    found = evaluate_tasks(folder, ["tatoeba"], data, SETTINGS, out=tmp_path / "r.json").scores
    kept = [(s.layer, s.metric) for s in found if s.outcomes is not None]
    assert kept == [(None, "accuracy@1")] * 2
    for one in found:
        assert one.low is not None
        assert one.high is not None
        assert one.low <= one.value <= one.high
        assert one.halves is not None
        assert sum(one.halves) / 2 == pytest.approx(one.value), "20 examples: halves of ten"


def test_every_kind_of_task_has_a_scorer():
    assert {task.kind for task in all_tasks()} == FINE_TUNED_KINDS | set(SCORERS)
    for place in SCORERS.values():
        module, _, function = place.partition(":")
        assert callable(getattr(import_module(f"isoglot.evaluation.{module}"), function))
