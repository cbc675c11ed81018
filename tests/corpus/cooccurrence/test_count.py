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

from isoglot.corpus.cooccurrence import count as counting_module
from isoglot.corpus.cooccurrence import kernels, runs
from isoglot.corpus.cooccurrence.count import count_pairs
from isoglot.corpus.cooccurrence.pair_table import PairConfig, PairTable
from isoglot.corpus.cooccurrence.runs import merge_range
from isoglot.errors import CorpusError, RecipeError
from tests.corpus.written import VOCABULARY, write_corpus

sentences = st.lists(
    st.lists(st.integers(0, VOCABULARY.size - 1), min_size=1, max_size=12), min_size=1, max_size=20
)


def naive(texts, config):
    """(center, neighbor) -> count, looking from every token to both sides."""
    special = set(VOCABULARY.special)
    tokens = {
        language: sum(token not in special for row in rows for token in row)
        for language, rows in texts.items()
    }
    pivot = config.pivot_language or (
        "en" if tokens.get("en") else max(tokens, key=lambda code: tokens[code])
    )
    added = 1 if config.weights == "paper" else 0
    counts: dict[tuple[int, int], Fraction] = defaultdict(Fraction)
    for language, rows in texts.items():
        constant = Fraction(1)
        if config.language_constants and tokens[language]:
            constant = Fraction(tokens[pivot], tokens[language])
        for row in rows:
            for t, center in enumerate(row):
                for k, other in enumerate(row):
                    near = 1 <= abs(t - k) <= config.window
                    if near and not {center, other} & set(VOCABULARY.special):
                        counts[center, other] += constant / (abs(t - k) + added)
    return {pair: float(count) for pair, count in counts.items()}


def as_dict(table):
    found = {}
    counts = np.exp(table.log_counts.astype(np.float64))
    for key, count in zip(table.keys.tolist(), counts.tolist(), strict=True):
        first, second = divmod(key, table.vocabulary_size)
        found[first, second] = found[second, first] = count
    return found


@given(
    texts=st.dictionaries(st.sampled_from(["de", "en", "fr"]), sentences, min_size=1),
    window=st.integers(1, 6),
    weights=st.sampled_from(["paper", "released"]),
    constants=st.booleans(),
    memory=st.sampled_from([0.0002, 64.0]),
    workers=st.integers(1, 3),
    shard_tokens=st.sampled_from([5, 10**6]),
)
@settings(max_examples=20, deadline=None)
def test_counts_equal_a_naive_count(
    tmp_path_factory, texts, window, weights, constants, memory, workers, shard_tokens
):
    folder = tmp_path_factory.mktemp("pairs")
    corpus = write_corpus(folder, texts, shard_tokens=shard_tokens)
    config = PairConfig(
        window=window, weights=weights, language_constants=constants, memory_mib=memory
    )
    table = count_pairs(corpus, config, workers=workers)
    assert (np.diff(table.keys) > 0).all()
    assert as_dict(table) == pytest.approx(naive(texts, config), rel=1e-6)


def test_the_definition_by_hand(tmp_path):
    """English has three times the tokens of German, special ones not counted (3.2: C_lang)."""
    corpus = write_corpus(tmp_path, {"en": [[4, 5, 6, 4], [4, 4]], "de": [[5, 4, 0]]})
    assert as_dict(count_pairs(corpus, PairConfig())) == pytest.approx(
        {
            **both(5, 6, 1 / 2),
            **both(4, 6, 1 / 3 + 1 / 2),
            **both(4, 5, 1 / 2 + 1 / 3 + 3 * 1 / 2),  # German counts three times
            (4, 4): 2 * 1 / 2,  # each is the other's neighbor; the same token alone is no pair
        },
        rel=1e-6,
    )


def both(first, second, count):
    return {(first, second): count, (second, first): count}


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
    config = PairConfig(window=15, weights="released", language_constants=False)
    found = np.zeros_like(expected)
    for (first, second), count in as_dict(count_pairs(corpus, config)).items():
        found[first, second] = count
    assert found == pytest.approx(expected, rel=1e-6)


def test_memory_and_workers_change_no_bit(tmp_path):
    rng = np.random.default_rng(1)
    texts = {
        code: [rng.zipf(1.3, 9).clip(4, 38).tolist() for _ in range(30)] for code in ("de", "en")
    }
    corpus = write_corpus(tmp_path / "corpus", texts)
    tables = [
        count_pairs(corpus, PairConfig(memory_mib=memory), tmp_path / str(number), workers=workers)
        for number, (memory, workers) in enumerate([(64.0, 1), (0.001, 1), (0.0002, 3)])
    ]
    for table in tables[1:]:
        assert np.array_equal(table.keys, tables[0].keys)
        assert table.log_counts.tobytes() == tables[0].log_counts.tobytes()


def test_other_processes_count_and_add_the_same(tmp_path):
    """Chunks counted and ranges of ids added by processes that share nothing but a folder."""
    rng = np.random.default_rng(2)
    texts = {code: [rng.integers(4, 38, 30).tolist() for _ in range(9)] for code in ("de", "en")}
    corpus = write_corpus(tmp_path / "corpus", texts, shard_tokens=50)
    config = PairConfig(memory_mib=0.003)
    told: list[tuple[str, int, int | None]] = []
    mine = count_pairs(corpus, config, tmp_path / "mine")
    theirs = count_pairs(
        corpus,
        config,
        tmp_path / "theirs",
        workers=2,
        pool="processes",
        progress=lambda *what: told.append(what),
    )
    assert np.array_equal(mine.keys, theirs.keys)
    assert mine.log_counts.tobytes() == theirs.log_counts.tobytes()
    counted = [done for stage, done, _ in told if stage == "count pairs"]
    assert counted[0] == 0
    assert counted[-1] == told[0][2] == 540
    assert sorted(counted) == counted
    assert len(counted) > 3, "there was more than a task for each"


def test_wide_sums_are_kept_and_added(tmp_path, monkeypatch):
    """A run whose sums may not fit 32 bits beside runs whose sums do."""
    rows = [[4, 5, 6, 7, 5, 4]] * 40
    corpus = write_corpus(tmp_path / "corpus", {"en": rows})
    config = PairConfig(window=14, memory_mib=0.01)
    expected = naive({"en": rows}, config)
    table = count_pairs(corpus, config, tmp_path / "one")
    numerators = config.numerators()
    assert 2 * int(numerators.max()) * 15 * 40 < 2**32, "else this says nothing"
    assert as_dict(table) == pytest.approx(expected, rel=1e-6)
    monkeypatch.setattr(runs, "_NARROW", int(numerators.max()) * 400)
    opened: list[bool] = []
    real = runs.SortedRun.open

    def watched(folder):
        run = real(folder)
        opened.append(run.wide)
        return run

    monkeypatch.setattr(runs.SortedRun, "open", watched)
    again = count_pairs(corpus, config, tmp_path / "two")
    assert set(opened) == {True, False}
    assert again.log_counts.tobytes() == table.log_counts.tobytes()


def test_half_precision_errs_little(tmp_path):
    rng = np.random.default_rng(3)
    rows = [rng.zipf(1.2, 30).clip(4, 38).tolist() for _ in range(200)]
    corpus = write_corpus(tmp_path, {"en": rows})
    exact, half = (count_pairs(corpus, PairConfig(dtype=dtype)) for dtype in ("float32", "float16"))
    assert half.log_counts.dtype == np.float16
    assert np.array_equal(exact.keys, half.keys)
    assert half.log_counts == pytest.approx(exact.log_counts, rel=2**-11)
    assert (half.log_counts != exact.log_counts).any()


def test_languages_can_be_counted_alone(tmp_path):
    """Each in its own table, with the constants of the whole corpus; they add up to it."""
    rng = np.random.default_rng(4)
    texts = {
        code: [rng.integers(4, 20, 9).tolist() for _ in range(number)]
        for code, number in (("de", 5), ("en", 15), ("fr", 9))
    }
    corpus = write_corpus(tmp_path, texts)
    total: dict[tuple[int, int], float] = defaultdict(float)
    for code, rows in texts.items():
        alone = count_pairs(corpus, PairConfig(languages=(code,)))
        assert alone.language_constants == {code: 15 / len(rows)}
        for pair, count in as_dict(alone).items():
            total[pair] += count
    assert total == pytest.approx(as_dict(count_pairs(corpus, PairConfig())), rel=1e-6)
    with pytest.raises(CorpusError, match="no text in 'sw'"):
        count_pairs(corpus, PairConfig(languages=("sw",)))


def test_a_table_finds_pairs_either_way_round(tmp_path):
    corpus = write_corpus(tmp_path, {"en": [[4, 5, 6, 4]]})
    table = count_pairs(corpus, PairConfig(window=1))
    logs, seen = table.lookup(np.array([5, 4, 4, 30]), np.array([4, 5, 4, 31]))
    assert seen.tolist() == [True, True, False, False]
    assert np.exp(logs[:2]) == pytest.approx([0.5, 0.5])


def test_counting_goes_on_where_it_was_stopped(tmp_path, monkeypatch):
    rows = [[4, 5, 6, 7]] * 30
    corpus = write_corpus(tmp_path, {"en": rows})
    config = PairConfig(memory_mib=0.0005)
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
    chunks = {arguments[0].ranges[0].first for arguments in begun}
    assert len(begun) == len(chunks) > 3, "no chunk is counted twice"
    assert as_dict(table) == pytest.approx(naive({"en": rows}, config))
    assert not list((tmp_path / "cooccurrence").glob("*/runs-*"))
    again = count_pairs(corpus, config)
    assert len(begun) == len(chunks), "finished counts are not counted again"
    assert np.array_equal(again.keys, table.keys)


def test_joining_goes_on_where_it_was_stopped(tmp_path, monkeypatch):
    rng = np.random.default_rng(5)
    rows = [rng.integers(4, 38, 20).tolist() for _ in range(30)]
    corpus = write_corpus(tmp_path / "corpus", {"en": rows})
    config = PairConfig(memory_mib=0.002)
    whole = count_pairs(corpus, config, tmp_path / "whole")
    joined: list[int] = []

    def stopping(task):
        if len(joined) == 2:
            raise KeyboardInterrupt
        joined.append(task.first)
        return merge_range(task)

    monkeypatch.setattr(counting_module, "merge_range", stopping)
    with pytest.raises(KeyboardInterrupt):
        count_pairs(corpus, config, tmp_path / "stopped")
    monkeypatch.undo()
    again: list[int] = []
    real = runs._merge

    def noted(task):
        again.append(task.first)
        return real(task)

    monkeypatch.setattr(runs, "_merge", noted)
    table = count_pairs(corpus, config, tmp_path / "stopped")
    assert again
    assert not set(again) & set(joined)
    assert table.log_counts.tobytes() == whole.log_counts.tobytes()
    assert np.array_equal(table.keys, whole.keys)


def test_floor_leaves_rare_pairs_out(tmp_path):
    corpus = write_corpus(tmp_path, {"en": [[4, 5], [4, 5], [4, 6]]})
    table = count_pairs(corpus, PairConfig(min_count=0.75))
    assert as_dict(table) == pytest.approx({(4, 5): 1.0, (5, 4): 1.0})


def test_sides_of_translations_count_in_their_languages(tmp_path):
    pairs = {"de-en": ([[4, 5]], [[6, 7, 8, 9]])}
    corpus = write_corpus(tmp_path, {"fr": [[10, 11]]}, pairs=pairs)
    table = count_pairs(corpus, PairConfig(window=1, sources=("pairs",)))
    assert table.language_constants == {"de": 2.0, "en": 1.0}
    assert as_dict(table)[4, 5] == pytest.approx(1.0)
    assert as_dict(table)[6, 7] == pytest.approx(0.5)
    assert (10, 11) not in as_dict(table)


def test_a_corpus_without_pairs_has_an_empty_table(tmp_path):
    table = count_pairs(write_corpus(tmp_path, {"en": [[4], [0, 5]]}), PairConfig())
    assert len(table.keys) == len(table.log_counts) == 0
    assert table.lookup(np.array([4]), np.array([5]))[1].tolist() == [False]


def test_what_cannot_be_counted_is_refused(tmp_path):
    corpus = write_corpus(tmp_path / "corpus", {"en": [[4, 5]]})
    with pytest.raises(CorpusError, match="no source 'texts'; did you mean 'text'"):
        count_pairs(corpus, PairConfig(sources=("texts",)))
    with pytest.raises(CorpusError, match="no text in 'de'"):
        count_pairs(corpus, PairConfig(pivot_language="de"))
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
    with pytest.raises(CorpusError, match=r"keys\.int64: is damaged.*Remove the folder"):
        PairTable.open(tmp_path / "here")


@pytest.mark.parametrize("workers", [1, 2, 7])
def test_all_workers_together_stay_within_the_memory(workers):
    config = PairConfig(memory_mib=8, window=5)
    tokens, pairs = counting_module._sizes(config, 10**9, workers)
    share = 8 * 2**20 / workers
    assert share / 2 * 0.99 <= tokens * config.window * 4 <= share / 2
    assert share / 4 * 0.99 <= pairs * 12 <= share / 4


@pytest.mark.parametrize("number", [1, 5, 60, 200])
def test_ids_are_sorted_by_bits_as_by_comparison(number):
    ids = np.random.default_rng(number).permutation(256)[:number].astype(np.int32)
    bits = np.zeros(4, np.uint64)
    found = ids.copy()
    kernels._sort_ids(found, number, bits)
    assert found.tolist() == sorted(ids.tolist())
    assert not bits.any()


@pytest.mark.slow
def test_a_ray_cluster_changes_no_bit(tmp_path, ray_cluster, monkeypatch):
    rng = np.random.default_rng(0)
    text = [rng.integers(0, VOCABULARY.size, 9).tolist() for _ in range(200)]
    corpus = write_corpus(tmp_path / "corpus", {"en": text, "de": text[::2]}, shard_tokens=100)
    config = PairConfig(memory_mib=0.01)
    here = count_pairs(corpus, config, tmp_path / "here")
    monkeypatch.chdir(tmp_path)
    there = count_pairs(corpus, config, tmp_path / "there", workers=2, cluster="auto")
    assert len(here.keys) > 10
    for file in sorted((tmp_path / "here").iterdir()):
        assert (tmp_path / "there" / file.name).read_bytes() == file.read_bytes()
    assert len(list((tmp_path / "there").iterdir())) == len(list((tmp_path / "here").iterdir()))
    assert len(there.keys) == len(here.keys)
