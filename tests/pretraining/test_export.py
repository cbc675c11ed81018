"""The folders that a run exports: sentence-transformers, single languages, and their cards."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Literal

import pytest
import torch
import yaml
from safetensors.torch import load_file

from isoglot.errors import RecipeError
from isoglot.evaluation.embed import embed
from isoglot.evaluation.loading import load_for_scoring
from isoglot.models.config import ExportConfig
from isoglot.objectives.moco import MoCo
from isoglot.pretraining.run import pretrain
from tests.pretraining import driver


def test_a_finished_run_can_be_exported_for_sentence_transformers(corpus, tmp_path):
    """Wanted from the start, or asked for when the run has long finished."""
    package = pytest.importorskip("sentence_transformers")
    config = driver.contrast()
    config = replace(config, stages=(replace(config.stages[1], steps=2),))
    run = tmp_path / "run"
    pretrain(config, corpus, run)
    assert not (run / "sentence-transformers").exists()
    projected = replace(config, export=ExportConfig(sentence_transformers="projected"))
    pretrain(projected, corpus, run, resume=True)
    opened = package.SentenceTransformer(str(run / "sentence-transformers"), device="cpu")
    assert opened.encode(["kalo mi"]).shape == (1, 300)
    weights = load_file(run / "checkpoints/step-00000002/weights.safetensors")
    dense = load_file(run / "sentence-transformers/4_Dense/model.safetensors")
    trained = weights["objectives.moco.projection.layers.1.weight"]
    assert torch.equal(dense["linear.weight"], trained), "the query's head, not the key's"
    model = load_file(run / "model/model.safetensors")
    sentences = load_file(run / "sentence-transformers/model.safetensors")
    assert all(
        torch.equal(model[f"roberta.{k}"], v) for k, v in sentences.items() if "pool" not in k
    )
    card = (run / "sentence-transformers/README.md").read_text()
    assert "pipeline_tag: sentence-similarity" in card
    assert "| sentence vector | the state of the first token, normalized, projected to" in card
    pooled = replace(config, export=ExportConfig(sentence_transformers="pooled"))
    pretrain(pooled, corpus, run, resume=True)
    opened = package.SentenceTransformer(str(run / "sentence-transformers"), device="cpu")
    assert opened.encode(["kalo mi"]).shape == (1, 32)


def test_an_export_that_cannot_be_is_refused_before_training(corpus, tmp_path):
    wanted = ExportConfig(sentence_transformers="projected")
    plain, contrast = (replace(c, export=wanted) for c in (driver.config(), driver.contrast()))
    with pytest.raises(RecipeError, match="no objective of the recipe has a projection"):
        pretrain(plain, corpus, tmp_path / "run")
    layer = replace(contrast, objectives={"moco": MoCo(layer=1)})
    with pytest.raises(RecipeError, match=r"moco reads layer 1.*remove layer"):
        pretrain(layer, corpus, tmp_path / "run")
    cases: tuple[tuple[tuple[str, ...], Literal["none", "all"], str], ...] = (
        (("aa",), "none", "is for an encoder with model.language_embeddings: all"),
        (("aa", "zz"), "all", "the corpus has no zz, only"),
    )
    for codes, where, said in cases:
        model = replace(plain.model, language_embeddings=where)
        folded = replace(plain, model=model, export=ExportConfig(fold_languages=codes))
        with pytest.raises(RecipeError, match=said):
            pretrain(folded, corpus, tmp_path / "run")


def test_any_recipe_exports_sentences_a_card_and_single_languages(corpus, tmp_path):
    """MLM with language embeddings on all tokens: nothing contrasts, and the mean is pooled."""
    package = pytest.importorskip("sentence_transformers")
    config = driver.config()
    config = replace(
        config,
        stages=(replace(config.stages[0], steps=2),),
        model=replace(config.model, language_embeddings="all"),
        export=ExportConfig(
            sentence_transformers="pooled", fold_languages=("bb",), license="cc-by-4.0"
        ),
    )
    run = tmp_path / "run"
    pretrain(config, corpus, run)
    card = (run / "model" / "README.md").read_text()
    header = yaml.safe_load(card.split("---\n")[1])
    assert header["license"] == "cc-by-4.0"
    assert header["language"] == sorted(corpus.languages)
    text = corpus.manifest.sources["text"].languages["bb"]["train"]
    assert f"| bb | text | {text.rows:,} | {sum(text.tokens.values()):,} |" in card
    last = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    (valid,) = [record for record in last if any(name.startswith("valid/") for name in record)][-1:]
    means = {name: value for name, value in valid.items() if "/mean/" in name}
    assert means
    for name, value in means.items():
        _, objective, _, metric = name.split("/")
        assert f"| {objective} | {metric} | {value:.4g} |" in card
    sentences = (run / "sentence-transformers" / "README.md").read_text()
    assert "| sentence vector | the mean state |" in sentences
    assert "the mean of the languages' embeddings" in sentences
    opened = package.SentenceTransformer(str(run / "sentence-transformers"), device="cpu")
    assert opened.encode(["kalo mi"]).shape == (1, 32)

    encoder, tokenizer = load_for_scoring(run / "model")
    folded, _ = load_for_scoring(run / "languages" / "bb")
    assert folded.languages is None
    found = embed(folded, tokenizer, ["kalo mi"])
    torch.testing.assert_close(
        found, embed(encoder, tokenizer, ["kalo mi"], language="bb"), atol=1e-5, rtol=1e-4
    )
    cls = replace(config, export=ExportConfig(sentence_transformers="pooled", pooling="cls"))
    pretrain(cls, corpus, run, resume=True)
    assert "the state of the first token" in (run / "sentence-transformers/README.md").read_text()
