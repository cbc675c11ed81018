"""An evaluation of a folder: what is refused, and what results.json holds."""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256

import pytest
import torch

from isoglot import __version__
from isoglot.errors import CorpusError, ModelError
from isoglot.evaluate.commit import commit
from isoglot.evaluate.run import (
    add_scores,
    evaluate_retrieval,
    fingerprint,
    model_folder,
    open_for_scoring,
    read_pairs,
    scored_without,
    so_far,
)
from isoglot.models import Encoder, ModelConfig, export
from isoglot.results import Results, ResultsError


def test_the_results_file(folder, corpus, tmp_path):
    pairs = corpus.folder.parent / "raw/pairs/aa-bb.tsv"
    results = evaluate_retrieval(folder, [pairs], most=7)
    results.write(tmp_path / "new/results.json")
    content = json.loads((tmp_path / "new/results.json").read_text(encoding="utf-8"))
    assert list(content) == [
        "schema", "isoglot", "model", "fingerprint", "scores", "averages",
    ]  # fmt: skip
    assert content["schema"] == 4
    assert content["isoglot"] == __version__
    assert content["model"] == str(folder)
    assert len(content["scores"]) == 3 * 4, "two directions, their mean; three layers, embeddings"
    assert content["scores"][1] == {
        "task": "retrieval",
        "version": 1,
        "language": "aa-bb",
        "metric": "accuracy@1 aa→bb",
        "value": results.scores[1].value,
        "count": 7,
        "higher_is_better": True,
        "layer": 0,
        "seed": None,
        "scenario": None,
        "selection": None,
        "epoch": None,
        "commit": commit(),
    }
    assert [file.name for file in (tmp_path / "new").iterdir()] == ["results.json"]


def test_other_scores_of_the_model_stay(folder, corpus, tmp_path):
    pairs = corpus.folder.parent / "raw/pairs/aa-bb.tsv"
    out = tmp_path / "results.json"
    results = evaluate_retrieval(folder, [pairs], most=7)
    other = replace(results.scores[0], task="tatoeba", value=0.25)
    replace(results, scores=(other, replace(results.scores[0], value=9.0))).write(out)
    add_scores(so_far(folder, out), results.scores, out)
    assert Results.read(out).scores == (other, *results.scores), "and none is there twice"
    replace(results, fingerprint="another", scores=(other,)).write(out)
    with pytest.raises(ResultsError, match="scores of another model"):
        so_far(folder, out)
    assert Results.read(out).scores == (other,), "nothing of it is lost"


def test_lines_of_pairs_that_cannot_be_read_are_told(tmp_path):
    file = tmp_path / "aa-bb.tsv"
    file.write_bytes(b"one\tuno\ntwo\nthree\ttr\xe9s\nfour\tcuatro\n")
    told: list[str] = []
    assert read_pairs([file], 10, told.append) == {"aa-bb": (["one", "four"], ["uno", "cuatro"])}
    (note,) = told
    assert "2 lines are left out" in note
    assert "2 read" in note
    with pytest.raises(CorpusError, match="another file is of aa-bb too"):
        read_pairs([file, file], 10)


def test_the_fingerprint_is_that_of_the_weights(folder):
    digest = sha256((folder / "model.safetensors").read_bytes()).digest()
    assert fingerprint(folder) == sha256(digest).hexdigest()


def test_a_folder_or_a_run(folder, tmp_path):
    assert model_folder(folder) == folder
    assert model_folder(folder.parent) == folder
    with pytest.raises(ModelError, match="holds no model"):
        model_folder(tmp_path)


def test_nothing_is_compiled_for_the_shapes_of_sentences(folder):
    encoder, _ = open_for_scoring(folder)
    assert encoder.settings.attention == "sdpa"
    assert not encoder.training


@pytest.mark.parametrize("where", ["none", "all", "slots"])
def test_what_a_model_is_scored_without(corpus, tmp_path, where):
    settings = ModelConfig(size="tiny", layers=1, hidden=8, heads=1, languages=where)
    encoder = Encoder.build(settings, corpus.vocabulary, languages=corpus.languages)
    if encoder.languages is not None:
        torch.nn.init.ones_(encoder.languages.weight)
    export(encoder, tmp_path / "m", tokenizer_folder=corpus.tokenizer_folder, card="")
    note = scored_without(tmp_path / "m")
    if where == "all":
        assert note is not None
        assert f"{tmp_path / 'm'} was trained with language embeddings on all tokens" in note
    else:
        assert note is None, "the plain model gives the outputs of training"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("pairs.tsv", "a\tb\n", "name the file after its two languages"),
        ("en-de-fr.tsv", "a\tb\n", "name the file after its two languages"),
        ("en-de.tsv", "one column\n\n", "has no pair of sentences"),
    ],
)
def test_files_that_are_no_pairs(folder, tmp_path, name, content, message):
    file = tmp_path / name
    file.write_text(content, encoding="utf-8")
    with pytest.raises(CorpusError, match=message) as caught:
        evaluate_retrieval(folder, [file], most=5)
    assert str(file) in str(caught.value)
