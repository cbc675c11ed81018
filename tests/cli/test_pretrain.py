"""Raw text to scores through the command line: prepare, pretrain, resume, evaluate."""

from __future__ import annotations

import json
import os
import signal

import torch
from safetensors.torch import load_file
from transformers import AutoModelForMaskedLM, AutoTokenizer, BertConfig, BertModel

from isoglot.models.language_embeddings import FILE
from isoglot.pretraining import build, run, train_step
from isoglot.pretraining.estimates import measuring
from isoglot.pretraining.processes import interruptions
from tests.pretraining.local_trial import LocalTrial


def test_from_raw_text_to_scores(isoglot, raw):
    said = isoglot("prepare", "prepare.yaml", "--out", "corpus")
    assert said.code == 0
    assert (
        said.out.splitlines()[0].split()
        == "source language for training tokens held out read seconds MB/s dropped".split()
    )
    assert any(
        line.split()[:2] == ["text", "aa"] and "blank" in line for line in said.out.splitlines()
    )
    assert said.out.endswith("corpus: corpus\n")
    assert "nothing was left to do" not in said.out
    again = isoglot("prepare", "prepare.yaml", "-o", "corpus")
    assert "\nFiles and settings have not changed: nothing was left to do.\n" in again.out

    said = isoglot("pretrain", "few.yaml", "--corpus", "corpus")
    assert said.code == 0
    assert said.out.startswith("4 steps, ")
    assert said.out.endswith("model: runs/few/model\n")
    assert "held out: mlm perplexity" in said.err
    metrics = (raw / "runs/few/metrics.jsonl").read_text(encoding="utf-8")
    records = [json.loads(line) for line in metrics.splitlines()]
    assert [r["step"] for r in records if "seconds" in r] == [1, 2, 3, 4]
    _opens_with_transformers(raw / "runs/few/model")

    said = isoglot("pretrain", "few.yaml", "--corpus", "corpus")
    assert said.code == 1
    assert "runs/few already holds a run (step-00000004). Add --resume" in said.err

    said = isoglot("evaluate", "runs/few", "-p", "raw/pairs/aa-bb.tsv", "--limit", "20")
    assert said.code == 0
    assert "note" not in said.err
    rows = [line.split() for line in said.out.splitlines() if line.startswith("retrieval")]
    assert [row[1:3] for row in rows] == [["aa-bb", "accuracy@1"], ["average", "accuracy@1"]]
    results = json.loads((raw / "runs/few/results.json").read_text(encoding="utf-8"))
    assert results["schema"] == 5
    assert {score["count"] for score in results["scores"]} == {20}


def test_a_stopped_run_has_an_exit_code_of_its_own(isoglot, raw, monkeypatch):
    """75 where a signal comes in training and where it comes before; then it is resumed."""
    assert isoglot("prepare", "prepare.yaml", "--out", "corpus").code == 0
    handlers = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGUSR1)]
    with monkeypatch.context() as patched:
        _signal_at(patched, build, "build_run", signal.SIGTERM)
        said = isoglot("pretrain", "few.yaml", "--corpus", "corpus")
        assert (said.code, said.out) == (75, "")
    assert not (raw / "runs/few").exists(), "nothing was written, not even a lock"
    with monkeypatch.context() as patched:
        _signal_at(patched, train_step, "_launch", signal.SIGUSR1)
        said = isoglot("pretrain", "few.yaml", "--corpus", "corpus")
    assert (said.code, said.out) == (75, "stopped after step 1; add --resume to continue\n")
    stopped = json.loads((raw / "runs/few/stopped.json").read_text(encoding="utf-8"))
    assert stopped == {"step": 1, "signal": "SIGUSR1"}
    said = isoglot("pretrain", "few.yaml", "--corpus", "corpus", "--resume")
    assert (said.code, said.out[:8]) == (0, "4 steps,")
    assert not (raw / "runs/few/stopped.json").exists()
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGUSR1)] == handlers


def _signal_at(patched, module, name, number):
    """Send a signal to this process whenever a function is called."""
    before = getattr(module, name)

    def signaled(*arguments, **settings):
        os.kill(os.getpid(), number)
        return before(*arguments, **settings)

    patched.setattr(run if name == "build_run" else module, name, signaled)
    patched.setattr(interruptions, "_LOSS_SECONDS", 0.0)
    patched.setattr(interruptions, "GRACE_SECONDS", 0.0 if name == "build_run" else 5.0)


def _opens_with_transformers(folder):
    model, loading = AutoModelForMaskedLM.from_pretrained(folder, output_loading_info=True)
    assert not any(loading.values()), loading
    tokenizer = AutoTokenizer.from_pretrained(folder)
    encoded = tokenizer("kalo mitu", return_tensors="pt")
    with torch.no_grad():
        logits = model(**encoded).logits
    assert logits.shape == (*encoded["input_ids"].shape, len(tokenizer))
    assert torch.isfinite(logits).all()


def test_settings_of_the_command_line_reach_the_run(isoglot, raw):
    isoglot("prepare", "prepare.yaml", "-o", "corpus")
    said = isoglot(
        "pretrain", "few.yaml", "--corpus", "corpus", "-o", "here", "--set", "stages.0.steps=2"
    )
    assert said.out.startswith("2 steps, ")
    assert "steps: 2\n" in (raw / "here/recipe.yaml").read_text(encoding="utf-8")
    said = isoglot("pretrain", "few.yaml", "--corpus", "corpus", "-o", "here", "--resume")
    assert said.out.startswith("4 steps, "), "resumed with the longer recipe"
    assert "note: the recipe differs from the one" in said.err
    said = isoglot(
        "pretrain", "few.yaml", "--corpus", "corpus", "-o", "here", "--resume",
        "--set", "stages.0.steps=3",
    )  # fmt: skip
    assert said.code == 0
    assert said.out.startswith("4 steps, "), "more than the recipe wants: there is nothing to do"
    assert said.out.endswith("model: here/model\n")


def test_a_stream_without_data_is_told_how_to_be_taken_out(isoglot, raw):
    prepare = (raw / "prepare.yaml").read_text("utf-8")
    start, end = prepare.index("  pairs:\n"), prepare.index("tokenizer:")
    (raw / "text.yaml").write_text(prepare[:start] + prepare[end:], encoding="utf-8")
    isoglot("prepare", "text.yaml", "-o", "corpus")
    run = ("pretrain", "few.yaml", "--corpus", "corpus")
    said = isoglot(*run)
    assert said.code == 1
    remedy = "--set stages.0.streams.parallel=null"
    assert f"Add one to the prepare file, or take the stream out: {remedy}." in said.err
    said = isoglot(*run, *remedy.split())
    assert said.code == 0, said.err


def test_a_folder_without_an_lm_head_is_told(isoglot, raw):
    """A sentence of the run, in the place of transformers' table of missing weights."""
    isoglot("prepare", "prepare.yaml", "-o", "corpus")
    tokenizer = AutoTokenizer.from_pretrained("corpus/tokenizer")
    tokenizer.save_pretrained("bare")
    sizes = {"num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    BertModel(BertConfig(vocab_size=len(tokenizer), hidden_size=16, **sizes)).save_pretrained(
        "bare"
    )
    said = isoglot("pretrain", "few.yaml", "--corpus", "corpus", "--set", "model.init_from=bare")
    assert said.code == 0, said.err
    assert (
        "note: bare lacks 6 weights of the LM head (cls.predictions.bias, ...): these " in said.err
    )
    shown = isoglot("show", "model", "bare")
    assert "6 weights of the LM head are not in the folder (cls.predictions.bias, " in shown.out
    assert "MISSING" not in said.err + shown.err


def test_language_embeddings_go_on_and_are_used_in_scores(isoglot, raw):
    isoglot("prepare", "prepare.yaml", "-o", "corpus")
    spoken = ["--corpus", "corpus", "--set", "model.language_embeddings=all"]
    said = isoglot("pretrain", "few.yaml", *spoken, "-o", "first")
    assert "note: The model was trained with language embeddings" in said.err
    said = isoglot("evaluate", "first", "-p", "raw/pairs/aa-bb.tsv", "--limit", "5")
    assert said.code == 0
    assert "note: first/model runs with the language embeddings that it was trained" in said.err

    start = ["--set", "model.init_from=first/model", "--set", "optimizer.learning_rate=0"]
    said = isoglot("pretrain", "few.yaml", *spoken, *start, "-o", "second")
    assert said.code == 0, said.err
    before, after = (load_file(f"{run}/model/{FILE}")["weight"] for run in ("first", "second"))
    assert before.any()
    assert torch.equal(before, after), "nothing was learned from where the first run ended"


def test_a_plan_is_printed_and_nothing_is_trained(isoglot, raw, monkeypatch):
    monkeypatch.setattr(measuring, "TrialProcess", LocalTrial)
    monkeypatch.setattr(measuring, "_COST_SECONDS", 0.0)
    assert isoglot("prepare", "prepare.yaml", "--out", "corpus").code == 0
    said = isoglot("pretrain", "few.yaml", "--corpus", "corpus", "--plan")
    assert said.code == 0
    rows = {line[:16].strip(): line[16:].strip() for line in said.out.splitlines()}
    assert rows["rows at a time"] == "2 (the recipe's number)"
    assert rows["stage 1"].startswith("4 steps of ")
    assert "examples, read 0." in rows["text"]
    assert "examples, read 0." in rows["parallel"]
    assert rows["checkpoints"].startswith("2 of ")
    assert {"tokens", "validations", "exports", "memory", "disk", "time"} <= rows.keys()
    assert not (raw / "runs").exists()
    said = isoglot("pretrain", "few.yaml", "--corpus", "corpus")
    assert "stage 1: 4 steps, text read 0." in said.err


def test_hours_that_are_none_and_rows_that_are_no_number_are_refused(isoglot, raw):
    said = isoglot("pretrain", "few.yaml", "--hours", "0")
    assert said.code == 2
    assert "--hours" in said.err
    said = isoglot("pretrain", "few.yaml", "--set", "batch.micro_rows=many")
    assert said.code == 1
    assert "batch.micro_rows: 'many' is not possible" in said.err
