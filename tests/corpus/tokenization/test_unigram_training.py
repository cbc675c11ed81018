"""Unigram training beside slow versions of each step, and beside SentencePiece's trainer."""

from __future__ import annotations

import io
import lzma
import math
import os
import random
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import digamma as exact_digamma
from sentencepiece import SentencePieceTrainer

from isoglot.corpus.cleaning.sentences import normalize_text
from isoglot.corpus.tokenization import unigram_training, word_counts
from isoglot.corpus.tokenization.build import TokenizerConfig
from isoglot.corpus.tokenization.fragments import Fragments, split_fragments
from isoglot.corpus.tokenization.lattice import best_counts, expected_counts, removal_losses
from isoglot.corpus.tokenization.sentencepiece import train_sentencepiece
from isoglot.corpus.tokenization.unigram_training import (
    TooManyCharactersError,
    digamma,
    train_unigram,
)
from isoglot.corpus.tokenization.word_counts import count_words, counted_lines, read_words
from tests.corpus.sentences import SENTENCES, lines

WORDS = count_words(line for language in SENTENCES for line in lines(language, 60))


def strings(fragments: Fragments) -> dict[str, int]:
    parts = np.split(fragments.codes, fragments.ends[:-1])
    texts = ["".join(map(chr, part.tolist())) for part in parts]
    assert len(set(texts)) == len(texts)
    return dict(zip(texts, fragments.counts.tolist(), strict=True))


def script_of(character: str) -> str:
    for script, ranges in {
        "mark": [("\u0300", "\u036f"), ("\u093e", "\u094d")],
        "han": [("\u3041", "\u3096"), ("\u30a1", "\u30fa"), ("\u4e00", "\u9fff")],
        "latin": [("a", "z"), ("A", "Z")],
        "cyrillic": [("\u0430", "\u044f")],
        "devanagari": [("\u0905", "\u0939")],
    }.items():
        if any(first <= character <= last for first, last in ranges):
            return script
    return "sign"


def split_slowly(word: str) -> list[str]:
    """Character by character: a new fragment where the script of the last one changes."""
    fragments, last = ["▁"], None
    for character in word:
        script = script_of(character)
        if script == "mark" or last in (None, script):
            fragments[-1] += character
        else:
            fragments.append(character)
        last = last if script == "mark" else script
    return fragments


@settings(max_examples=200, deadline=None)
@given(
    st.dictionaries(
        st.text("abZя.,1७अकि\u0301中のカ", max_size=8), st.integers(1, 9), min_size=1, max_size=8
    )
)
def test_fragments_are_those_of_a_loop_over_characters(words):
    expected = Counter[str]()
    for word, number in words.items():
        for fragment in split_slowly(word):
            expected[fragment] += number
    assert strings(split_fragments(words, 1.0)) == expected
    # the order of words does not matter
    again = split_fragments(dict(reversed(words.items())), 1.0)
    assert np.array_equal(again.codes, split_fragments(words, 1.0).codes)


def test_rare_characters_are_left_out_and_end_fragments():
    # 40 letters and 10 marks of spaces; x and y are 2 % each
    found = split_fragments({"aaaa": 9, "axay": 1}, 0.95)
    assert strings(found) == {"▁aaaa": 9, "▁a": 1, "a": 1}
    assert [chr(code) for code in found.characters] == ["a", "▁"]


def segmentations(text: str, pieces: dict[str, float]) -> list[list[str]]:
    if not text:
        return [[]]
    return [
        [text[:cut], *rest]
        for cut in range(1, len(text) + 1)
        if text[:cut] in pieces
        for rest in segmentations(text[cut:], pieces)
    ]


def lattice_of(words: dict[str, int]) -> tuple[unigram_training._Lattice, np.ndarray]:
    return unigram_training._seed(split_fragments(words, 1.0))


SOME = {"abcabd": 3, "abd": 2, "bdbd": 1, "cab": 4}


def test_seeds_are_the_repeated_substrings_that_different_characters_follow():
    lattice, covered = lattice_of(SOME)
    counts = Counter[str]()
    followed = defaultdict[str, set[str]](set)
    for fragment, number in strings(lattice.fragments).items():
        for start in range(len(fragment)):
            for end in range(start + 1, len(fragment) + 1):
                text = fragment[start:end]
                counts[text] += number
                followed[text].add(fragment[end : end + 1] or f"end {start}")
    expected = {
        text: number * len(text)
        for text, number in counts.items()
        if len(text) == 1
        or (number >= 2 and not any(counts[text + more] == number for more in followed[text]))
    }
    assert dict(zip(lattice.texts(), covered.tolist(), strict=True)) == expected
    assert "abd" in expected
    assert "bca" not in expected


def probabilities(lattice: unigram_training._Lattice) -> np.ndarray:
    values = np.random.default_rng(3).uniform(0.5, 2, len(lattice.where))
    return values / values.sum()


def test_expected_and_best_counts_are_those_of_all_segmentations():
    lattice, _ = lattice_of(SOME)
    scores = np.log(probabilities(lattice))
    pieces = dict(zip(lattice.texts(), scores.tolist(), strict=True))
    expected, best = defaultdict[str, float](float), Counter[str]()
    for fragment, number in strings(lattice.fragments).items():
        ways = segmentations(fragment, pieces)
        weights = [math.exp(sum(pieces[piece] for piece in way)) for way in ways]
        for way, weight in zip(ways, weights, strict=True):
            for piece in way:
                expected[piece] += number * weight / sum(weights)
        for piece in ways[weights.index(max(weights))]:
            best[piece] += number
    texts = lattice.fragments.ends, lattice.fragments.counts
    everything = 0, len(texts[0])
    found = expected_counts(*texts, *lattice.edges, np.exp(scores), *everything)
    np.testing.assert_allclose(found, [expected[piece] for piece in pieces], rtol=1e-12)
    counted = best_counts(*texts, *lattice.edges, scores, *everything)
    assert counted.tolist() == [best[piece] for piece in pieces]

    total = sum(best.values())
    losses = removal_losses(
        lattice.where, lattice.sizes, *lattice.edges, scores, counted, 0, len(scores)
    )
    for piece, loss in zip(pieces, losses.tolist(), strict=True):
        if len(piece) == 1:
            assert loss == math.inf
            continue
        ways = [way for way in segmentations(piece, pieces) if way != [piece]]
        other = max(ways, key=lambda way: sum(pieces[one] for one in way))
        if not best[piece] or sum(pieces[one] for one in other) > pieces[piece]:
            assert loss == -math.inf
            continue
        after = total + best[piece] * (len(other) - 1)
        own = math.log(best[piece] / total)
        others = sum(math.log((best[one] + best[piece]) / after) for one in other)
        assert loss == pytest.approx(best[piece] * (own - others), rel=1e-10)


@pytest.mark.parametrize("scale", [1e-4, 1e-120])
def test_sums_over_long_fragments_do_not_vanish(scale):
    """2,000 characters of probability 1e-4: in double precision their product is 0.

    At 1e-120 the sums become small within each 16 characters.
    """
    rng = random.Random(1)
    text = "".join(rng.choices("abcdefgh", k=2000))
    lattice, _ = lattice_of({text: 2, text[:300]: 1})
    share = scale * probabilities(lattice) * len(lattice.where)
    found = expected_counts(
        lattice.fragments.ends, lattice.fragments.counts, *lattice.edges, share, 0, 2
    )
    pieces = dict(zip(lattice.texts(), np.log(share).tolist(), strict=True))
    expected = defaultdict[str, float](float)
    for fragment, number in strings(lattice.fragments).items():
        size = len(fragment)
        edges = [
            (start, start + length)
            for start in range(size)
            for length in range(1, 17)
            if fragment[start : start + length] in pieces and start + length <= size
        ]
        forward, backward = np.full(size + 1, -np.inf), np.full(size + 1, -np.inf)
        forward[0] = backward[size] = 0.0
        for start, end in edges:
            score = pieces[fragment[start:end]]
            forward[end] = np.logaddexp(forward[end], forward[start] + score)
        for start, end in reversed(edges):
            score = pieces[fragment[start:end]]
            backward[start] = np.logaddexp(backward[start], score + backward[end])
        for start, end in edges:
            piece = fragment[start:end]
            way = forward[start] + pieces[piece] + backward[end] - forward[size]
            expected[piece] += number * math.exp(way)
    np.testing.assert_allclose(found, [expected[piece] for piece in pieces], rtol=1e-9, atol=1e-30)


def test_digamma():
    values = np.array([0.5, 1.0, 1.7, 6.0, 31.4, 1e6])
    np.testing.assert_allclose(digamma(values), exact_digamma(values), rtol=1e-9, atol=1e-12)


def test_pieces_depend_neither_on_threads_nor_on_the_order_of_words(monkeypatch):
    config = TokenizerConfig(vocab_size=700)
    expected = train_sentencepiece(WORDS, config)
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    assert train_sentencepiece(WORDS, config) == expected
    words = list(WORDS.items())
    random.Random(2).shuffle(words)
    assert train_sentencepiece(dict(words), config) == expected


def test_the_vocabulary_has_the_size_and_every_covered_character():
    pieces = train_unigram(WORDS, 600, 1.0, "<☃>")
    texts = [piece for piece, _ in pieces]
    assert len(texts) == len(set(texts)) == 600
    assert set("".join(WORDS)) | {"▁", "☃"} <= set(texts)
    scores = [score for _, score in pieces]
    assert scores == sorted(scores, reverse=True)
    assert 0.5 < sum(map(math.exp, scores)) <= 1
    with pytest.raises(TooManyCharactersError, match=r"100\.00% of the text"):
        train_unigram(WORDS, 20, 1.0)


def test_words_are_counted_as_often_as_their_sentences_are_drawn(tmp_path):
    sentences = [("a b a", 1), ("b", 3), ("é b", 3)]
    files = [tmp_path / "1", tmp_path / "2"]
    files[0].write_bytes(counted_lines((text.encode(), times) for text, times in sentences))
    files[1].write_bytes(counted_lines([(b"c", 2)]))
    assert read_words(files) == {"a": 2, "b": 7, "é": 3, "c": 2}


def test_a_line_of_rare_characters_in_much_text():
    """As in a table of characters: each is seen a few times among 100 million."""
    rare = "".join(map(chr, range(0x4E00, 0x4E00 + 400)))
    pieces = dict(train_unigram({"the": 10**7, "of": 10**7, rare: 1}, 500, 1.0))
    assert {*rare, "▁the", "▁of"} <= set(pieces)
    assert all(map(math.isfinite, pieces.values()))


def sentences_with_and_without_spaces():
    rng = random.Random(4)
    words = ["".join(rng.choices("abcdefghij", k=6)) for _ in range(3000)]
    rates = [1 / rank for rank in range(1, 3001)]
    for _ in range(3000):
        yield " ".join(rng.choices(words, rates, k=15))
        yield "".join(rng.choices("中文字符很多", k=30))


def characters_of(counts: Counter[str]) -> list[int]:
    return [
        sum(number * len(word) for word, number in counts.items() if word.isascii() is is_ascii)
        for is_ascii in (True, False)
    ]


def test_of_too_many_words_some_stand_for_all(monkeypatch, tmp_path):
    sentences = list(sentences_with_and_without_spaces())
    expected = count_words(sentences)
    files = [tmp_path / "1", tmp_path / "2"]
    for number, path in enumerate(files):
        path.write_bytes(counted_lines((text.encode(), 1) for text in sentences[number::2]))
    monkeypatch.setattr(word_counts, "_MAX_WORDS", 4000)
    for found in (count_words(sentences), read_words(files)):
        assert 1000 < len(found) <= 4000 < len(expected)
        # the rarest half forgotten, a twentieth of the text without spaces is left
        np.testing.assert_allclose(characters_of(found), characters_of(expected), rtol=0.1)
        for word, number in expected.most_common(100):
            assert found[word] == number


def by_sentencepiece(sentences: list[str], size: int) -> bytes:
    model = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter(sentences),
        model_writer=model,
        vocab_size=size - 1,
        character_coverage=0.9995,
        byte_fallback=True,
        normalization_rule_name="identity",
        bos_id=0,
        pad_id=1,
        eos_id=2,
        unk_id=3,
        minloglevel=2,
    )
    return model.getvalue()


@pytest.mark.skipif("ISOGLOT_DATA" not in os.environ, reason="ISOGLOT_DATA is not set")
def test_real_text_has_as_few_tokens_as_with_sentencepieces_own_training():
    """A thousand sentences of each language; a tenth of them is held out."""
    training, held_out = [], {}
    for name in ("ar", "en", "es", "hi", "ru", "sw", "th", "vi"):
        path = Path(os.environ["ISOGLOT_DATA"]) / f"mono/lingua_sentences/{name}.txt.xz"
        with lzma.open(path, "rt", encoding="utf-8") as file:
            texts = [text for line in file if (text := normalize_text(line))]
        held_out[name] = texts[::10]
        training += [text for number, text in enumerate(texts) if number % 10]
    models = {
        "own": train_sentencepiece(count_words(training), TokenizerConfig(vocab_size=5000)),
        "theirs": by_sentencepiece(training, 5000),
    }
    tokens = {
        name: [
            sum(map(len, sentencepiece.SentencePieceProcessor(model_proto=model).encode(texts)))
            for texts in held_out.values()
        ]
        for name, model in models.items()
    }
    assert sum(tokens["own"]) <= sum(tokens["theirs"])
    for own, theirs in zip(tokens["own"], tokens["theirs"], strict=True):
        assert own < 1.02 * theirs  # 100 sentences: a language may lose what another gains
