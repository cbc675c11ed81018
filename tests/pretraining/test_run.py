"""Whole runs in this process: what they write, validate, refuse."""

import json
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForMaskedLM, AutoTokenizer

from isoglot.batching.planner import BatchConfig
from isoglot.batching.streams import StreamConfig, TextStream
from isoglot.errors import CheckpointError, CorpusError, ModelError, RecipeError
from isoglot.models.config import ModelConfig
from isoglot.pretraining.checkpoints import checkpoint
from isoglot.pretraining.config import LoggingConfig, StageConfig, objectives_of
from isoglot.pretraining.optimizers.optimizer import OptimizerConfig
from isoglot.pretraining.run import pretrain
from isoglot.pretraining.train_step import StepResult
from tests.pretraining import driver
from tests.tiny_corpus import make_corpus


@pytest.fixture(scope="module")
def finished(corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished")
    steps: list[StepResult] = []
    config = driver.config(logging=LoggingConfig(validate_every_steps=6, trackers=("tensorboard",)))
    outcome = pretrain(
        config, corpus, folder, name="tiny run", recipe_text="seed: 0\n", on_step=steps.append
    )
    return folder, outcome, steps


def test_a_run_leaves_metrics_checkpoints_and_a_model(finished):
    folder, outcome, steps = finished
    assert outcome.finished
    assert outcome.total_steps == sum(driver.STEPS) == len(steps)
    assert outcome.tokens == sum(step.num_tokens for step in steps)
    records = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    trained = [record for record in records if "seconds" in record]
    assert [record["step"] for record in trained] == list(range(1, 19))
    assert [record["stage"] for record in trained] == [0] * 10 + [1] * 8
    assert trained[-1]["total_tokens"] == outcome.tokens
    assert (folder / "recipe.yaml").read_text() == "seed: 0\n"
    assert list(folder.rglob("events.out.tfevents*"))
    assert "tiny run" in (folder / "model/README.md").read_text()


def test_validation_is_per_language_and_objective(finished, corpus):
    folder, _, _ = finished
    records = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    valid = [record for record in records if "seconds" not in record]
    assert [record["step"] for record in valid] == [6, 10, 12, 18]
    for language in corpus.languages:
        assert valid[0][f"valid/mlm/{language}/perplexity"] > 1
    assert "valid/tlm/aa-bb/perplexity" not in valid[0]
    assert valid[-1]["valid/tlm/aa-bb/perplexity"] > 1


def test_the_exported_folder_is_plain_hugging_face(finished):
    folder, _, _ = finished
    tokenizer = AutoTokenizer.from_pretrained(folder / "model")
    model = AutoModelForMaskedLM.from_pretrained(folder / "model")
    batch = tokenizer(f"kalo {tokenizer.mask_token} mi.", return_tensors="pt")
    logits = model(**batch).logits
    assert logits.shape[-1] == len(tokenizer)
    assert torch.isfinite(logits).all()


def test_a_run_can_start_from_a_run(finished, corpus, tmp_path):
    folder, _, _ = finished
    stage = driver.config().stages[0]
    config = replace(
        driver.config(),
        model=ModelConfig(init_from=str(folder / "model")),
        stages=(replace(stage, steps=2),),
    )
    assert pretrain(config, corpus, tmp_path / "next").finished


def test_another_tokenizer_is_refused(finished, tmp_path):
    folder, _, _ = finished
    other = make_corpus(tmp_path, seed=5, sentences=150, pairs=80)
    config = replace(driver.config(), model=ModelConfig(init_from=str(folder / "model")))
    with pytest.raises(CorpusError, match=r"tokenizer.*is not the one of the corpus"):
        pretrain(config, other, tmp_path / "run")


def test_optimizer_moments_can_be_kept_over_stages(corpus, tmp_path):
    text = driver.config().stages[0].streams
    for keep in (False, True):
        stages = (
            StageConfig(steps=2, streams=text),
            StageConfig(steps=1, streams=text, keep_optimizer=keep),
        )
        pretrain(replace(driver.config(), stages=stages), corpus, tmp_path / str(keep))
        place = checkpoint.latest(tmp_path / str(keep) / "checkpoints")
        assert place is not None
        moments = load_file(place / "optimizer.safetensors")
        steps = {float(value) for name, value in moments.items() if name.endswith("|step")}
        assert steps == {3.0 if keep else 1.0}


def test_impossible_recipes_are_refused(corpus, tmp_path):
    wrong: dict[str, StreamConfig] = {"text": TextStream(objectives=("tlm",))}
    with pytest.raises(RecipeError, match="'tlm' reads parallel, not the stream 'text'"):
        objectives_of(driver.config(stages=(StageConfig(steps=1, streams=wrong),)))
    with pytest.raises(RecipeError, match=r"cudnn is not deterministic.*deterministic: false"):
        driver.config(model=replace(driver.config().model, attention="cudnn"))
    with pytest.raises(ModelError, match=r"Set batch\.row_length to \d+ or less"):
        pretrain(
            driver.config(batch=BatchConfig(rows=4, micro_rows=4, row_length=200)),
            corpus,
            tmp_path / "run",
        )


def test_a_kept_optimizer_takes_the_stages_own_settings_or_is_refused(corpus, tmp_path):
    text = driver.config().stages[0].streams
    first = StageConfig(steps=1, streams=text)
    other = OptimizerConfig(name="lamb")
    second = StageConfig(steps=1, streams=text, optimizer=other, keep_optimizer=True)
    with pytest.raises(RecipeError, match=r"another optimizer\.name"):
        pretrain(replace(driver.config(), stages=(first, second)), corpus, tmp_path / "run")


def test_resuming_with_fewer_steps_than_were_taken_is_finished(corpus, tmp_path):
    stage = driver.config().stages[0]
    for steps, resume in ((4, False), (2, True)):
        config = replace(driver.config(), stages=(replace(stage, steps=steps),))
        outcome = pretrain(config, corpus, tmp_path / "run", resume=resume)
        assert outcome.finished
        assert outcome.total_steps == 4


def test_the_recipe_beside_a_run_is_the_one_it_goes_on_with(corpus, tmp_path):
    """Whoever reads the metrics needs it; what was trained before with another one stays."""
    folder, stage = tmp_path / "run", driver.config().stages[0]
    for steps, text in ((2, "first"), (2, "first"), (4, "second")):
        config = replace(driver.config(), stages=(replace(stage, steps=steps),))
        pretrain(config, corpus, folder, resume=True, recipe_text=text)
        assert (folder / "recipe.yaml").read_text() == text
    assert [file.name for file in folder.glob("recipe-*")] == ["recipe-until-2.yaml"]
    assert (folder / "recipe-until-2.yaml").read_text() == "first"


def test_a_run_goes_where_nothing_else_is(finished, corpus, tmp_path):
    model = finished[0] / "model"
    with pytest.raises(CheckpointError, match=r"holds a model.* --out"):
        pretrain(driver.config(), corpus, model)
    assert not (model / "checkpoints").exists()
    (tmp_path / "file").touch()
    for place in (tmp_path / "file", tmp_path / "file/run"):
        with pytest.raises(CheckpointError, match=r"file is a file\. .* --out"):
            pretrain(driver.config(), corpus, place)
