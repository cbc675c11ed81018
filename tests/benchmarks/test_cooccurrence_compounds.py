"""Compounds that translate each other: where they come from, and what is said of their counts."""

import gzip
import math

import numpy as np
import pytest
from benchmarks.cooccurrence_observation import compounds
from benchmarks.cooccurrence_observation.compounds import (
    Compound,
    CompoundCounts,
    LanguagePair,
    bin_compounds,
    token_frequencies,
)

from isoglot.corpus.cooccurrence.pair_table import PairConfig
from isoglot.errors import CorpusError
from tests.tiny_corpus import make_corpus

IST_DIE = Compound(("ist", "die"), ("is", "the"))


def test_a_phrase_table_gives_its_pairs_of_two_words(tmp_path):
    file = tmp_path / "table.gz"
    lines = [
        "ist die ||| is the ||| 0.5 0.1 0.4 0.1 ||| 0-0 1-1",
        "ist die ||| is ||| 0.5 0.1 0.4 0.1",
        "das ist ||| it is ||| 0.5 0.1 0.01 0.1",
        "ist die ||| is the ||| 0.5 0.1 0.4 0.1",
    ]
    file.write_bytes(gzip.compress("\n".join(lines).encode()))
    assert compounds.read_phrase_table(file) == [IST_DIE, Compound(("das", "ist"), ("it", "is"))]
    assert compounds.read_phrase_table(file, min_score=0.1) == [IST_DIE]
    plain = tmp_path / "table.tsv"
    plain.write_text("ist die\tis the\n", encoding="utf-8")
    assert compounds.read_phrase_table(plain) == [IST_DIE]
    plain.write_text("ist die\n", encoding="utf-8")
    with pytest.raises(CorpusError, match="line 1: has no two sides"):
        compounds.read_phrase_table(plain)
    plain.write_text("ist die ||| is the ||| 0.5\n", encoding="utf-8")
    with pytest.raises(CorpusError, match="line 1: has no third score"):
        compounds.read_phrase_table(plain, min_score=0.1)


def test_aligned_bigrams_have_one_link_each_and_stay_neighbors(tmp_path):
    first, second, links = (tmp_path / name for name in ("de", "en", "links"))
    first.write_text("das ist die Frau\nist die\nso ist die\nist die\n", encoding="utf-8")
    second.write_text("this is the woman\nthe is\nso is it the\nis the\n", encoding="utf-8")
    # in the third line the words part, in the fourth one has two links
    links.write_text("0-0 1-1 2-2 3-3\n0-1 1-0\n0-0 1-1 2-3\n0-0 1-0 1-1\n", encoding="utf-8")
    found = compounds.read_alignments(first, second, links)
    assert found == [
        Compound(("das", "ist"), ("this", "is")),
        IST_DIE,
        Compound(("die", "Frau"), ("the", "woman")),
        Compound(("ist", "die"), ("the", "is")),
        Compound(("so", "ist"), ("so", "is")),
    ]
    assert compounds.read_alignments(first, second, links, min_count=2) == []
    links.write_text("0-0 1-9\n", encoding="utf-8")
    with pytest.raises(CorpusError, match="line 1: '1-9' links no two words"):
        compounds.read_alignments(first, second, links)


def test_a_lexicon_has_two_words_a_line(tmp_path):
    file = tmp_path / "lexicon.txt"
    file.write_text("house Haus\ndog\tHund\nhouse Haus\n", encoding="utf-8")
    assert compounds.read_lexicon(file) == [("house", "Haus"), ("dog", "Hund")]
    file.write_text("house\n", encoding="utf-8")
    with pytest.raises(CorpusError, match="line 1: is not a word and its translation"):
        compounds.read_lexicon(file)


def naive(corpus, language, window):
    """Pairs of ids -> count, with the language's constant; the pivot has the most tokens."""
    table = corpus.table("text", language, "train")
    tokens = {code: num_tokens(corpus, code) for code in corpus.languages}
    counts: dict[tuple[int, int], float] = {}
    for row in range(table.num_rows):
        ids = table.ids("ids", row).tolist()
        for t, a in enumerate(ids):
            for k in range(max(0, t - window), min(len(ids), t + window + 1)):
                if k != t and not corpus.vocabulary.is_special[[a, ids[k]]].any():
                    weight = max(tokens.values()) / tokens[language] / (abs(t - k) + 1)
                    counts[a, ids[k]] = counts.get((a, ids[k]), 0) + weight
    return counts


def num_tokens(corpus, language):
    return sum(len(s.values("ids")) for s in corpus.table("text", language, "train").shards)


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    return make_corpus(tmp_path_factory.mktemp("tiny"))


@pytest.mark.parametrize("window", [1, 3])
def test_compounds_are_looked_up_in_their_languages(counted, window):
    pair = LanguagePair(counted, ("aa", "bb"), PairConfig(window=window))
    first, second = (naive(counted, code, window) for code in ("aa", "bb"))
    words = {index: piece.strip() for index, piece in enumerate(counted.token_texts())}
    single = {index: word for word, index in pair.tokens(words.values()).items()}
    assert len(single) > 20
    mine = [(a, b) for a, b in first if a in single and b in single][:60]
    theirs = [(a, b) for a, b in second if a in single and b in single][:60]
    asked = [
        Compound((single[a], single[b]), (single[c], single[d]))
        for (a, b), (c, d) in zip(mine, theirs, strict=False)
    ]
    asked.append(Compound(("zzzzqqq", asked[0].first[0]), asked[0].second))
    observed = pair.count_compounds(asked)
    expected = {
        (round(math.log(first[p]), 4), round(math.log(second[q]), 4))
        for p, q in zip(mine, theirs, strict=False)
        if min(first[p], second[q]) >= 1
    }
    found = zip(observed.first.round(4).tolist(), observed.second.round(4).tolist(), strict=True)
    assert set(found) == expected
    assert observed.dropped["not of single tokens"] == 1
    assert pair.log_average(0) == pytest.approx(
        math.log(np.mean([count for (a, b), count in first.items() if a <= b])), abs=1e-4
    )


def test_two_entries_of_a_lexicon_make_a_compound(counted):
    pair = LanguagePair(counted, ("aa", "bb"), PairConfig(window=2))
    first, second = (naive(counted, code, 2) for code in ("aa", "bb"))
    words = {index: piece.strip() for index, piece in enumerate(counted.token_texts())}
    single = {index: word for word, index in pair.tokens(words.values()).items()}
    near = [p for p in first if set(p) <= single.keys() and p[0] < p[1]][:40]
    there = [p for p in second if set(p) <= single.keys() and p[0] < p[1]][:40]
    entries = list(
        dict.fromkeys(
            (single[a], single[b])
            for p, q in zip(near, there, strict=False)
            for a, b in zip(p, q, strict=True)
        )
    )
    observed = pair.count_lexicon([*entries, ("zzzzqqq", "zzzzqqq")])
    ids = {word: index for index, word in single.items()}
    translations: dict[int, list[int]] = {}
    for word, translation in entries:
        translations.setdefault(ids[word], []).append(ids[translation])
    expected = [
        (first[a, b], second[c, d])
        for a, b in first
        if a <= b and a in translations and b in translations
        for c in translations[a]
        for d in translations[b]
        if (c, d) in second
    ]
    often = sorted((round(x, 3), round(y, 3)) for x, y in expected if min(x, y) >= 1)
    counts = np.exp(observed.first).round(3), np.exp(observed.second).round(3)
    assert sorted(zip(*(count.tolist() for count in counts), strict=True)) == often
    assert len(often) > 5
    assert observed.dropped["entries not of single tokens"] == 1
    assert observed.dropped.get("counts below 1", 0) == len(expected) - len(often)


def test_words_that_cannot_be_compared_are_named(counted):
    pair = LanguagePair(counted, ("aa", "bb"), PairConfig(window=1))
    with pytest.raises(CorpusError, match="'zzzzqqq' is not a single token"):
        pair.log_count(0, ("zzzzqqq", "zzzzqqq"))
    with pytest.raises(CorpusError, match="no language 'xx'"):
        LanguagePair(counted, ("aa", "xx"), PairConfig())


def test_bins_have_means_and_intervals():
    rng = np.random.default_rng(0)
    first, second = rng.uniform(0, 8, 500), rng.uniform(0, 8, 500)
    observed = CompoundCounts(first=first, second=second, dropped={})
    found = bin_compounds(observed, 4)
    sums, differences = first + second, np.abs(first - second)
    assert sum(b.num_compounds for b in found) == 500
    for b in found:
        here = (sums >= b.low) & (sums <= b.high)
        assert b.num_compounds == here.sum()
        assert b.difference == pytest.approx(differences[here].mean())
        assert b.ratio == pytest.approx((differences / sums)[here].mean())
        error = differences[here].std(ddof=1) / math.sqrt(b.num_compounds)
        assert b.difference_half == pytest.approx(1.96 * error)
    shuffled = observed.shuffled()
    assert sorted(shuffled.second) == sorted(second)
    assert not np.array_equal(shuffled.second, second)
    with pytest.raises(CorpusError, match=r"only 4 compounds are left to plot \(3 never seen"):
        bin_compounds(CompoundCounts(first=first[:4], second=second[:4], dropped={"never seen": 3}))


def test_frequencies_fall_and_are_shares_of_the_text(counted):
    ranks, shares = token_frequencies(counted, "aa")
    assert ranks[0] == 1
    assert (np.diff(ranks) > 0).all()
    assert (np.diff(shares) <= 0).all()
    tokens = np.concatenate(
        [shard.values("ids") for shard in counted.table("text", "aa", "train").shards]
    )
    counts = np.bincount(tokens)
    counts[[i for i in counted.vocabulary.special if i < len(counts)]] = 0
    assert shares[0] == pytest.approx(counts.max() / counts.sum())
