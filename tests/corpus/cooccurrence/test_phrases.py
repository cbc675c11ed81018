"""Phrases of high PMI beside slow references, and masking by them."""

import math
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isoglot.corpus.cooccurrence.find_phrases import (
    best_phrases,
    find_phrases,
    frequent_ngrams,
    pmi_scores,
)
from isoglot.corpus.cooccurrence.phrases import PADDING, PhraseConfig, Phrases
from isoglot.errors import CorpusError
from isoglot.objectives.masking import Masking
from isoglot.types import IGNORE
from tests.corpus.written import VOCABULARY, write_corpus

ORDINARY = ~VOCABULARY.is_special
sentences = st.lists(st.lists(st.integers(3, 8), max_size=12), min_size=1, max_size=25)


def flat(rows):
    ids = np.array([token for row in rows for token in row], np.int32)
    return ids, np.cumsum([0, *map(len, rows)])


def naive_pmi(rows, longest, least):
    """n-gram -> PMI, all segmentations written out."""
    counts = [Counter[tuple[int, ...]]() for _ in range(longest + 1)]
    for row in rows:
        for n in range(1, longest + 1):
            for start in range(len(row) - n + 1):
                gram = tuple(row[start : start + n])
                if not set(gram) & set(VOCABULARY.special):
                    counts[n][gram] += 1

    def log_p(gram):
        return math.log(counts[len(gram)][gram] / counts[len(gram)].total())

    found = {}
    for n in range(2, longest + 1):
        for gram, count in counts[n].items():
            if count >= least:
                ways = []
                for cuts in range(1, 2 ** (n - 1)):
                    places = [i for i in range(1, n) if cuts >> (i - 1) & 1]
                    parts = [gram[a:b] for a, b in pairwise([0, *places, n])]
                    ways.append(log_p(gram) - sum(map(log_p, parts)))
                found[gram] = min(ways)
    return found


@given(rows=sentences, least=st.integers(1, 4))
@settings(max_examples=60, deadline=None)
def test_scores_are_the_least_over_all_segmentations(rows, least):
    ids, offsets = flat(rows)
    levels = frequent_ngrams(ids, offsets, ORDINARY, max_length=5, min_count=least)
    found: dict[tuple[int, ...], float] = {}
    for n in range(2, 6):
        pmi = pmi_scores(levels, n, len(ORDINARY)).tolist()
        found |= dict(zip(map(tuple, levels[n - 1].tokens.tolist()), pmi, strict=True))
    assert found == pytest.approx(naive_pmi(rows, 5, least), abs=1e-9)


def test_the_best_are_kept_in_each_language(tmp_path):
    rng = np.random.default_rng(0)
    loose = [rng.integers(10, 30, 8).tolist() for _ in range(60)]
    texts = {"de": [*loose, *[[30, 31, 32]] * 20], "en": [*loose, *[[33, 34]] * 20]}
    corpus = write_corpus(tmp_path, texts)
    phrases = find_phrases(corpus, PhraseConfig(max_phrases=3), tmp_path / "phrases.npy")
    kept = {tuple(t for t in row if t != PADDING) for row in phrases.table.tolist()}
    assert {(30, 31, 32), (33, 34)} <= kept
    ids, offsets = flat(texts["en"])
    few = best_phrases(ids, offsets, ORDINARY, PhraseConfig(max_phrases=1))
    assert few.tolist() == [[33, 34, PADDING, PADDING, PADDING]]
    assert np.array_equal(Phrases.open(str(tmp_path / "phrases.npy")).table, phrases.table)


@given(
    grams=st.sets(st.lists(st.integers(4, 7), min_size=2, max_size=5).map(tuple), max_size=12),
    ids=st.lists(st.integers(0, 9), min_size=1, max_size=40),
)
@settings(max_examples=100, deadline=None)
def test_phrases_are_found_longest_first_from_the_left(grams, ids):
    table = np.full((len(grams), 5), PADDING, np.int32)
    for row, gram in zip(table, sorted(grams), strict=True):
        row[: len(gram)] = gram
    expected, place = [False] * len(ids), 0
    while place < len(ids):
        expected[place] = True
        fitting = [n for n in range(2, 6) if tuple(ids[place : place + n]) in grams]
        fitting = [n for n in fitting if place + n <= len(ids)]
        place += max(fitting, default=1)
    assert Phrases(table).starts(np.array(ids, np.int32)).tolist() == expected


def test_a_phrase_is_hidden_whole_or_not_at_all(tmp_path):
    table = np.array([[10, 11, 12, PADDING], [20, 21, PADDING, PADDING]], np.int32)
    Phrases(table).write(tmp_path / "phrases.npy")
    masking = Masking(unit="pmi", phrases=str(tmp_path / "phrases.npy"), rate=0.3)
    ids = np.array([0, 5, 10, 11, 12, 6, 20, 21, 7, 10, 11, 12, 8, 9, 2], np.int32)
    rng, hidden = np.random.default_rng(0), np.zeros(len(ids))
    for _ in range(300):
        shown, targets = masking.replace_tokens(
            ids, masking.choose_positions(ids, VOCABULARY, rng), VOCABULARY, rng
        )
        chosen = targets != IGNORE
        assert 1 <= chosen.sum() <= 4
        for start, stop in ((2, 5), (6, 8), (9, 12)):
            assert len(set(chosen[start:stop])) == 1
            assert len(set((shown == VOCABULARY.mask)[start:stop])) == 1, "one fate for all"
        hidden += chosen
    assert (hidden[1:-1] > 0).all()
    assert not hidden[[0, -1]].any()


def test_each_length_is_ranked_by_itself():
    """Three 5-grams score higher than any pair, and still one in two phrases is a pair."""
    rows = [[4, 5], [6, 7], [8, 9]] * 20 + [[10, 11, 12, 13, 14], [15, 16, 17, 18, 19]] * 12
    ids, offsets = flat(rows)
    found = best_phrases(ids, offsets, ORDINARY, PhraseConfig(max_phrases=4))
    assert [sum(token != PADDING for token in row) for row in found.tolist()] == [2, 3, 4, 5]
    levels = frequent_ngrams(ids, offsets, ORDINARY, max_length=5, min_count=10)
    best = [pmi_scores(levels, n, len(ORDINARY)).max() for n in range(2, 6)]
    assert best[-1] > best[0], "else this says nothing"


def test_phrases_are_found_in_the_corpus_where_none_are_given(tmp_path):
    rng = np.random.default_rng(0)
    rows = [[*rng.integers(10, 30, 6).tolist(), 30, 31, 32] for _ in range(60)]
    corpus = write_corpus(tmp_path, {"en": rows})
    told: list[tuple[str, int, int | None]] = []
    masking = Masking(unit="pmi").prepare(corpus, lambda *what: told.append(what))
    assert told == [("find phrases", 0, 1)]
    assert masking.phrases is not None
    assert Masking(unit="pmi").prepare(corpus, lambda *what: told.append(what)) == masking
    assert len(told) == 1, "found once, kept with the corpus"
    other = Masking(unit="pmi", pmi=PhraseConfig(max_phrases=1)).prepare(corpus)
    assert other.phrases != masking.phrases
    starts = Phrases.open(masking.phrases).starts(np.array([9, 30, 31, 32, 9], np.int32))
    assert starts.tolist() == [True, True, False, False, True]
    assert Masking().prepare(corpus) == Masking(), "nothing to find for other units"


def test_phrases_must_be_there(tmp_path):
    masking = Masking(unit="pmi", phrases=str(tmp_path / "none.npy"))
    with pytest.raises(CorpusError, match="isoglot cooccurrence phrases"):
        masking.choose_positions(np.array([5, 6], np.int32), VOCABULARY, np.random.default_rng(0))
