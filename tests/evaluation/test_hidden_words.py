"""Words of lines, their choice, and the tokens of hidden words under four kinds of tokenizers."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isoglot.corpus.cleaning.sentences import normalize_text
from isoglot.evaluation.hidden_words import TextPart, choose, find_hidden, split_word, text_parts
from isoglot.evaluation.tokenize_texts import tokenize_with_offsets
from tests.evaluation.tiny_tokenizers import KINDS, LINES, make_tokenizer


@pytest.fixture(scope="module", params=KINDS)
def tokenizer(request):
    return make_tokenizer(request.param)


def hidden_of(tokenizer, text, chosen, limit=100):
    """The hidden part of a text in which the words with these numbers are chosen."""
    words = [word for piece in text.split(" ") for word in split_word(piece)]
    lengths = np.array([len(word) for word in words])
    part = TextPart(text, lengths, np.isin(np.arange(len(words)), chosen))
    (encoded,) = tokenize_with_offsets(tokenizer, [text])
    return words, find_hidden(part, text, encoded, tokenizer.unk_token_id, limit)


def test_words_of_scripts_without_spaces():
    assert split_word("friend's") == ["friend's"]
    assert split_word("我们的朋友们ok了") == ["我们的", "朋友们", "ok", "了"]
    # four graphemes: vowel and tone marks belong to the consonant before
    assert split_word("กี่กี่กี่กี่") == ["กี่กี่กี่", "กี่"]


def test_about_15_percent_of_the_words_and_at_least_one():
    lines = [f"{number} " + " ".join(f"w{n}" for n in range(40)) for number in range(200)]
    shares = [part.chosen.mean() for line in lines for part in text_parts(line, 0)]
    assert 0.14 < np.mean(shares) < 0.16
    short = [part for number in range(300) for part in text_parts(f"a{number} b", 0)]
    assert all(part.chosen.any() for part in short)
    assert {int(part.chosen.argmax()) for part in short} == {0, 1}


def test_the_choice_depends_on_seed_and_line():
    lengths = np.full(60, 5)
    first = choose("one line", lengths, 0)
    np.testing.assert_array_equal(first, choose("one line", lengths, 0))
    assert (first != choose("one line", lengths, 1)).any()
    assert (first != choose("another line", lengths, 0)).any()


def test_very_long_words_are_never_chosen():
    (part,) = text_parts("a" * 65, 0)
    assert not part.chosen.any()
    parts = [text_parts(f"{'a' * 65} {'b' * 64} {number}", 0)[0] for number in range(100)]
    assert not any(part.chosen[0] for part in parts)
    assert any(part.chosen[1] for part in parts)


def test_long_lines_are_cut_between_words():
    line = " ".join(f"word{n}" for n in range(400))
    parts = text_parts(line, 0)
    assert len(parts) > 1
    assert " ".join(part.text for part in parts) == line
    assert max(len(part.text) for part in parts) <= 1000
    words = sum(len(part.lengths) for part in parts)
    assert words == 400
    np.testing.assert_array_equal(
        np.concatenate([part.chosen for part in parts]),
        choose(line, np.array([len(word) for word in line.split()]), 0),
    )
    assert text_parts("", 0) == []


def test_a_word_is_hidden_with_all_its_tokens(tokenizer):
    text = LINES[0]
    words, hidden = hidden_of(tokenizer, text, [2])
    (window,) = hidden.windows
    (unit,) = window.units
    found = tokenizer.decode(window.ids[unit.start : unit.end])
    assert found.replace(" ", "") == words[2] == "asubuhi,"
    assert hidden.characters == len("asubuhi,")
    # the mark of the space before the word is hidden with it, so nothing of it is left
    kept = tokenizer.decode(window.ids[: unit.start] + window.ids[unit.end :])
    without = tokenizer(text.replace(" asubuhi,", ""), add_special_tokens=False)["input_ids"]
    assert window.ids[: unit.start] + window.ids[unit.end :] == without, kept


def test_a_token_that_spans_two_words_hides_both():
    tokenizer = make_tokenizer("words", ("我们的朋友 ok",))
    words, hidden = hidden_of(tokenizer, "我们的朋友 ok", [1])
    assert words == ["我们的", "朋友", "ok"]
    (window,) = hidden.windows
    assert [(unit.start, unit.end) for unit in window.units] == [(0, 1)]
    assert hidden.characters == 5
    _, apart = hidden_of(tokenizer, "我们的朋友 ok", [2])
    assert apart.characters == 2
    assert [(unit.start, unit.end) for unit in apart.windows[0].units] == [(1, 2)]


def test_a_byte_token_across_two_characters():
    tokenizer = make_tokenizer("bytes", ("wörld", "örl") * 20)
    text = "a wörld 我"
    ((ids, offsets),) = tokenize_with_offsets(tokenizer, [text])
    assert any(b > c for (_, b), (c, _) in pairwise(offsets))
    words, hidden = hidden_of(tokenizer, text, [1, 2])
    (window,) = hidden.windows
    assert [tokenizer.decode(window.ids[u.start : u.end]).strip() for u in window.units] == words[
        1:
    ]
    assert (hidden.characters, hidden.uncoded) == (6, 0)
    assert window.ids == ids


def test_unknown_and_dropped_characters_are_not_coded():
    tokenizer = make_tokenizer("wordpiece")
    _, hidden = hidden_of(tokenizer, "rafiki ∞∞∞ yangu", [0, 1])
    assert (hidden.characters, hidden.uncoded) == (9, 3)
    # BERT's normalizer drops the accent, which is a character of its own here
    _, hidden = hidden_of(tokenizer, "z\u0301 the", [0])
    assert (hidden.characters, hidden.uncoded) == (2, 2 if "z" not in tokenizer.vocab else 1)


def test_windows_of_a_part_that_is_too_long(tokenizer):
    text = " ".join(LINES[4] for _ in range(3))
    chosen = list(range(0, 30, 4))
    _, whole = hidden_of(tokenizer, text, chosen, 10_000)
    _, cut = hidden_of(tokenizer, text, chosen, 20)
    assert len(whole.windows) == 1
    assert len(cut.windows) > 1
    assert max(len(window.ids) for window in cut.windows) <= 20

    def units(hidden):
        return [w.ids[u.start : u.end] for w in hidden.windows for u in w.units]

    assert units(cut) == units(whole)
    assert (cut.characters, cut.uncoded) == (whole.characters, whole.uncoded)


def test_a_word_with_more_tokens_than_a_window_is_not_coded():
    tokenizer = make_tokenizer("bytes")
    _, hidden = hidden_of(tokenizer, "∞∞∞∞∞∞∞∞ fox", [0, 1], 8)
    assert (hidden.characters, hidden.uncoded) == (11, 8)
    assert [len(window.units) for window in hidden.windows] == [1]


def test_spaces_that_pretokenization_inserts():
    tokenizer = make_tokenizer("unigram")
    part = TextPart("fox,dog", np.array([7]), np.array([True]))
    (encoded,) = tokenize_with_offsets(tokenizer, ["fox , dog"])
    hidden = find_hidden(part, "fox , dog", encoded, tokenizer.unk_token_id, 100)
    assert hidden.characters == 7
    assert hidden.windows[0].ids == encoded[0]
    assert [(u.start, u.end) for u in hidden.windows[0].units] == [(0, len(encoded[0]))]


@settings(max_examples=60)
@given(st.text(max_size=60), st.sampled_from(KINDS))
def test_every_hidden_character_is_counted_once(text, kind):
    tokenizer = TOKENIZERS[kind]
    line = normalize_text(text)
    for part in text_parts(line, 0):
        assert part.lengths.sum() == len(part.text.replace(" ", ""))
        (encoded,) = tokenize_with_offsets(tokenizer, [part.text])
        hidden = find_hidden(part, part.text, encoded, tokenizer.unk_token_id, 500)
        assert hidden.characters >= part.lengths[part.chosen].sum()
        assert 0 <= hidden.uncoded <= hidden.characters
        for window in hidden.windows:
            assert all(0 <= u.start < u.end <= len(window.ids) for u in window.units)


TOKENIZERS = {kind: make_tokenizer(kind) for kind in KINDS}
