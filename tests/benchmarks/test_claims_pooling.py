"""Pooling in several ways in one pass is that of `embed`; retrieval at all layers that of one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from benchmarks.claims import pooling
from benchmarks.claims.pooling import accuracies_by_layer, own_tokens, pooled_layers
from benchmarks.claims.scores import POOLINGS
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from isoglot.corpus import Corpus
from isoglot.evaluation.embed import embed
from isoglot.evaluation.retrieval import retrieval_accuracy
from isoglot.evaluation.tokenize_texts import tokenize_texts
from isoglot.models.config import ModelConfig
from isoglot.models.encoder import Encoder

TEXTS = ("ka lo mi", "tu", "se ra", "ka lo mi", "no pe ka tu mi lo")
Model = tuple[Encoder, PreTrainedTokenizerBase]


@pytest.fixture
def model(corpus: Corpus) -> Model:
    torch.manual_seed(0)
    settings = ModelConfig(size="tiny", num_layers=2, hidden_size=32, num_heads=2)
    encoder = Encoder.build(settings, corpus.vocabulary).eval()
    return encoder, AutoTokenizer.from_pretrained(corpus.tokenizer_folder)


def test_one_pass_pools_as_embed_does(model: Model) -> None:
    encoder, tokenizer = model
    found = pooled_layers(encoder, tokenizer, TEXTS, POOLINGS)
    for name, states in found.items():
        expected = embed(encoder, tokenizer, TEXTS, first_token=name == "first token")
        torch.testing.assert_close(states, expected)


def test_a_text_without_a_token_of_a_pooling_has_a_zero_vector(model: Model) -> None:
    encoder, tokenizer = model
    poolings = {"none": lambda rows: rows.ids < 0}
    assert not pooled_layers(encoder, tokenizer, TEXTS, poolings)["none"].any()


def test_accuracies_of_all_layers_are_those_of_each() -> None:
    torch.manual_seed(0)
    texts = [f"text {number % 9}" for number in range(40)]
    queries = torch.randn(3, 40, 8)
    candidates = queries + torch.tensor([0.5, 1.0, 2.0])[:, None, None] * torch.randn(3, 40, 8)
    found = accuracies_by_layer(queries, candidates, texts)
    assert found == [
        retrieval_accuracy(*layer, texts) for layer in zip(queries, candidates, strict=True)
    ]
    assert found[0] > found[2] > 0


def test_own_tokens_are_all_but_special_ones(model: Model) -> None:
    encoder, tokenizer = model
    found = pooled_layers(encoder, tokenizer, TEXTS, {"own": own_tokens(tokenizer)})["own"]
    torch.testing.assert_close(found, embed(encoder, tokenizer, TEXTS, skip_special=True))


def test_texts_are_tokenized_once_for_all_models_of_a_tokenizer(
    model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []

    def counted(*given: Any) -> Any:
        calls.append(len(given[1]))
        return tokenize_texts(*given)

    monkeypatch.setattr(pooling, "tokenize_texts", counted)
    monkeypatch.setattr(pooling, "_tokenized", {})
    _, tokenizer = model
    folders = [tmp_path / name for name in ("one", "other", "changed")]
    for folder in folders:
        tokenizer.save_pretrained(folder)
    file = folders[-1] / "tokenizer.json"
    file.write_text(file.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    one, other, changed = map(AutoTokenizer.from_pretrained, folders)
    assert pooling.tokenized(one, TEXTS, 16) == pooling.tokenized(other, TEXTS, 16)
    assert calls == [len(TEXTS)]
    for given in ((changed, TEXTS, 16), (one, TEXTS[:2], 16), (one, TEXTS, 4)):
        pooling.tokenized(*given)
    assert calls == [len(TEXTS), len(TEXTS), 2, len(TEXTS)]
