"""Pair counts beside a count that a child could do."""

import json
from collections import defaultdict
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isoglot.corpus.cooccurrence import PairConfig, PairTable, count_pairs, runs
from isoglot.errors import CorpusError, RecipeError
from tests.corpus.written import VOCABULARY, write_corpus

sentences = st.lists(
    st.lists(st.integers(0, VOCABULARY.size - 1), min_size=1, max_size=12), min_size=1, max_size=20
)


def naive(texts, config):
    """(centre, neighbour) -> count, looking from every token to both sides."""
    tokens = {language: sum(map(len, rows)) for language, rows in texts.items()}
    pivot = config.pivot or ("en" if "en" in tokens else max(tokens, key=lambda code: tokens[code]))
    added = 1 if config.weights == "paper" else 0
    counts: dict[tuple[int, int], Fraction] = defaultdict(Fraction)
    for language, rows in texts.items():
        constant = Fraction(tokens[pivot], tokens[language]) if config.constants else Fraction(1)
        for row in rows:
            for t, centre in enumerate(row):
                for k, other in enumerate(row):
                    near = 1 <= abs(t - k) <= config.window
                    if near and not {centre, other} & set(VOCABULARY.special):
                        counts[centre, other] += constant / (abs(t - k) + added)
    return {pair: float(count) for pair, count in counts.items()}


def as_dict(table):
    found = {}
    for key, count in zip(table.keys.tolist(), table.counts.tolist(), strict=True):
        first, second = divmod(key, table.size)
        found[first, second] = found[second, first] = count
    return found


@given(
    texts=st.dictionaries(st.sampled_from(["de", "en", "fr"]), sentences, min_size=1),
    window=st.integers(1, 6),
    weights=st.sampled_from(["paper", "released"]),
    constants=st.booleans(),
    memory=st.sampled_from([0.0001, 0.0005, 64.0]),
    workers=st.integers(1, 3),
    shard_tokens=st.sampled_from([5, 10**6]),
)
@settings(max_examples=60, deadline=None)
def test_counts_equal_a_naive_count(
    tmp_path_factory, texts, window, weights, constants, memory, workers, shard_tokens
):
    folder = tmp_path_factory.mktemp("pairs")
    corpus = write_corpus(folder, texts, shard_tokens=shard_tokens)
    config = PairConfig(window=window, weights=weights, constants=constants, memory=memory)
    table = count_pairs(corpus, config, workers=workers)
    assert (np.diff(table.keys) > 0).all()
    assert as_dict(table) == pytest.approx(naive(texts, config), rel=1e-6)


def test_released_weights_without_constants_are_gloves(tmp_path):
    """GloVe walks to the left only and adds 1/d to both orders of the two words."""
    rng = np.random.default_rng(0)
    rows = [rng.integers(4, 12, rng.integers(1, 20)).tolist() for _ in range(50)]
    expected = np.zeros((VOCABULARY.size, VOCABULARY.size))
    for row in rows:
        for right, word in enumerate(row):
            for left in range(max(right - 15, 0), right):
                expected[row[left], word] += 1 / (right - left)
                expected[word, row[left]] += 1 / (right - left)
    corpus = write_corpus(tmp_path, {"de": rows[:30], "en": rows[30:]})
    config = PairConfig(window=15, weights="released", constants=False)
    found = np.zeros_like(expected)
    for (first, second), count in as_dict(count_pairs(corpus, config)).items():
        found[first, second] = count
    assert found == pytest.approx(expected, rel=1e-6)


def test_memory_and_workers_change_no_bit(tmp_path):
    rng = np.random.default_rng(1)
    texts = {
        code: [rng.zipf(1.3, 9).clip(4, 38).tolist() for _ in range(80)] for code in ("de", "en")
    }
    corpus = write_corpus(tmp_path / "corpus", texts)
    tables = [
        count_pairs(corpus, PairConfig(memory=memory), tmp_path / str(number), workers=workers)
        for number, (memory, workers) in enumerate([(64.0, 1), (0.001, 1), (0.0002, 3)])
    ]
    for table in tables[1:]:
        assert np.array_equal(table.keys, tables[0].keys)
        assert table.counts.tobytes() == tables[0].counts.tobytes()


def test_counting_goes_on_where_it_was_stopped(tmp_path, monkeypatch):
    rows = [[4, 5, 6, 7]] * 30
    corpus = write_corpus(tmp_path, {"en": rows})
    config = PairConfig(memory=0.0005)
    real = runs._sorted_pairs
    begun: list[tuple[Any, ...]] = []

    def counting(most):
        def count(*arguments):
            if len(begun) == most:
                raise KeyboardInterrupt
            begun.append(arguments)
            return real(*arguments)

        return count

    monkeypatch.setattr(runs, "_sorted_pairs", counting(2))
    with pytest.raises(KeyboardInterrupt):
        count_pairs(corpus, config)
    monkeypatch.setattr(runs, "_sorted_pairs", counting(None))
    table = count_pairs(corpus, config)
    chunks = {arguments[0].pieces[0].first for arguments in begun}
    assert len(begun) == len(chunks) > 3, "no chunk is counted twice"
    assert as_dict(table) == pytest.approx(naive({"en": rows}, config))
    assert not list((tmp_path / "cooccurrence").glob("*/runs-*"))
    again = count_pairs(corpus, config)
    assert len(begun) == len(chunks), "finished counts are not counted again"
    assert np.array_equal(again.keys, table.keys)


def test_floor_leaves_rare_pairs_out(tmp_path):
    corpus = write_corpus(tmp_path, {"en": [[4, 5], [4, 5], [4, 6]]})
    table = count_pairs(corpus, PairConfig(floor=0.75))
    assert as_dict(table) == {(4, 5): 1.0, (5, 4): 1.0}


def test_sides_of_translations_count_in_their_languages(tmp_path):
    pairs = {"de-en": ([[4, 5]], [[6, 7, 8, 9]])}
    corpus = write_corpus(tmp_path, {"fr": [[10, 11]]}, pairs=pairs)
    table = count_pairs(corpus, PairConfig(window=1, sources=("pairs",)))
    assert table.constants == {"de": 2.0, "en": 1.0}
    assert as_dict(table)[4, 5] == 1.0
    assert as_dict(table)[6, 7] == 0.5
    assert (10, 11) not in as_dict(table)


def test_a_corpus_without_pairs_has_an_empty_table(tmp_path):
    table = count_pairs(write_corpus(tmp_path, {"en": [[4], [0, 5]]}), PairConfig())
    assert len(table.keys) == len(table.counts) == 0


def test_what_cannot_be_counted_is_refused(tmp_path):
    corpus = write_corpus(tmp_path / "corpus", {"en": [[4, 5]]})
    with pytest.raises(CorpusError, match="no source 'texts'; did you mean 'text'"):
        count_pairs(corpus, PairConfig(sources=("texts",)))
    with pytest.raises(CorpusError, match="no text in 'de'"):
        count_pairs(corpus, PairConfig(pivot="de"))
    with pytest.raises(RecipeError, match="window"):
        PairConfig(window=16)
    count_pairs(corpus, PairConfig(), tmp_path / "here")
    with pytest.raises(CorpusError, match="other settings"):
        count_pairs(corpus, PairConfig(window=3), tmp_path / "here")


def test_a_damaged_table_is_refused(tmp_path):
    corpus = write_corpus(tmp_path / "corpus", {"en": [[4, 5, 6]]})
    count_pairs(corpus, replace(PairConfig(), window=1), tmp_path / "here")
    about = json.loads((tmp_path / "here/pairs.json").read_text())
    assert about["pairs"] == 2
    (tmp_path / "here/keys.int64").write_bytes(b"12345678")
    with pytest.raises(CorpusError, match="does not hold whole counts"):
        PairTable.open(tmp_path / "here")
