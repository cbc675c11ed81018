"""Sentence vectors are those of the plain transformers model on one unpadded sentence at a time."""

from __future__ import annotations

import pytest
import torch
from transformers import AutoModel

from isoglot.evaluation.embed import embed
from tests.tiny_corpus import words

SENTENCES = [
    " ".join(words(language)[start : start + length])
    for language in ("aa", "bb", "cc")
    for start, length in ((0, 1), (3, 7), (20, 3), (40, 5), (3, 7))
]


@torch.no_grad()
def one_at_a_time(folder, tokenizer, *, skip_special):
    """(layers + 1, sentences, D), without padding and without any of our code."""
    model = AutoModel.from_pretrained(folder, add_pooling_layer=False).double().eval()
    vectors = []
    for sentence in SENTENCES:
        encoded = tokenizer(sentence, return_tensors="pt", truncation=True, max_length=40)
        layers = model(**encoded, output_hidden_states=True).hidden_states
        kept = slice(1, -1) if skip_special else slice(None)
        vectors.append(torch.stack([layer[0, kept].mean(dim=0) for layer in layers]))
    return torch.stack(vectors, dim=1)


@pytest.mark.parametrize("skip_special", [False, True])
@pytest.mark.parametrize("tokens_at_a_time", [8192, 30])
def test_against_the_plain_model(
    folder, encoder, tokenizer, skip_special, tokens_at_a_time, monkeypatch
):
    monkeypatch.setitem(embed.__globals__, "_MAX_BATCH_TOKENS", tokens_at_a_time)
    found = embed(encoder, tokenizer, SENTENCES, skip_special=skip_special)
    expected = one_at_a_time(folder, tokenizer, skip_special=skip_special)
    assert found.shape == (4, len(SENTENCES), 32)
    torch.testing.assert_close(found.double(), expected, atol=1e-5, rtol=1e-4)


def test_a_sentence_that_is_too_long_is_cut(encoder, tokenizer):
    long = " ".join(words("aa"))
    assert len(tokenizer(long)["input_ids"]) > 3 * encoder.max_positions
    assert torch.isfinite(embed(encoder, tokenizer, [long])).all()
