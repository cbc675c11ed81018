"""`isoglot evaluate --tasks`: a table, a results file, predictions, and what is refused."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import fields
from pathlib import Path

import pytest
import torch
import typer
from safetensors.torch import load_file, save_file

from isoglot.cli.options import results_file
from isoglot.evaluation.settings import FeatureConfig
from isoglot.finetuning.settings import FinetuneConfig
from isoglot.models.config import ModelConfig
from isoglot.models.encoder import Encoder
from isoglot.models.export import export_encoder
from tests.tiny_corpus import words

RESULTS = Path("results/model/results.json")


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
    exact = "63.1 to 100.0".split()  # 0.025 ** (1 / 8)
    assert ["tatoeba", "sw-en", "accuracy@1", "100.0", *exact, "100.0"] in rows
    assert ["mlama", "sw", "p@1", "0.0", "0.0", "to", "60.2"] in rows
    assert "the vectors that the folder gives (mean of the last layer)" in said.out
    assert "chosen on the even examples and scored on the odd ones" in said.out
    assert f"all layers and metrics in {RESULTS}" in said.out
    assert not (model / "results.json").exists(), "a user's folder is not written to"
    assert "tatoeba ..." in said.err
    scores = json.loads(RESULTS.read_text(encoding="utf-8"))["scores"]
    assert {score["task"] for score in scores} == {"tatoeba", "mlama"}
    assert "is taken from" not in said.err
    again = isoglot("evaluate", model, "--tasks", "tatoeba", "--data", data, "-l", "sw")
    assert f"tatoeba in sw-en is taken from {RESULTS}: weights and data are the same" in again.err


def test_a_task_without_the_languages_asked_for_is_in_the_table_too(isoglot, model, data):
    other = data / "tatoeba/deu-eng.tsv"
    other.write_text("ka\tka\nlo\tlo", encoding="utf-8")
    said = isoglot("evaluate", model, "--tasks", "tatoeba,mlama", "--data", data, "-l", "de")
    assert said.code == 0, said.err
    assert "mlama     –          not in the languages asked for" in said.out


def test_languages_without_data_are_told_and_unknown_codes_refused(isoglot, model, data):
    asked = ["evaluate", model, "-t", "tatoeba", "-d", data, "--languages"]
    said = isoglot(*asked, "sw,yo")
    assert said.code == 0, said.err
    assert said.err.count("note: there are no data of yo, only of sw-en.") == 1
    refused = isoglot(*asked, "sw,xx")
    assert refused.code == 1
    assert "'xx' is the code of no language" in refused.err
    pairs = data / "tatoeba/swh-eng.tsv"
    said = isoglot("evaluate", model, "--pairs", pairs, "--languages", "sw,yo", "-o", "r.json")
    assert "note: there are no data of yo, only of sw-en." in said.err


def test_only_the_languages_asked_for_are_printed_and_averaged(isoglot, model, data):
    pairs = "\n".join(f"{a}\t{b}" for a, b in zip(words("aa"), words("bb")[::-1], strict=True))
    (data / "tatoeba/deu-eng.tsv").write_text(pairs, encoding="utf-8")
    asked = ["evaluate", model, "-t", "tatoeba,", "-d", data, "-l"]
    assert isoglot(*asked, "de").code == 0, "a comma too many does no harm"
    said = isoglot(*asked, "sw")
    rows = [line.split() for line in said.out.splitlines()]
    average = next(row for row in rows if row[:2] == ["tatoeba", "average"])
    assert average[2:4] == ["accuracy@1", "100.0"]
    assert average[-3:] == ["100.0,", "layer", "0"]
    assert "de-en" not in said.out
    assert "average (2 of 14)" in isoglot(*asked, "tatoeba-14").out


def test_two_folders_of_data_and_codes_of_three_letters(isoglot, model, data, workdir):
    (workdir / "more/tatoeba").mkdir(parents=True)
    (workdir / "more/tatoeba/por-eng.tsv").write_text("ka\tka\nlo\tlo", encoding="utf-8")
    said = isoglot("evaluate", model, "-t", "tatoeba", "-d", data, "-d", "more", "-l", "por,swa")
    assert said.code == 0, said.err
    assert {line.split()[1] for line in said.out.splitlines()[2:4]} == {"sw-en", "pt-en"}


def test_tasks_without_files_need_no_data(isoglot, model):
    said = isoglot("evaluate", model, "--tasks", "analogy-royal")
    assert said.code == 0, said.err
    assert "en-de" in said.out
    table = said.out[said.out.index("cos(X, Queen)") :].splitlines()
    assert "cos(X, Königin)" in table[0]
    rows = [line.split() for line in table[2:10]]
    assert [row[0] for row in rows] == [
        f"{king}-{man}+{woman}"
        for king in ("King", "König") for man in ("Man", "Mann") for woman in ("Woman", "Frau")
    ]  # fmt: skip
    scores = json.loads(RESULTS.read_text(encoding="utf-8"))["scores"]
    cosines = {s["metric"]: s["value"] for s in scores if s["layer"] is None}
    for name, queen, in_german in rows:
        assert float(queen) == pytest.approx(cosines[f"cosine {name} Queen table"], abs=0.005)
        assert float(in_german) == pytest.approx(cosines[f"cosine {name} Königin table"], abs=0.005)


def test_a_layer_and_a_direction(isoglot, model, workdir):
    pairs = zip(words("aa")[:9], words("bb")[:9], strict=True)
    rows = "\n".join(f"{a} {b}\t{b} {b}" for a, b in pairs)
    (workdir / "en-sw.tsv").write_text(rows, encoding="utf-8")
    said = isoglot("evaluate", model, "--pairs", "en-sw.tsv", "--layer", 1, "--direction", "to-en")
    assert said.code == 0, said.err
    assert "layer 1, to en" in said.out
    scores = json.loads(RESULTS.read_text(encoding="utf-8"))["scores"]
    own = {(s["layer"], s["metric"]): 100 * s["value"] for s in scores}
    row = next(line.split() for line in said.out.splitlines() if "en-sw" in line)
    assert float(row[3]) == pytest.approx(own[None, "accuracy@1"], abs=0.05)
    assert float(row[7]) == pytest.approx(own[1, "accuracy@1 sw→en"], abs=0.05)
    few = isoglot("evaluate", model, "--pairs", "en-sw.tsv", "--limit", 5)
    assert re.search(r"retrieval +en-sw +accuracy@1 +\d", few.out), "a limit is no other scenario"
    middle = isoglot("evaluate", model, "--pairs", "en-sw.tsv", "--protocol", "ernie-m-base")
    assert "ernie-m-base: layer 1, to en" in middle.out
    other = isoglot("evaluate", model, "--pairs", "en-sw.tsv", "--direction", "to-fr")
    assert "no column for exported, to fr: no pair is scored in that direction." in other.out
    for wrong in (("--layer", 3), ("--direction", "down")):
        assert isoglot("evaluate", model, "--pairs", "en-sw.tsv", *wrong).code == 1


def test_own_pairs_by_margin(isoglot, model, workdir):
    rows = "\n".join(f"{a}\t{a} {a}" for a in words("aa")[:8])
    (workdir / "aa-xx.tsv").write_text(rows, encoding="utf-8")
    said = isoglot("evaluate", model, "--pairs", "aa-xx.tsv", "--margin")
    assert said.code == 0, said.err
    scores = json.loads(RESULTS.read_text(encoding="utf-8"))["scores"]
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
    scores = json.loads(RESULTS.read_text(encoding="utf-8"))["scores"]
    assert len({score["metric"] for score in scores}) == len(scores), "and not counted twice"


def test_settings_of_features_and_sets_of_languages(isoglot, model, data):
    asked = ["evaluate", model, "-t", "tatoeba,mlama", "-d", data, "-l", "xnli"]
    said = isoglot(*asked, "--set", "max_masks=2", "--set", "margin=true")
    assert said.code == 0, said.err
    scores = json.loads(RESULTS.read_text(encoding="utf-8"))["scores"]
    found = {(score["task"], score["language"], score["scenario"]) for score in scores}
    assert found == {("tatoeba", "sw-en", "by margin"), ("mlama", "sw", "max_masks=2")}


def test_one_setting_is_of_features_and_of_fine_tuning():
    """It means the same for both, and `--set` gives it to both."""
    named = ({field.name for field in fields(kind)} for kind in (FeatureConfig, FinetuneConfig))
    assert set.intersection(*named) == {"language_embeddings"}


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--tasks", "tatoeba", "--pairs", "x.tsv"], 2, "give one of --pairs, --text and --tasks"),
        (["--tasks", ","], 2, "give one of --pairs, --text and --tasks"),
        (["--pairs", "en-de.tsv", "-l", "sw"], 1, "none of the files of pairs (en-de.tsv)"),
        (
            ["--pairs", "x.tsv", "--aligner", "argmax"],
            2,
            "--aligner: it has no effect with --pairs",
        ),
        (
            ["--tasks", "tatoeba"],
            1,
            "eval: there is no such folder. Name the folder of the tasks' files",
        ),
        (
            ["--tasks", "tatoeba", "--data", "data", "--save-predictions", "x"],
            2,
            "only probes and entity linking write",
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


def test_results_go_to_a_file_to_a_folder_or_to_the_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model, folder, run = tmp_path / "models/mine", tmp_path / "results", tmp_path / "runs/mine"
    for place in (model, folder, run / "model"):
        place.mkdir(parents=True)
    for place in (model, run / "model"):
        (place / "config.json").write_text("{}")
        (place / "recipe.yaml").write_text("")
    assert results_file(None, model) == Path("results/mine/results.json")
    for name in ("adapted", "other"):  # two folders of `adapt` have files of their own
        (tmp_path / name / "model").mkdir(parents=True)
        file = Path("results", name, "results.json")
        assert results_file(None, Path(name, "model")) == file
    (tmp_path / "model").mkdir()
    assert results_file(None, Path("model")) == Path("results/model/results.json")
    monkeypatch.chdir(model)
    assert results_file(None, Path()) == Path("results/mine/results.json")
    assert results_file(None, Path("org/name")) == Path("results/org/name/results.json")
    (run / "recipe.yaml").write_text("")
    for named in (run, run / "model"):
        assert results_file(None, named) == run / "results.json"
    assert results_file(folder, model) == folder / "results.json"
    assert results_file(folder / "new/other.json", model) == folder / "new/other.json"
    assert results_file(folder / "ppa", model) == folder / "ppa/results.json", "not a file ppa"
    (folder / "old").write_text("")
    assert results_file(folder / "old", model) == folder / "old"
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(typer.BadParameter, match="cannot be written"):
        results_file(None, model)


def test_models_inside_runs_and_fine_tuned_models_have_results_of_their_own(tmp_path, monkeypatch):
    """Every run has an exports/step-..., and every fine-tuned model an encoder/."""
    monkeypatch.chdir(tmp_path)
    files = ("runs/a/recipe.yaml", "adapted/adapt.yaml", "tuned/x-seed-0/finetune.json")
    for file in files:
        Path(file).parent.mkdir(parents=True)
        Path(file).write_text("{}")
    expected = {
        "runs/a/exports/step-00000200": "a-step-00000200",
        "runs/a/exports/step-00000200/model": "a-step-00000200",
        "runs/a/intermediate/step-100": "a-step-100",
        "runs/a/languages/de": "a-de",
        "runs/a/sentence-transformers": "a-sentence-transformers",
        "adapted/model": "adapted",
        "adapted/sentence-transformers": "adapted-sentence-transformers",
        "tuned/x-seed-0": "x-seed-0",
        "tuned/x-seed-0/encoder": "x-seed-0-encoder",
        "models/encoder": "encoder",
    }
    for name, found in expected.items():
        Path(name).mkdir(parents=True, exist_ok=True)
        assert results_file(None, Path(name)) == Path("results", found, "results.json"), name


def test_visualizations_of_two_models_do_not_overwrite_each_other(isoglot, model, workdir):
    pairs = zip(words("aa")[:9], words("bb")[:9], strict=True)
    rows = "\n".join(f"{a} {b}\t{b} {a} {a}" for a, b in pairs)
    (workdir / "aa-bb.tsv").write_text(rows, encoding="utf-8")
    shutil.copytree(model, "other")
    for name, folder in (("one", model), ("two", "other")):
        asked = ["evaluate", folder, "--pairs", "aa-bb.tsv", "--visualizations"]
        assert isoglot(*asked, "--out", f"out/{name}.json").code == 0
    assert sorted(file.name for file in Path("out").iterdir()) == [
        "one.json", "one.visualizations.json", "two.json", "two.visualizations.json",
    ]  # fmt: skip


def test_language_embeddings_long_texts_and_weights_are_told(isoglot, corpus, workdir):
    """A model with language embeddings, with them and without; a text that is cut; then NaN."""
    torch.manual_seed(0)
    settings = ModelConfig(
        size="tiny", num_layers=2, hidden_size=16, num_heads=2, max_positions=40,
        language_embeddings="all",
    )  # fmt: skip
    encoder = Encoder.build(settings, corpus.vocabulary, languages=corpus.languages)
    assert encoder.languages is not None
    torch.nn.init.normal_(encoder.languages.weight, std=3.0)
    folder = workdir / "m"
    export_encoder(encoder, folder, tokenizer_folder=corpus.tokenizer_folder, card="")
    # a side repeats the other: a random model finds it, unless embeddings differ by language
    pairs = [f"{word}\t{word} {word}" for word in words("aa")[:30]]
    pairs[3] = " ".join(words("aa")) + "\tlo"
    (workdir / "aa-bb.tsv").write_text("\n".join(pairs), encoding="utf-8")
    scores = []
    for number, options in enumerate(([], ["--no-language-embeddings"])):
        out = workdir / f"{number}.json"
        said = isoglot("evaluate", folder, "--pairs", "aa-bb.tsv", "--out", out, *options)
        assert said.code == 0, said.err
        assert ("runs with the language embeddings" in said.err) == (not options)
        assert ("and runs without them" in said.err) == bool(options)
        assert ("(mean of the last layer, with language embeddings)" in said.out) == (not options)
        assert said.err.count("1 of 30 texts in aa (the first is number 4) are longer") == 1
        scores.append(json.loads(out.read_text(encoding="utf-8"))["scores"])
    plain, without = ({s["scenario"] for s in found} for found in scores)
    assert plain == {None}
    assert without == {"without language embeddings"}
    assert [s["value"] for s in scores[0]] != [s["value"] for s in scores[1]]

    weights = load_file(folder / "model.safetensors")
    weights["roberta.embeddings.word_embeddings.weight"][5] = float("nan")
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    said = isoglot("evaluate", folder, "--pairs", "aa-bb.tsv", "--out", workdir / "nan.json")
    assert said.code == 1
    assert "weights roberta.embeddings.word_embeddings.weight are not finite (16 of" in said.err
    assert not (workdir / "nan.json").exists()


def test_bits_per_character_of_text(isoglot, model, workdir):
    lines = "\n".join(" ".join(words("aa")[n : n + 6]) for n in range(30))
    (workdir / "sw.txt").write_text(lines, encoding="utf-8")
    (workdir / "news.txt").write_text(lines[::-1], encoding="utf-8")
    said = isoglot("evaluate", model, "--text", "sw.txt", "--text", "eng=news.txt", "--limit", "20")
    assert said.code == 0, said.err
    rows = [line.split() for line in said.out.splitlines()]
    of_sw, of_en = (next(row for row in rows if row[:1] == [code]) for code in ("sw", "en"))
    assert of_sw[1] == of_en[1] == "20"
    assert float(of_sw[3]) < float(of_sw[2]) < float(of_sw[5])
    assert float(of_en[2]) > float(of_sw[2]) * 0.5
    assert not list(workdir.glob("results*"))


def test_bits_per_character_of_two_models(isoglot, model, workdir):
    lines = "\n".join(" ".join(words("aa")[n : n + 6]) for n in range(30))
    (workdir / "sw.txt").write_text(lines, encoding="utf-8")
    asked = ["evaluate", model, "--text", "sw.txt"]
    assert isoglot(*asked, "--save-predictions", "before.jsonl").code == 0
    first = json.loads((workdir / "before.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert sorted(first) == ["bits", "characters", "language", "line"]
    said = isoglot(*asked, "--compare-with", "before.jsonl")
    assert said.code == 0, said.err
    assert "+0.0 %" in said.out
    assert "+0.0 % to +0.0 %" in said.out
    fewer = isoglot(*asked, "--limit", "5", "--compare-with", "before.jsonl")
    assert fewer.code == 1
    assert "before.jsonl has 30 lines of sw, and 5 were scored" in fewer.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--text", "none.txt"], "none.txt"),
        (["--text", "words.txt"], "say the language of the file, as in sw=words.txt"),
        (["--text", "sw.txt", "--text", "swa=sw.txt"], "is of sw too"),
        (["--text", "sw.txt", "--center"], "it has no effect with --text"),
        (["--text", "sw.txt", "--tasks", "tatoeba"], "give one of --pairs, --text and --tasks"),
        (["--text", "-=empty.txt"], "say the language"),
        (["--text", "en=empty.txt"], "has no text"),
    ],
)
def test_text_that_cannot_be_scored(isoglot, model, workdir, options, message):
    (workdir / "sw.txt").write_text("ka lo", encoding="utf-8")
    (workdir / "words.txt").write_text("ka lo", encoding="utf-8")
    (workdir / "empty.txt").write_text("\n \n", encoding="utf-8")
    said = isoglot("evaluate", model, *options)
    assert said.code in (1, 2)
    assert message in " ".join(said.err.replace("│", " ").split())
    assert "Traceback" not in said.err
