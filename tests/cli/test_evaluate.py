"""`isoglot evaluate --tasks`: a table, a results file, predictions, and what is refused."""

from __future__ import annotations

import json
from dataclasses import fields

import pytest
import torch
import typer

from isoglot.cli.options import results_file
from isoglot.evaluation.settings import FeatureConfig
from isoglot.finetuning.settings import FinetuneConfig
from isoglot.models.config import ModelConfig
from isoglot.models.encoder import Encoder
from isoglot.models.export import export_encoder
from tests.tiny_corpus import words


@pytest.fixture
def model(corpus, workdir):
    torch.manual_seed(0)
    settings = ModelConfig(size="tiny", num_layers=2, hidden_size=16, num_heads=2, max_positions=40)
    encoder = Encoder.build(settings, corpus.vocabulary)
    export_encoder(encoder, workdir / "model", tokenizer_folder=corpus.tokenizer_folder, card="")
    return workdir / "model"


@pytest.fixture
def data(workdir):
    (workdir / "data/tatoeba").mkdir(parents=True)
    rows = "\n".join(f"{a}\t{a}" for a in words("aa")[:8])
    (workdir / "data/tatoeba/swh-eng.tsv").write_text(rows, encoding="utf-8")
    place = workdir / "data/mlama1.1/sw"
    place.mkdir(parents=True)
    template = {"relation": "P36", "template": "[X] [Y] ."}
    (place / "templates.jsonl").write_text(json.dumps(template), encoding="utf-8")
    facts = [{"uuid": str(n), "sub_label": words("aa")[n], "obj_label": "x"} for n in range(4)]
    (place / "P36.jsonl").write_text("\n".join(map(json.dumps, facts)), encoding="utf-8")
    return workdir / "data"


def test_a_table_and_a_file(isoglot, model, data):
    said = isoglot("evaluate", model, "--tasks", "tatoeba,mlama", "--data", data, "-l", "sw")
    assert said.code == 0, said.err
    rows = [line.split() for line in said.out.splitlines()]
    assert ["tatoeba", "sw-en", "accuracy@1", "100.0", "0"] in rows
    assert ["mlama", "sw", "p@1", "0.0"] in rows
    assert "tatoeba ..." in said.err
    scores = json.loads((model / "results.json").read_text(encoding="utf-8"))["scores"]
    assert {score["task"] for score in scores} == {"tatoeba", "mlama"}
    assert "not computed again" not in said.err
    again = isoglot("evaluate", model, "--tasks", "tatoeba", "--data", data, "-l", "sw")
    assert "has scores of tatoeba. Existing scores are not computed again" in again.err


def test_a_task_without_the_languages_asked_for_is_in_the_table_too(isoglot, model, data):
    other = data / "tatoeba/deu-eng.tsv"
    other.write_text("ka\tka\nlo\tlo", encoding="utf-8")
    said = isoglot("evaluate", model, "--tasks", "tatoeba,mlama", "--data", data, "-l", "de")
    assert said.code == 0, said.err
    assert "mlama     –          not in the languages asked for" in said.out


def test_only_the_languages_asked_for_are_printed_and_averaged(isoglot, model, data):
    pairs = "\n".join(f"{a}\t{b}" for a, b in zip(words("aa"), words("bb")[::-1], strict=True))
    (data / "tatoeba/deu-eng.tsv").write_text(pairs, encoding="utf-8")
    asked = ["evaluate", model, "-t", "tatoeba,", "-d", data, "-l"]
    assert isoglot(*asked, "de").code == 0, "a comma too many does no harm"
    said = isoglot(*asked, "sw")
    rows = [line.split() for line in said.out.splitlines()]
    assert ["tatoeba", "average", "accuracy@1", "100.0", "0"] in rows
    assert "de-en" not in said.out
    assert "average (2 of 14)" in isoglot(*asked, "tatoeba-14").out


def test_tasks_without_files_need_no_data(isoglot, model):
    said = isoglot("evaluate", model, "--tasks", "analogy-royal")
    assert said.code == 0, said.err
    assert "en-de" in said.out


def test_own_pairs_by_margin(isoglot, model, workdir):
    rows = "\n".join(f"{a}\t{a}" for a in words("aa")[:8])
    (workdir / "aa-xx.tsv").write_text(rows, encoding="utf-8")
    said = isoglot("evaluate", model, "--pairs", "aa-xx.tsv", "--margin")
    assert said.code == 0, said.err
    scores = json.loads((model / "results.json").read_text(encoding="utf-8"))["scores"]
    assert {score["scenario"] for score in scores} == {"by margin"}


def test_predictions_of_two_models(isoglot, model, data, workdir):
    asked = ["evaluate", model, "-t", "mlama", "-d", data]
    assert isoglot(*asked, "--save-predictions", "one.jsonl").code == 0
    rows = [json.loads(line) for line in (workdir / "one.jsonl").read_text("utf-8").splitlines()]
    assert [row["id"] for row in rows] == ["0", "1", "2", "3"]
    other = [{**row, "predicted": "other"} for row in rows]
    (workdir / "two.jsonl").write_text("\n".join(map(json.dumps, other)), encoding="utf-8")
    said = isoglot(*asked, "--save-predictions", "three.jsonl", "--compare-with", "two.jsonl")
    assert said.code == 0, said.err
    assert (workdir / "three.jsonl").read_bytes() == (workdir / "one.jsonl").read_bytes(), (
        "predictions are written again"
    )
    assert said.out.count("other") >= 4
    scores = json.loads((model / "results.json").read_text(encoding="utf-8"))["scores"]
    assert len({score["metric"] for score in scores}) == len(scores), "and not counted twice"


def test_settings_of_features_and_sets_of_languages(isoglot, model, data):
    asked = ["evaluate", model, "-t", "tatoeba,mlama", "-d", data, "-l", "xnli"]
    said = isoglot(*asked, "--set", "max_masks=2", "--set", "margin=true")
    assert said.code == 0, said.err
    scores = json.loads((model / "results.json").read_text(encoding="utf-8"))["scores"]
    found = {(score["task"], score["language"], score["scenario"]) for score in scores}
    assert found == {("tatoeba", "sw-en", "by margin"), ("mlama", "sw", "max_masks=2")}


def test_no_setting_is_of_features_and_of_fine_tuning():
    named = ({field.name for field in fields(kind)} for kind in (FeatureConfig, FinetuneConfig))
    assert not set.intersection(*named)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--tasks", "tatoeba", "--pairs", "x.tsv"], 2, "either --pairs or --tasks"),
        (["--tasks", ","], 2, "either --pairs or --tasks"),
        (["--pairs", "x.tsv", "-l", "sw"], 2, "--languages: --pairs does not read it"),
        (["--pairs", "x.tsv", "--aligner", "argmax"], 2, "--aligner: --pairs does not read it"),
        (["--tasks", "tatoeba"], 1, "eval has no files of tatoeba. Name their folder with --data"),
        (
            ["--tasks", "tatoeba", "--data", "data", "--save-predictions", "x"],
            2,
            "only probes write predictions",
        ),
        (["--tasks", "tatoeba", "--data", "data", "--aligner", "magic"], 2, "itermax"),
        (["--tasks", "tatooba", "--data", "data"], 1, "did you mean 'tatoeba'?"),
        (["--tasks", "xnli", "--data", "data"], 1, "has no files of xnli"),
        (["--tasks", "muse", "--data", "data"], 1, "has no files of muse"),
        (["--tasks", "tatoeba", "--data", "data", "-l", "fr"], 1, "only in sw-en"),
        (
            ["--tasks", "tatoeba", "--data", "data", "--compare-with", "x"],
            2,
            "add --save-predictions FILE",
        ),
        (["--tasks", "mlama", "--data", "data", "--set", "mask=1"], 1, "did you mean 'max_masks'?"),
        (["--tasks", "mlama", "--data", "data", "--set", "max_masks=x"], 1, "max_masks"),
        (["--tasks", "mlama", "--data", "data", "--set", "epochs=2"], 1, "no such setting"),
    ],
)
def test_what_is_refused(isoglot, model, data, arguments, code, message):
    said = isoglot("evaluate", model, *arguments)
    assert said.code == code
    assert message in " ".join(said.err.split())


def test_results_go_to_a_file_to_a_folder_or_beside_the_model(tmp_path, monkeypatch):
    model, folder = tmp_path / "model", tmp_path / "results"
    model.mkdir()
    folder.mkdir()
    assert results_file(None, model) == model / "results.json"
    assert results_file(folder, model) == folder / "results.json"
    assert results_file(folder / "new/other.json", model) == folder / "new/other.json"
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(typer.BadParameter, match="cannot be written"):
        results_file(None, model)
