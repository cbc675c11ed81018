"""Code lengths against a slow float64 reference, and what makes them comparable."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
import torch
from transformers import AutoModelForMaskedLM

from isoglot.corpus.cleaning.sentences import normalize_text
from isoglot.corpus.tokenization.pretokenization import Pretokenizer
from isoglot.errors import ModelError
from isoglot.evaluation import bits_per_character
from isoglot.evaluation.bits_per_character import (
    CodeLengths,
    change,
    code_lengths,
    token_statistics,
)
from isoglot.evaluation.hidden_words import text_parts
from isoglot.evaluation.loading import load_for_scoring
from isoglot.evaluation.tokenize_texts import lossy_note
from tests.evaluation.tiny_tokenizers import KINDS, LINES, make_tokenizer, save_model

TEXT = [*LINES, "", "   ", "∞∞ rafiki [MASK] fox", "one"]


@pytest.fixture(scope="module", params=KINDS)
def folder(request, tmp_path_factory):
    return save_model(make_tokenizer(request.param), tmp_path_factory.mktemp(request.param))


def words_with_characters(line, seed):
    """The places of the characters of each chosen word in a line shorter than 1000 characters."""
    parts = text_parts(line, seed)
    places = [n for n, character in enumerate(line) if character != " "]
    found = []
    for part in parts:
        start = 0
        for length, chosen in zip(part.lengths.tolist(), part.chosen.tolist(), strict=True):
            found.append((set(places[start : start + length]), chosen))
            start += length
    return found


def spans_of(tokenizer, line):
    """Ids of a line, and the places of the characters that are no spaces of each token."""
    found = tokenizer(
        line, add_special_tokens=False, split_special_tokens=True, return_offsets_mapping=True
    )
    spans: list[set[object]] = []
    for start, end in found["offset_mapping"]:
        own: set[object] = {n for n in range(start, end) if line[n] != " "}
        if not own:  # a mark of a space: of the next character
            after = next((n for n in range(start, len(line)) if line[n] != " "), -1)
            own = {("mark", after)}
        spans.append(own)
    return found["input_ids"], spans


@torch.no_grad()
def slow(model, tokenizer, line, seed):
    """(bits of tokens, token counts of units, characters, characters without a known token)."""
    words = words_with_characters(line, seed)
    if not any(chosen for _, chosen in words):
        return 0.0, [], 0, 0
    ids, spans = spans_of(tokenizer, line)
    chosen = {n for n, (_, is_chosen) in enumerate(words) if is_chosen}
    units: list[set[int]] = [{n} for n in range(len(words))]
    of = [{n for n, (places, _) in enumerate(words) if places & span} for span in spans]
    for joined in of:
        if len(joined) > 1:
            merged = {n for unit in units if unit & joined for n in unit}
            units = [*(unit for unit in units if not unit & joined), merged]
    units = sorted((u for u in units if u & chosen), key=min)
    tokens_of: list[list[int]] = []
    for unit in units:
        own = {place for n in unit for place in words[n][0]}
        marks = {("mark", place) for place in own}
        tokens_of.append([k for k, span in enumerate(spans) if span & (own | marks)])
    bits = 0.0
    mask = tokenizer.mask_token_id
    for number in range(max(map(len, tokens_of), default=0)):
        shown = list(ids)
        for tokens in tokens_of:
            for k in tokens[number:]:
                shown[k] = mask
        whole = [tokenizer.cls_token_id, *shown, tokenizer.sep_token_id]
        logs = model(torch.tensor([whole])).logits[0].log_softmax(-1)
        for tokens in tokens_of:
            if number < len(tokens):
                bits -= float(logs[1 + tokens[number], ids[tokens[number]]]) / math.log(2)
    unknown = tokenizer.unk_token_id
    known = {at for span, k in zip(spans, ids, strict=True) if k != unknown for at in span}
    hidden = {place for unit in units for n in unit for place in words[n][0]}
    return bits, list(map(len, tokens_of)), len(hidden), len(hidden - known)


@pytest.mark.parametrize("seed", [0, 3])
def test_against_a_slow_reference(folder, seed):
    encoder, tokenizer = load_for_scoring(folder)
    model = AutoModelForMaskedLM.from_pretrained(folder).double().eval()
    found = code_lengths(encoder, tokenizer, TEXT, seed=seed)
    wanted = [slow(model, tokenizer, normalize_text(line), seed) for line in TEXT]
    np.testing.assert_allclose(found.token_bits, [bits for bits, *_ in wanted], rtol=2e-5)
    counts = Counter(n for _, own, _, _ in wanted for n in own)
    total = sum(counts.values())
    of_counts = [sum(-math.log2(counts[n] / total) for n in own) for _, own, _, _ in wanted]
    np.testing.assert_allclose(found.count_bits, of_counts, atol=1e-12)
    assert found.characters.tolist() == [characters for _, _, characters, _ in wanted]
    assert found.fallback_bits.tolist() == [18.0 * uncoded for *_, uncoded in wanted]
    assert found.words == total
    assert found.tokens == sum(n * number for n, number in counts.items())
    all_bits = sum(bits for bits, *_ in wanted) + sum(of_counts) + found.fallback_bits.sum()
    expected = all_bits / found.characters.sum()
    assert found.bits_per_character == pytest.approx(expected, rel=1e-5)


def test_blocks_and_chunks_change_nothing(folder, monkeypatch):
    encoder, tokenizer = load_for_scoring(folder)
    whole = code_lengths(encoder, tokenizer, TEXT)
    monkeypatch.setattr(bits_per_character, "_LINES_PER_BLOCK", 2)
    monkeypatch.setattr(bits_per_character, "_LOGITS_PER_CHUNK", 1)
    done: list[int] = []
    parts = code_lengths(encoder, tokenizer, iter(TEXT), progress=done.append)
    np.testing.assert_allclose(parts.bits, whole.bits, rtol=1e-5)
    assert parts.characters.tolist() == whole.characters.tolist()
    assert done == [2, 4, 6, 8, 9]


def test_lines_longer_than_the_model(folder):
    encoder, tokenizer = load_for_scoring(folder)
    line = " ".join(LINES[:2] + LINES[4:]) * 4
    found = code_lengths(encoder, tokenizer, [line])
    expected = sum(part.lengths[part.chosen].sum() for part in text_parts(line, 0))
    assert found.characters.tolist() == [expected]
    assert np.isfinite(found.bits_per_character)


def test_the_number_of_masks_is_paid_for(tmp_path, monkeypatch):
    """Words `a` and `bb`, equally likely: one bit a word for any vocabulary.

    A model of characters is certain of the word once it sees the number of masks; a model of whole
    words has half of the probability for each.
    """
    lines = ["a", "bb"] * 50
    whole = save_model(make_tokenizer("words", ("a bb",)), tmp_path / "words")
    single = save_model(make_tokenizer("unigram", ("a b",)), tmp_path / "characters")
    found = []
    for folder in (whole, single):
        encoder, tokenizer = load_for_scoring(folder)
        vocabulary = tokenizer.get_vocab()

        def logits_at(states, places, vocabulary=vocabulary):
            scores = torch.full((len(places), len(vocabulary)), -100.0, device=places.device)
            if "bb" in vocabulary:
                scores[:, [vocabulary["a"], vocabulary["bb"]]] = 0.0
            return scores

        monkeypatch.setattr(encoder, "logits_at", logits_at)
        found.append((code_lengths(encoder, tokenizer, lines), tokenizer))
    words, tokenizer = found[0]
    assert words.bits.tolist() == pytest.approx([1.0] * 100)
    assert words.count_bits.sum() == 0
    characters, tokenizer = found[1]
    assert len(tokenizer("a", add_special_tokens=False)["input_ids"]) != len(
        tokenizer("bb", add_special_tokens=False)["input_ids"]
    )
    assert characters.count_bits.tolist() == pytest.approx([1.0] * 100)


def test_unknown_words_are_not_rewarded(tmp_path, monkeypatch):
    """A vocabulary that knows no word is certain of [UNK], and pays 18 bits for each character."""
    folder = save_model(make_tokenizer("words", ("zzz",)), tmp_path)
    encoder, tokenizer = load_for_scoring(folder)
    unknown = tokenizer.unk_token_id

    def logits_at(states, places):
        scores = torch.full((len(places), len(tokenizer)), -100.0, device=places.device)
        scores[:, unknown] = 0.0
        return scores

    monkeypatch.setattr(encoder, "logits_at", logits_at)
    assert code_lengths(encoder, tokenizer, LINES).bits_per_character == pytest.approx(18)


def test_models_and_lines_without_code_lengths(tmp_path):
    folder = save_model(make_tokenizer("words"), tmp_path)
    encoder, tokenizer = load_for_scoring(folder)
    empty = code_lengths(encoder, tokenizer, [])
    assert math.isnan(empty.bits_per_character)
    assert all(map(math.isnan, empty.interval()))
    blank = code_lengths(encoder, tokenizer, ["", " "])
    assert blank.characters.tolist() == [0, 0]
    assert math.isnan(blank.bits_per_character)
    tokenizer.mask_token = None
    with pytest.raises(ModelError, match="has no mask token"):
        code_lengths(encoder, tokenizer, ["a"])


def test_a_model_without_an_lm_head(tmp_path):
    folder = save_model(make_tokenizer("words"), tmp_path / "whole")
    bare = AutoModelForMaskedLM.from_pretrained(folder).base_model
    bare.save_pretrained(tmp_path / "bare")
    make_tokenizer("words").save_pretrained(tmp_path / "bare")
    with pytest.raises(ModelError, match="without an LM head"):
        code_lengths(*load_for_scoring(tmp_path / "bare"), ["a"])


def test_pretokenized_text_has_the_same_words(tmp_path):
    folder = save_model(make_tokenizer("unigram"), tmp_path)
    encoder, tokenizer = load_for_scoring(folder)
    pretokenizer = Pretokenizer({"en": "moses"})
    line = "the fox, the dog (and friends): quick!"
    plain = code_lengths(encoder, tokenizer, [line] * 2, language="en")
    split = code_lengths(encoder, tokenizer, [line] * 2, language="en", pretokenizer=pretokenizer)
    assert plain.characters.tolist() == split.characters.tolist()
    assert plain.bits_per_character != split.bits_per_character


def lengths(bits, characters):
    zeros = np.zeros(len(bits))
    return CodeLengths(
        token_bits=np.array(bits, float),
        count_bits=zeros,
        fallback_bits=zeros,
        characters=np.array(characters),
        words=1,
        tokens=1,
    )


def test_intervals_and_paired_changes():
    rng = np.random.default_rng(0)
    characters = rng.integers(5, 30, 400)
    bits = characters * rng.normal(3, 1, 400)
    before, after = lengths(bits, characters), lengths(bits * 0.9, characters)
    low, high = before.interval()
    assert low < before.bits_per_character < high
    # the standard error of the mean of 400 values of deviation 1, about 0.05, twice on each side
    assert 0.15 < high - low < 0.28
    # every line improves by a tenth: paired samples do not vary
    found = change(before, after)
    assert (found.value, found.low, found.high) == pytest.approx((-0.1, -0.1, -0.1))
    other = change(before, lengths(characters * rng.normal(3, 1, 400), characters))
    assert other.high - other.low > 0.05
    nothing = change(lengths([], []), lengths([], []))
    assert math.isnan(nothing.value)


def test_token_statistics():
    tokenizer = make_tokenizer("words", ("one two three",))
    found = token_statistics(tokenizer, ["one  two", "three four", ""])
    assert (found.words, found.tokens, found.unknown) == (4, 4, 1)
    assert found.unknown_rate == 0.25
    assert token_statistics(tokenizer, []).tokens == 0


def test_tokenizers_that_lose_letters():
    assert lossy_note(make_tokenizer("unigram", (*LINES, "Ab ab né ne"))) is None
    found = lossy_note(make_tokenizer("wordpiece", (*LINES, "Ab ab né ne")))
    assert found is not None
    assert "letters' case and accents" in found


@pytest.mark.gpu
def test_the_same_bits_on_a_gpu(tmp_path):
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    folder = save_model(make_tokenizer("unigram"), tmp_path)
    encoder, tokenizer = load_for_scoring(folder)
    assert next(encoder.parameters()).is_cuda
    on_gpu = code_lengths(encoder, tokenizer, TEXT)
    on_cpu = code_lengths(encoder.cpu(), tokenizer, TEXT)
    np.testing.assert_allclose(on_gpu.bits, on_cpu.bits, rtol=1e-4)
