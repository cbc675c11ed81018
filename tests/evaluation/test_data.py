"""Splits, examples and pairs of an evaluation; pretokenized models read pretokenized text."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from isoglot.corpus.tokenization.pretokenization import Pretokenizer
from isoglot.evaluation.data import splits_to_score
from isoglot.evaluation.embed import embed
from isoglot.evaluation.evaluate import evaluate, evaluate_tasks
from isoglot.evaluation.loading import scoring_note
from isoglot.evaluation.retrieval import score_retrieval
from isoglot.evaluation.settings import FeatureConfig
from isoglot.evaluation.tokenize_texts import tokenize_words
from isoglot.evaluation.visualize import visualize_folder
from isoglot.tasks import find_task
from isoglot.visualizations import Visualizations


@pytest.fixture
def dividing(folder, tmp_path) -> Path:
    place: Path = tmp_path / "dividing"
    shutil.copytree(folder, place)
    Pretokenizer({"*": "moses", "zh": "zh"}).save(place)
    return place


@pytest.fixture
def read(monkeypatch) -> list[list[str]]:
    """The texts that are read, from here on."""
    texts: list[list[str]] = []

    def heard(real):
        def call(*args, **options):
            texts.append(list(args[-1]))
            return real(*args, **options)

        return call

    for scorer in (score_retrieval,):
        monkeypatch.setitem(scorer.__globals__, "embed", heard(embed))
    monkeypatch.setattr("isoglot.evaluation.word_alignment.tokenize_words", heard(tokenize_words))
    return texts


def test_pairs_of_your_own(dividing, folder, read, tmp_path):
    file = tmp_path / "en-zh.tsv"
    file.write_text("No, no.\t渔夫在\n(Yes)\t渔网。\n", encoding="utf-8")
    evaluate(dividing, pairs=[file])
    assert read == [["No , no .", "( Yes )"], ["渔夫 在", "渔网 。"]]
    read.clear()
    evaluate(folder, pairs=[file])
    assert read == [["No, no.", "(Yes)"], ["渔夫在", "渔网。"]]


def test_tasks(dividing, read, tmp_path):
    (tmp_path / "tatoeba").mkdir()
    (tmp_path / "tatoeba/cmn-eng.tsv").write_text("渔夫在\tNo, no.\n渔网。\t(Yes)\n", "utf-8")
    place = tmp_path / "xlm-align/de-en"
    place.mkdir(parents=True)
    for code in ("de", "en"):
        (place / f"test.{code}").write_text("a,b c.\n", encoding="utf-8")
    (place / "alignv2.txt").write_text("0 1 1 S\n", encoding="utf-8")
    place = tmp_path / "bucc2018/de-en"
    place.mkdir(parents=True)
    for code in ("de", "en"):
        rows = f"{code}-0\t{code}(a)\n{code}-1\t{code},b\n"
        (place / f"de-en.training.{code}").write_text(rows, encoding="utf-8")
    (place / "de-en.training.gold").write_text("de-0\ten-0\n", encoding="utf-8")
    evaluate_tasks(
        dividing,
        ["tatoeba", "alignment", "bucc"],
        tmp_path,
        FeatureConfig(),
        out=tmp_path / "results.json",
    )
    assert read[:2] == [["渔夫 在", "渔网 。"], ["No , no .", "( Yes )"]]
    assert read[2:4] == [["a,b", "c."]] * 2, "words that are given"
    assert sorted(map(sorted, read[4:])) == [["de ( a )", "de , b"], ["en ( a )", "en , b"]]


def test_facts_keep_the_objects_place(dividing, tmp_path):
    place = tmp_path / "lama/data/TREx"
    place.mkdir(parents=True)
    relation = {"relation": "P1", "template": "[X], is (in) [Y].", "type": "N-1", "label": ""}
    (tmp_path / "lama/data/relations.jsonl").write_text(json.dumps(relation) + "\n")
    fact = {"uuid": "1", "predicate_id": "P1", "sub_label": "ka", "obj_label": "."}
    (place / "P1.jsonl").write_text(json.dumps(fact) + "\n")
    heard = []
    evaluate_tasks(
        dividing,
        ["lama"],
        tmp_path,
        FeatureConfig(max_masks=2),
        out=tmp_path / "results.json",
        on_prediction=lambda *said: heard.append(said[2:]),
    )
    ((asked, guess),) = heard
    assert asked.prompt == "ka , is ( in ) [Y] ."
    assert guess.log_probability > float("-inf"), "the masks were found in what was read"


def test_visualizations(dividing, monkeypatch):
    shown = []

    def made(*args, **_):
        shown.append(args[2])
        return Visualizations(fingerprint="", sentence_map=None, grids=())

    monkeypatch.setattr("isoglot.evaluation.visualize.visualize_encoder", made)
    visualize_folder(dividing, {"en-zh": (["No, no."], ["渔夫在"])})
    assert shown == [{"en-zh": (["No , no ."], ["渔夫 在"])}]


def test_what_is_not_divided_is_said(dividing, folder):
    note = scoring_note(dividing)
    assert note is not None
    assert "Words that a task gives" in note
    assert scoring_note(folder) is None


def test_dev_stands_in_where_there_is_no_test(data_folder):
    parts = splits_to_score(find_task("tydiqa"), data_folder, None)
    assert {part.name for part in parts} == {"dev"}
    assert {part.name for part in splits_to_score(find_task("sick"), data_folder, None)} == {"test"}
    english = splits_to_score(find_task("xquad"), data_folder, ["en"])
    assert [part.language for part in english] == ["en"]
    assert len(splits_to_score(find_task("alignment"), data_folder, ["fr", "hi"])) == 2
