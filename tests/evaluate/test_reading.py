"""A model whose text was divided into words reads sentences so, and given words as they are."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from isoglot.corpus.pretokenize import Pretokenization
from isoglot.evaluate import FeatureSettings
from isoglot.evaluate.embed import embed
from isoglot.evaluate.exhibits import exhibits_of_folder
from isoglot.evaluate.mining import score_mining
from isoglot.evaluate.pieces import word_pieces
from isoglot.evaluate.retrieval import retrieval
from isoglot.evaluate.run import evaluate_retrieval, evaluate_tasks, scored_without
from isoglot.exhibits import Exhibits


@pytest.fixture
def dividing(folder, tmp_path) -> Path:
    place: Path = tmp_path / "dividing"
    shutil.copytree(folder, place)
    Pretokenization({"*": "moses", "zh": "zh"}).save(place)
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

    for scorer in (retrieval, score_mining):
        monkeypatch.setitem(scorer.__globals__, "embed", heard(embed))
    monkeypatch.setattr("isoglot.evaluate.alignment.word_pieces", heard(word_pieces))
    return texts


def test_pairs_of_your_own(dividing, folder, read, tmp_path):
    file = tmp_path / "en-zh.tsv"
    file.write_text("No, no.\t渔夫在\n(Yes)\t渔网。\n", encoding="utf-8")
    evaluate_retrieval(dividing, [file], most=5)
    assert read == [["No , no .", "( Yes )"], ["渔夫 在", "渔网 。"]]
    read.clear()
    evaluate_retrieval(folder, [file], most=5)
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
        FeatureSettings(),
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
        FeatureSettings(masks=2),
        out=tmp_path / "results.json",
        listen=lambda *said: heard.append(said[2:]),
    )
    ((asked, guess),) = heard
    assert asked.prompt == "ka , is ( in ) [Y] ."
    assert guess.sure > float("-inf"), "the masks were found in what was read"


def test_exhibits(dividing, monkeypatch):
    shown = []

    def made(*args, **_):
        shown.append(args[2])
        return Exhibits(fingerprint="", space=None, grids=())

    monkeypatch.setattr("isoglot.evaluate.exhibits.make_exhibits", made)
    exhibits_of_folder(dividing, {"en-zh": (["No, no."], ["渔夫在"])})
    assert shown == [{"en-zh": (["No , no ."], ["渔夫 在"])}]


def test_what_is_not_divided_is_said(dividing, folder):
    note = scored_without(dividing)
    assert note is not None
    assert "Words that a task gives" in note
    assert scored_without(folder) is None
