"""Scores of the tasks that read features: known answers, and slow references."""

from __future__ import annotations

import lzma
import math
import random

import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from isoglot.tasks import find_task
from isoglot.tasks.examples import (
    AlignedPair,
    Analogy,
    BitextEntry,
    LabeledText,
    LexiconEntry,
    RatedWordPair,
    SentencePair,
)
from isoglot.tasks.lexical import spearman


@pytest.mark.parametrize(
    ("language", "name", "printed"),
    [("zh-en", "zhen", "13.3"), ("ro-en", "roen", "20.7"), ("en-fr", "enfr", "4.1")],
)
def test_the_error_rate_of_a_published_aligner(data_folder, language, name, printed):
    task = find_task("alignment-awesome")
    examples = task.read(task.find_split(data_folder, language, "test"))
    file = data_folder / f"eval/word_align/awesome-align/{name}.awesome-align.out.xz"
    with lzma.open(file, "rt", encoding="utf-8") as stream:
        lines = stream.read().splitlines()
    said = [
        {(int(i), int(j)) for i, j in (link.split("-") for link in line.split())} for line in lines
    ]
    scores = task.score(examples, said, language)
    assert f"{100 * scores['aer']:.1f}" == printed
    # the definition, link by link
    found = [(n, link) for n, links in enumerate(said) for link in links]
    sure = sum(link in examples[n].sure for n, link in found)
    possible = sum(link in examples[n].possible for n, link in found)
    number = sum(len(example.sure) for example in examples)
    assert scores["aer"] == 1 - (possible + sure) / (len(found) + number)
    assert scores["precision"] == possible / len(found)
    assert scores["recall"] == sure / number


@pytest.mark.parametrize("language", ["de-en", "en-fr", "en-hi", "ro-en"])
def test_sure_links_have_no_error(data_folder, language):
    task = find_task("alignment")
    examples = task.read(task.find_split(data_folder, language, "test"))
    assert all(example.sure <= example.possible for example in examples)
    scores = task.score(examples, [example.sure for example in examples], language)
    assert scores == {"aer": 0.0, "precision": 1.0, "recall": 1.0}
    stray = {
        link
        for e in examples
        for link in e.possible
        if not (0 <= link[0] < len(e.first) and 0 <= link[1] < len(e.second))
    }
    assert len(stray) == (language in ("de-en", "en-hi"))


def test_possible_links_cost_nothing():
    task = find_task("alignment")
    pair = AlignedPair(
        first=("a", "b"), second=("c", "d"),
        sure=frozenset({(0, 0)}), possible=frozenset({(0, 0), (1, 1)}),
    )  # fmt: skip
    assert task.score([pair], [{(0, 0), (1, 1)}], "xx")["aer"] == 0.0
    assert task.score([pair], [{(0, 1)}], "xx")["aer"] == 1.0
    assert task.score([pair], [set()], "xx") == {"aer": 1.0, "precision": 0.0, "recall": 0.0}


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(-4, 4), st.integers(-4, 4)), min_size=2, max_size=20))
def test_spearman(pairs):
    import numpy as np

    columns = np.array(pairs, dtype=float)
    if len(set(columns[:, 0])) == 1 or len(set(columns[:, 1])) == 1:
        assert spearman(columns) == 0.0
        return
    expected = scipy.stats.spearmanr(columns[:, 0], columns[:, 1]).statistic
    assert math.isclose(spearman(columns), expected, abs_tol=1e-12)


def test_word_similarity(data_folder):
    task = find_task("word-similarity")
    pairs = task.read(task.find_split(data_folder, "en", "test"))
    rng = random.Random(0)
    said = [pair.score + rng.gauss(0, 2) for pair in pairs]
    found = task.score(pairs, said, "en")
    sections = {pair.section for pair in pairs}
    assert sections == {"SimLex999", "WS-353-ALL", "RG-65", "MEN-TR-3k"}
    for section in sections:
        mine = [(p.score, s) for p, s in zip(pairs, said, strict=True) if p.section == section]
        expected = scipy.stats.spearmanr(*zip(*mine, strict=True)).statistic
        assert math.isclose(found[f"spearman {section}"], expected, abs_tol=1e-12)
    mean = sum(found[f"spearman {section}"] for section in sections) / 4
    assert math.isclose(found["spearman"], mean)


def test_words_of_one_score_have_no_order():
    pairs = [RatedWordPair(first="a", second="b", score=1.0, section="x")] * 3
    assert find_task("word-similarity").score(pairs, [1.0, 2.0, 3.0], "en")["spearman"] == 0.0


def test_retrieval():
    pairs = [SentencePair(first=a, second=b) for a, b in ("ax", "by", "cx", "dz")]
    score = find_task("tatoeba").score
    assert score(pairs, [0, 1, 2, 3], "xx-en") == {"accuracy@1": 1.0}
    assert score(pairs, [2, 1, 0, 0], "xx-en") == {"accuracy@1": 0.75}, "the same text is as good"


def test_mining():
    pairs = [
        BitextEntry(first="a", second="b"),
        BitextEntry(first="c", second="d"),
        BitextEntry(first="e", second=None),
    ]
    scores = find_task("bucc").score(pairs, [(0, 0), (2, 1)], "xx-en")
    assert scores == {"f1": 0.5, "precision": 0.5, "recall": 0.5}
    assert find_task("bucc").score(pairs, [], "xx-en")["f1"] == 0.0


def test_dictionaries():
    entries = [
        LexiconEntry(word="cat", translations=("Katze", "Kater")),
        LexiconEntry(word="dog", translations=("Hund",)),
    ]
    ranked = [["Kater", "Hund"], ["Katze", "Hund", "Haus"]]
    assert find_task("muse").score(entries, ranked, "en-de") == {"p@1": 0.5, "p@5": 1.0}


def test_analogies():
    rows = [
        Analogy(a="a", b="b", c="c", d=d, section=s)
        for d, s in (("x", "one"), ("y", "one"), ("z", "two"))
    ]
    assert find_task("analogy").score(rows, ["x", "x", "z"], "en") == {
        "accuracy": pytest.approx(2 / 3), "accuracy one": 0.5, "accuracy two": 1.0,
    }  # fmt: skip


def test_labels():
    examples = [LabeledText(id=str(n), first="x", label=label) for n, label in enumerate("0110")]
    assert find_task("paws-x").score(examples, ["0", "1", "0", "0"], "de") == {"accuracy": 0.75}
    with pytest.raises(ValueError, match="zip"):
        find_task("paws-x").score(examples, ["0"], "de")
