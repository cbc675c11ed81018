"""`isoglot finetune`: scores, averages, predictions, and what is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from statistics import fmean

import pytest

from isoglot.corpus import Corpus
from isoglot.models.config import ModelConfig
from isoglot.models.encoder import Encoder
from isoglot.models.export import export_encoder

SHORT = ("--protocol", "testbed", "--set", "epochs=1", "--set", "max_train_examples=16")
PAGE = Path(__file__).parent.parent.parent / "docs/finetune.md"


@pytest.fixture
def encoder(workdir, corpus: Corpus) -> Path:
    settings = ModelConfig(size="tiny", num_layers=1, hidden_size=32, num_heads=2, max_positions=64)
    made = Encoder.build(settings, corpus.vocabulary)
    export_encoder(made, workdir / "encoder", tokenizer_folder=corpus.tokenizer_folder, card="")
    return workdir / "encoder"


def test_scores_averages_and_the_rule_are_written_down(isoglot, encoder):
    arguments = ("finetune", encoder, "--tasks", "testbed-pos", "-l", "en,sw", "--seeds", 2, *SHORT)
    said = isoglot(*arguments, "--selection", "all-dev", "--save-models", "kept")
    assert said.code == 0, said.err
    assert re.search(r"testbed-pos .* accuracy +\d+\.\d ± \d+\.\d", said.out)
    by_language = r"^testbed-pos zero-shot.*: accuracy en [\d.]+, sw [\d.]+$"
    assert re.search(by_language, said.out, flags=re.MULTILINE)
    results = json.loads(Path("results/encoder/results.json").read_text(encoding="utf-8"))
    assert {score["selection"] for score in results["scores"]} == {"all-dev"}
    chances = [score["chance"] for score in results["scores"] if score["metric"] == "accuracy"]
    row = next(
        line for line in said.out.splitlines() if re.match(r"testbed-pos .* accuracy +\d", line)
    )
    assert f"  {100 * fmean(chances):.1f} " in row, "the mean share of the most frequent tag"
    assert {(s["language"], s["seed"]) for s in results["scores"]} == {
        (code, seed) for code in ("en", "sw") for seed in (0, 1)
    }
    (average,) = results["averages"]
    assert average["gap"] is None, "a model at chance has no gap to speak of"
    assert len(list(Path("kept").iterdir())) == 2
    again = isoglot(*arguments, "--selection", "all-dev")
    assert again.err.count("is not trained again: weights and data are those of its scores") == 2
    assert "..." not in again.err, "no training is announced"


def test_joined_languages_are_chosen_and_predictions_written(isoglot, encoder):
    said = isoglot(
        "finetune", encoder, "--tasks", "testbed-pos", "-l", "xnli", "--scenario", "pooled",
        "--train-languages", "en,sw", "--seeds", 1, "--save-predictions", "said", *SHORT,
    )  # fmt: skip
    assert said.code == 0, said.err
    assert "pooled on en sw" in said.out
    results = json.loads(Path("results/encoder/results.json").read_text(encoding="utf-8"))
    files = Path("said/testbed-pos").rglob("*.conll")
    assert {file.stem for file in files} == {score["language"] for score in results["scores"]}


def test_ctrl_c_says_what_is_kept(isoglot, encoder, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("isoglot.finetuning.finetune.finetune_tasks", stop)
    said = isoglot("finetune", encoder, "--tasks", "testbed-pos", "-l", "en", *SHORT)
    assert said.code == 130
    kept = "stopped: scores of finished trainings are in results/encoder/results.json"
    assert kept in said.err


def test_rows_without_their_originals_are_refused_before_the_first_training(isoglot, encoder):
    Path("data/pawsx").mkdir(parents=True)
    for code, first in (("de", 1), ("en", 1), ("fr", 3)):  # de is trained before fr
        rows = [f"{first + n}\ta b\tc d\t{n % 2}" for n in range(4)]
        for split in ("train", "dev", "test"):
            text = "\n".join(["id\tsentence1\tsentence2\tlabel", *rows]) + "\n"
            Path(f"data/pawsx/{code}.{split}.tsv").write_text(text)
    asked = ("finetune", encoder, "--tasks", "paws-x", "--data", "data", *SHORT)
    said = isoglot(*asked, "--scenario", "translate-train")
    assert said.code == 1
    assert "2 of 4 training rows of 'fr' (the first is '5') are not translations" in said.err
    assert "Leave 'fr' out" in said.err
    assert "paws-x translate-train" not in said.err, "no training is announced"
    said = isoglot(*asked, "--code-switch")
    assert said.code == 1
    assert "the scenario zero-shot has no translated training data to mix" in said.err


def test_evaluate_takes_tasks_of_both_kinds(isoglot, encoder):
    options = ("--data", ".", "-l", "en", "--seeds", 1, *SHORT)
    said = isoglot("evaluate", encoder, "--tasks", "testbed-sentiment", *options)
    assert said.code == 0, said.err
    assert "zero-shot from en, testbed" in said.out


def test_evaluate_says_what_cannot_be_trained_before_it_scores_anything(isoglot, encoder, workdir):
    (workdir / "data/tatoeba").mkdir(parents=True)
    (workdir / "data/tatoeba/swh-eng.tsv").write_text("a\ta\n", encoding="utf-8")
    asked = ("evaluate", encoder, "--data", "data", "--tasks")
    said = isoglot(*asked, "tatoeba,xnli")
    assert said.code == 1
    assert "has no files of xnli" in said.err
    assert not Path("results/encoder/results.json").exists()


def test_evaluate_has_what_its_messages_advise(isoglot, encoder):
    said = isoglot(
        "evaluate", encoder, "--tasks", "testbed-pos", "--data", ".", "-l", "en", "--seeds", 1,
        "--train-on", "testbed-pos", "--source", "es", "--selection", "last", *SHORT,
    )  # fmt: skip
    assert said.code == 0, said.err
    assert "zero-shot from es, testbed, epochs=1, max_train_examples=16, selection=last" in said.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--set", "epoch=2"], "did you mean 'epochs'"),
        (["--protocol", "xlmk"], "did you mean 'xlm-k'"),
        (["--scenario", "zeroshot"], "did you mean 'zero-shot'"),
        (["--selection", "best"], "known: all-dev, last, source-dev"),
        (["--train-on", "xnly"], "did you mean 'xnli'"),
        (["--source", "eo"], "no training data in 'eo': it has training data in"),
        (["--source", "eo"], "Name one of them with --source"),
        (["--languages", "eo"], "nothing to score in eo"),
        (["--languages", "sw,xx"], "'xx' is the code of no language"),
        (["--train-languages", "en"], "only with the scenario translate-train-all or pooled"),
    ],
)
def test_a_slip_is_answered_in_a_sentence(isoglot, encoder, arguments, message):
    said = isoglot("finetune", encoder, "--tasks", "testbed-pos", *arguments)
    assert said.code == 1
    assert message in said.err
    assert "Traceback" not in said.err


def test_commas_alone_name_no_task(isoglot, encoder):
    said = isoglot("finetune", encoder, "--tasks", ",")
    assert said.code == 2
    assert "contains no name" in said.err


def test_a_task_that_reads_features_is_sent_to_evaluate(isoglot, encoder):
    said = isoglot("finetune", encoder, "--tasks", "testbed-pos,tatoeba", *SHORT)
    assert said.code == 1
    assert "Use isoglot evaluate" in said.err
    assert not Path("results/encoder/results.json").exists()


def test_files_that_are_not_there_are_named(isoglot, encoder):
    said = isoglot("finetune", encoder, "--tasks", "xnli", "--data", "nowhere")
    assert said.code == 1
    assert "nowhere: there is no such folder. Name the folder of the tasks' files" in said.err


def test_the_python_of_the_documentation(encoder, capsys):
    (block,) = re.findall(
        r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    exec(block, {})  # noqa: S102 (our own documentation)
    assert "sw accuracy 0." in capsys.readouterr().out
