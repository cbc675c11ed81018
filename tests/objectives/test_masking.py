import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isoglot.objectives.masking import Masking
from isoglot.types import IGNORE
from tests.batching.fakes import VOCABULARY

UNITS = ("token", "word", "span")
texts = st.lists(st.integers(0, 999), min_size=1, max_size=120)


@given(ids=texts, unit=st.sampled_from(UNITS), rate=st.floats(0.01, 0.9), seed=st.integers(0, 99))
@settings(max_examples=200, deadline=None)
def test_masking_keeps_its_promises(ids, unit, rate, seed):
    masking, rng = Masking(rate=rate, unit=unit), np.random.default_rng(seed)
    original = np.array(ids, np.int32)
    units = masking.choose_positions(original, VOCABULARY, rng)
    shown, targets = masking.replace_tokens(original, units, VOCABULARY, rng)
    allowed = ~np.isin(original, VOCABULARY.special)
    chosen = targets != IGNORE
    assert not (chosen & ~allowed).any(), "special tokens are never predicted"
    assert (shown[~chosen] == original[~chosen]).all()
    assert (np.where(chosen, targets, shown) == original).all(), "the original can be read back"
    replaced = chosen & (shown != original) & (shown != VOCABULARY.mask)
    assert not np.isin(shown[replaced], VOCABULARY.special).any()
    if allowed.any():
        budget = int(masking.num_masked(np.array(allowed.sum())))
        assert 1 <= chosen.sum() <= budget
        if unit != "word":
            assert chosen.sum() == min(budget, allowed.sum())
    else:
        assert not chosen.any()


def test_shares_are_80_10_10_and_places_uniform():
    masking = Masking()
    ids = np.arange(10, 110, dtype=np.int32)
    rng = np.random.default_rng(0)
    shown_as = np.zeros(3)
    places = np.zeros(100)
    for _ in range(4000):
        units = masking.choose_positions(ids, VOCABULARY, rng)
        shown, targets = masking.replace_tokens(ids, units, VOCABULARY, rng)
        chosen = targets != IGNORE
        places += chosen
        masked, same = shown[chosen] == VOCABULARY.mask, shown[chosen] == ids[chosen]
        shown_as += [masked.sum(), (~masked & ~same).sum(), same.sum()]
    assert shown_as / shown_as.sum() == pytest.approx([0.8, 0.1, 0.1], abs=0.005)
    assert places / 4000 == pytest.approx(np.full(100, 0.15), abs=0.03)


def test_whole_words_are_hidden_whole():
    masking = Masking(unit="word", rate=0.3)
    rng = np.random.default_rng(1)
    for _ in range(200):
        ids = rng.integers(10, 900, 40).astype(np.int32)
        starts = VOCABULARY.word_starts[ids]
        starts[0] = True
        word = np.cumsum(starts)
        _, targets = masking.replace_tokens(
            ids, units := masking.choose_positions(ids, VOCABULARY, rng), VOCABULARY, rng
        )
        if all(len(unit) == 1 for unit in units):
            continue  # no word fitted
        for number in np.unique(word):
            hidden = (targets != IGNORE)[word == number]
            assert hidden.all() or not hidden.any()


def test_words_are_cut_where_they_begin_at_special_tokens_and_at_the_start():
    """10 11 | 12 13 14 | [SEP] | 16 17 | 18: the first and fourth begin inside a word."""
    ids = np.array([10, 11, 12, 13, 14, 2, 16, 17, 18], np.int32)
    words = [[0, 1], [2, 3, 4], [6, 7], [8]]
    for seed in range(20):
        rng = np.random.default_rng(seed)
        units = Masking(unit="word", rate=1.0).choose_positions(ids, VOCABULARY, rng)
        assert sorted(unit.tolist() for unit in units) == words
        few = Masking(unit="word", rate=0.4).choose_positions(ids, VOCABULARY, rng)
        assert sum(map(len, few)) <= 3, "three of eight tokens"
        assert all(unit.tolist() in words for unit in few)


def test_text_without_spaces_falls_back_on_tokens():
    ids = np.full(50, 11, np.int32)  # 11 starts no word: one long word
    units = Masking(unit="word").choose_positions(ids, VOCABULARY, np.random.default_rng(0))
    assert len(np.unique(np.concatenate(units))) == 8


def test_spans_are_geometric_and_share_one_fate():
    masking = Masking(unit="span", rate=0.5, span_p=0.2, span_max_tokens=10)
    rng = np.random.default_rng(0)
    lengths = []
    for _ in range(300):
        ids = rng.integers(10, 900, 400).astype(np.int32)
        units = masking.choose_positions(ids, VOCABULARY, rng)
        shown, _ = masking.replace_tokens(ids, units, VOCABULARY, rng)
        lengths.append(len(units[0]))
        for unit in units:
            assert (np.diff(unit) == 1).all()
            masked = shown[unit] == VOCABULARY.mask
            assert masked.all() or not masked.any()
    # the mean of min(geometric(0.2), 10): the first span of a text meets no other
    expected = sum(0.8**k for k in range(10))
    assert np.mean(lengths) == pytest.approx(expected, abs=0.5)


def test_random_replacements_cover_the_vocabulary_without_special_tokens():
    masking = Masking(rate=1.0, mask_replace_prob=0.0, random_replace_prob=1.0)
    rng = np.random.default_rng(0)
    ids = np.full(200_000, 10, np.int32)
    shown, _ = masking.replace_tokens(
        ids, masking.choose_positions(ids, VOCABULARY, rng), VOCABULARY, rng
    )
    counts = np.bincount(shown, minlength=VOCABULARY.size)
    assert not counts[list(VOCABULARY.special)].any()
    rest = np.delete(counts, list(VOCABULARY.special))
    assert rest.min() > 0.6 * rest.mean()
