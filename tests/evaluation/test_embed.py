"""Sentence vectors are those of the plain transformers model on one unpadded sentence at a time."""

from __future__ import annotations

import resource
import time

import pytest
import torch
from transformers import AutoModel

from isoglot.corpus.tokenization.vocabulary import max_characters
from isoglot.errors import ModelError
from isoglot.evaluation.embed import StatePooling, embed
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
    monkeypatch.setitem(embed.__globals__, "cpu_batch_tokens", lambda: tokens_at_a_time)
    found = embed(encoder, tokenizer, SENTENCES, skip_special=skip_special)
    expected = one_at_a_time(folder, tokenizer, skip_special=skip_special)
    assert found.shape == (4, len(SENTENCES), 32)
    torch.testing.assert_close(found.double(), expected, atol=1e-5, rtol=1e-4)


def test_chunks_on_a_gpu_give_the_same_vectors(encoder, tokenizer, monkeypatch):
    """Texts are tokenized a chunk at a time there, by a thread."""
    whole = embed(encoder, tokenizer, SENTENCES, layers=[-1, 1])
    monkeypatch.setattr(StatePooling, "chunk_size", lambda *_: 4)
    torch.testing.assert_close(embed(encoder, tokenizer, SENTENCES, layers=[-1, 1]), whole)
    last = embed(encoder, tokenizer, SENTENCES, layers=[3])  # without the other layers
    torch.testing.assert_close(last, whole[:1])


def test_bfloat16_changes_vectors_by_a_hundredth_of_their_length(encoder, tokenizer):
    exact = embed(encoder, tokenizer, SENTENCES)
    rounded = embed(encoder, tokenizer, SENTENCES, encode_type="bfloat16")
    assert rounded.dtype == torch.float32
    assert not torch.equal(rounded, exact)
    assert ((rounded - exact).norm(dim=-1) < 0.02 * exact.norm(dim=-1)).all()


def test_states_that_are_not_finite_name_the_sentence(encoder, tokenizer, monkeypatch):
    monkeypatch.setattr(StatePooling, "chunk_size", lambda *_: 4)
    unseen = tokenizer(SENTENCES[7])["input_ids"][1]
    first = next(n for n, text in enumerate(SENTENCES) if unseen in tokenizer(text)["input_ids"])
    table = encoder.model.get_input_embeddings().weight
    kept = table.detach()[unseen].clone()
    try:
        with torch.no_grad():
            table[unseen] = float("nan")
        with pytest.raises(ModelError, match=f"states of sentence {first + 1} are not finite"):
            embed(encoder, tokenizer, SENTENCES)
    finally:
        with torch.no_grad():
            table[unseen] = kept


def test_a_sentence_that_is_too_long_is_cut_and_told(encoder, tokenizer):
    long = " ".join(words("aa"))
    ids = tokenizer(long)["input_ids"]
    assert len(ids) > 3 * encoder.max_positions
    said: list[str] = []
    found = embed(encoder, tokenizer, ["ka", long, "lo", long], note=said.append)
    assert torch.isfinite(found).all()
    (note,) = said
    assert "2 of 4 texts (the first is number 2) are longer than the model's 40 positions" in note
    first = tokenizer.decode(ids[1:39])
    assert torch.equal(found[:, 1], embed(encoder, tokenizer, [first], note=said.append)[:, 0])
    assert len(said) == 1
    embed(encoder, tokenizer, ["ka", long], language="aa", note=said.append)
    assert any("1 of 2 texts in aa (the first is number 2) are longer" in note for note in said)


def test_a_text_without_tokens_has_a_zero_vector_and_is_counted(encoder, tokenizer):
    said: list[str] = []
    found = embed(encoder, tokenizer, ["ka", "", ""], skip_special=True, note=said.append)
    assert not found[:, 1:].any()
    (note,) = said
    assert note.startswith("2 of 3 texts have a zero vector")


def test_a_line_of_50_megabytes_costs_nothing(encoder, tokenizer):
    """Cut before it is tokenized: the rest would take gigabytes and minutes."""
    line = "ka lo mitu " * (50_000_000 // 11)
    begin, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = embed(encoder, tokenizer, [line, "ka"])
    assert time.perf_counter() - begin < 2
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # KiB
    short = embed(encoder, tokenizer, [line[:2000]])
    torch.testing.assert_close(found[:, 0], short[:, 0])


@pytest.mark.parametrize("positions", [8, 40, 512])
def test_the_bound_of_characters_is_beyond_any_text_that_fits(tokenizer, positions):
    """The longest token, repeated, fills the positions with a quarter of the bound."""
    longest = max(
        (t for t in tokenizer.get_vocab() if t not in tokenizer.all_special_tokens), key=len
    )
    text = " ".join([longest.strip("▁")] * positions)
    assert len(text[: max_characters(tokenizer, positions)]) == len(text)
