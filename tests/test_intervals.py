"""Intervals of scores against a bootstrap written as a loop, and values by example of each kind."""

from __future__ import annotations

import random
from statistics import fmean

import numpy as np
import pytest
from scipy.stats import binomtest

from isoglot.intervals import (
    ExampleValues,
    Measured,
    chance,
    correlation_interval,
    interval,
    mean_interval,
    means_of,
    measure,
    measured_mean,
    pack_outcomes,
    resampled_means,
    to_score,
    unpack_outcomes,
)
from isoglot.results import Score
from isoglot.tasks import find_task
from isoglot.tasks.examples import (
    AlignedPair,
    Analogy,
    BitextEntry,
    Fact,
    LabeledText,
    LexiconEntry,
    MultipleChoice,
    RatedWordPair,
    TaggedSentence,
)

SCORE = Score(task="t", version=1, language="sw", metric="m", value=0.0, count=0)


def by_loop(numerators, denominators, samples=3000):
    """Quantiles of a bootstrap that draws examples one by one."""
    rng = random.Random(5)
    number = len(numerators)
    found = []
    for _ in range(samples):
        drawn = [rng.randrange(number) for _ in range(number)]
        below = sum(denominators[i] for i in drawn)
        found.append(sum(numerators[i] for i in drawn) / below if below else 0.0)
    return np.quantile(found, [0.025, 0.975])


@pytest.mark.parametrize("kind", ["means", "halves", "ratios"])
def test_it_is_the_bootstrap_written_as_a_loop(kind):
    rng = np.random.default_rng(3)
    above, below = rng.integers(0, 2, 60).astype(float), np.ones(60)
    if kind == "halves":
        above = (above + rng.integers(0, 2, 60)) / 2
    if kind == "ratios":
        below = rng.integers(1, 9, 60).astype(float)
        above = np.minimum(below, rng.integers(0, 5, 60))
    values = ExampleValues(above, below)
    assert values.value == pytest.approx(sum(above) / sum(below))
    assert interval(values) == pytest.approx(by_loop(above, below), abs=0.02)
    assert interval(values) == interval(values), "the seed is fixed"
    assert interval(values) != interval(values, seed=1)


def test_the_interval_is_that_of_a_binomial():
    values = means_of([1.0] * 300 + [0.0] * 700)
    low, high = interval(values, samples=20_000)
    assert (low, high) == pytest.approx((0.3 - 1.96 * 0.01449, 0.3 + 1.96 * 0.01449), abs=0.002)


@pytest.mark.parametrize("count", [1, 8, 500])
def test_where_all_agree_the_exact_binomial_interval(count):
    for value in (0, 1):
        exact = binomtest(value * count, count).proportion_ci(0.95)
        assert interval(means_of([float(value)] * count)) == pytest.approx((exact.low, exact.high))


def test_strata_are_drawn_apart_and_count_alike():
    """A relation of one fact weighs as much as one of a hundred, and is in every sample."""
    values = ExampleValues(np.array([1.0] + [0.0, 1.0] * 50), np.ones(101), ["a"] + ["b"] * 100)
    assert values.value == pytest.approx((1 + 0.5) / 2)
    low, high = interval(values)
    assert (low, high) == pytest.approx((0.7, 0.8), abs=0.015)


def test_the_halves_are_the_even_and_the_odd_examples():
    values = ExampleValues(np.array([1.0, 0, 3, 1, 2]), np.array([2.0, 1, 3, 4, 5]))
    assert values.halves() == pytest.approx((6 / 10, 1 / 5))
    assert means_of([1.0]).halves() is None
    assert means_of([1.0, 0.0]).halves() == (1.0, 0.0)
    stratified = ExampleValues(np.array([1.0, 0, 0, 1]), np.ones(4), ["a", "a", "b", "b"])
    assert stratified.halves() == pytest.approx((0.5, 0.5))


def test_means_of_resampled_values():
    values = np.array([0.0, 0.0, 0.0, 1.0])
    found = resampled_means(values, np.random.default_rng(0), 20_000)
    shares = [float((found == k / 4).mean()) for k in range(5)]
    expected = [0.75**4, 4 * 0.25 * 0.75**3, 6 * 0.25**2 * 0.75**2, 4 * 0.25**3 * 0.75, 0.25**4]
    assert shares == pytest.approx(expected, abs=0.01)


def test_the_interval_of_a_mean_over_test_sets():
    found = mean_interval([(0.5, 0.4, 0.6), (0.7, 0.65, 0.75)])
    half = (0.1**2 + 0.05**2) ** 0.5 / 2
    assert found == pytest.approx((0.6 - half, 0.6 + half))
    assert mean_interval([(0.5, 0.4, 0.6), (0.7, None, None)]) is None
    assert mean_interval([]) is None


def test_the_interval_of_one_score_is_its_own_and_none_leaves_the_range():
    assert mean_interval([(0.1, 0.02, 0.4)]) == pytest.approx((0.02, 0.4))
    low, high = mean_interval([(0.0, 0.0, 0.37), (0.0, 0.0, 0.2)]) or (9.0, 9.0)
    assert low == 0
    assert high == pytest.approx((0.37**2 + 0.2**2) ** 0.5 / 2)
    low, high = mean_interval([(1.0, 0.6, 1.0), (0.9, 0.7, 0.95)]) or (9.0, 9.0)
    assert (low, high) == pytest.approx((0.95 - (0.4**2 + 0.2**2) ** 0.5 / 2, 0.975))


def test_correlations():
    low, high = correlation_interval(0.6, 103)
    half = 1.96 * (1.06 / 100) ** 0.5
    assert (low, high) == pytest.approx(
        (np.tanh(np.arctanh(0.6) - half), np.tanh(np.arctanh(0.6) + half))
    )
    assert correlation_interval(1.0, 50) == (-1.0, 1.0)
    assert correlation_interval(0.5, 3) == (-1.0, 1.0)
    assert correlation_interval(0.5, 4) != (-1.0, 1.0)


def labeled(*labels):
    return [
        LabeledText(id=str(n), first="x", second="y", label=one) for n, one in enumerate(labels)
    ]


def test_accuracy_by_example():
    task = find_task("paws-x")
    found = measure(task, labeled("0", "1", "1", "0"), ["0", "1", "0", "1"], "de")
    one = found["accuracy"]
    assert (one.value, one.count) == (0.5, 4)
    assert one.examples is not None
    assert one.examples.numerators.tolist() == [1, 1, 0, 0]


def test_f1_of_entities_by_sentence():
    task = find_task("conll")
    gold = [("B-PER", "O"), ("O", "B-LOC"), ("B-ORG", "I-ORG")]
    said = [("B-PER", "O"), ("B-LOC", "O"), ("B-ORG", "O")]
    examples = [
        TaggedSentence(id=str(n), words=("a", "b"), tags=tags) for n, tags in enumerate(gold)
    ]
    found = measure(task, examples, said, "de")
    for name, above, below in (
        ("f1", [2, 0, 0], [2, 2, 2]), ("precision", [1, 0, 0], [1, 1, 1]),
        ("recall", [1, 0, 0], [1, 1, 1]),
    ):  # fmt: skip
        values = found[name].examples
        assert values is not None
        assert (values.numerators.tolist(), values.denominators.tolist()) == (above, below)
        assert values.value == pytest.approx(found[name].value) == pytest.approx(1 / 3)


def test_tags_by_sentence():
    examples = [TaggedSentence(id="1", words=("a", "b", "c"), tags=("NOUN", "VERB", "NOUN")),
                TaggedSentence(id="2", words=("a",), tags=("ADJ",))]  # fmt: skip
    found = measure(find_task("ud-pos"), examples, [("NOUN", "NOUN", "NOUN"), ("ADJ",)], "de")
    values = found["accuracy"].examples
    assert values is not None
    assert (values.numerators.tolist(), values.denominators.tolist()) == ([2, 1], [3, 1])
    assert found["accuracy"].value == 0.75
    assert found["xtreme_f1"].examples is not None


def test_alignment_error_rate_by_sentence():
    task = find_task("alignment")
    examples = [
        AlignedPair(first=("a", "b"), second=("c", "d"), sure=frozenset({(0, 0)}),
                    possible=frozenset({(0, 0), (1, 1)})),
        AlignedPair(first=("a",), second=("c",), sure=frozenset({(0, 0)}),
                    possible=frozenset({(0, 0)})),
    ]  # fmt: skip
    links = [{(0, 0), (1, 1), (0, 1)}, set[tuple[int, int]]()]
    found = measure(task, examples, links, "de-en")
    # the first: 3 links, 1 sure, 1 right sure, 2 right possible; the second: 0, 1, 0, 0
    expected = {"aer": ([1, 1], [4, 1]), "precision": ([2, 0], [3, 0]), "recall": ([1, 0], [1, 1])}
    for name, (above, below) in expected.items():
        values = found[name].examples
        assert values is not None
        assert (values.numerators.tolist(), values.denominators.tolist()) == (above, below)
        assert found[name].value == pytest.approx(sum(above) / sum(below))


def test_mined_pairs_by_example():
    task = find_task("bucc")
    sides = [("a", "b"), ("c", "d"), ("e", None), (None, "f")]
    examples = [BitextEntry(first=one, second=other) for one, other in sides]
    found = measure(task, examples, [(0, 0), (2, 3)], "de-en")
    values = found["f1"].examples
    assert values is not None
    assert values.numerators.tolist() == [2, 0, 0, 0]
    assert values.denominators.tolist() == [2, 1, 1, 0]
    assert found["f1"].value == pytest.approx(0.5)


def fact(number, relation, group, answer="x"):
    return Fact(id=str(number), relation=relation, group=group, prompt="[Y]", answers=(answer,))


def test_each_row_of_a_probe_has_its_own_facts():
    facts = [fact(1, "P1", "T-REx N-1"), fact(2, "P1", "T-REx N-1"), fact(3, "P2", "T-REx 1-1"),
             fact(4, "born", "Google-RE born"), fact(5, "born", "Google-RE born"),
             fact(6, "born", "Google-RE born")]  # fmt: skip
    found = measure(find_task("lama"), facts, ["x", "y", "x", "y", "y", "x"], "en")
    assert {name: one.count for name, one in found.items()} == {
        "p@1": 6, "p@1 T-REx": 3, "p@1 T-REx N-1": 2, "p@1 T-REx 1-1": 1,
        "p@1 Google-RE": 3, "p@1 Google-RE born": 3,
    }  # fmt: skip
    assert found["p@1"].value == pytest.approx(fmean([0.5, 1, 1 / 3]))
    for one in found.values():
        assert one.examples is not None
        assert one.examples.value == pytest.approx(one.value)


def test_each_section_of_analogies_has_its_own_number():
    analogies = [Analogy(a="a", b="b", c="c", d="d", section=s) for s in ("x", "x", "y")]
    found = measure(find_task("analogy"), analogies, ["d", "e", "d"], "en")
    assert {name: (one.value, one.count) for name, one in found.items()} == {
        "accuracy": (2 / 3, 3), "accuracy x": (0.5, 2), "accuracy y": (1.0, 1),
    }  # fmt: skip


def test_words_of_a_lexicon():
    entries = [
        LexiconEntry(word="a", translations=("b",)),
        LexiconEntry(word="c", translations=("d",)),
    ]
    found = measure(find_task("muse"), entries, [["x", "b"], ["d"]], "en-de")
    values = found["p@5"].examples
    assert values is not None
    assert values.numerators.tolist() == [1, 1]
    assert found["p@1"].value == 0.5


def test_a_correlation_has_no_values_by_example_but_a_number_of_them():
    pairs = [RatedWordPair(first="a", second=str(n), score=n, section="x" if n < 3 else "y")
             for n in range(7)]  # fmt: skip
    found = measure(find_task("word-similarity"), pairs, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7], "en")
    assert {name: (one.count, one.examples) for name, one in found.items()} == {
        "spearman": (7, None), "spearman x": (3, None), "spearman y": (4, None),
    }  # fmt: skip


def test_a_score_that_is_no_mean_of_its_examples_has_no_interval():
    assert measured_mean(0.5, np.array([0.0, 1.0])).examples is not None
    assert measured_mean(0.6, np.array([0.0, 1.0])) == Measured(0.6, 2)
    assert to_score(Measured(0.6, 2), SCORE).low is None


def test_chance_is_the_share_of_the_most_frequent_answer():
    assert chance(find_task("xnli"), labeled("a", "a", "b", "c")) == 0.5
    choices = [MultipleChoice(id=str(n), premise="", choices=("", ""), asks="cause", right=n % 2)
               for n in (0, 1, 3)]  # fmt: skip
    assert chance(find_task("xcopa"), choices) == pytest.approx(2 / 3)
    tagged = [TaggedSentence(id="1", words=("a", "b", "c"), tags=("X", "X", "NOUN"))]
    assert chance(find_task("ud-pos"), tagged) == pytest.approx(2 / 3)
    assert chance(find_task("conll"), tagged) is None, "F1 of entities: a guess is worth nothing"
    assert chance(find_task("xnli"), []) is None


def test_outcomes_are_packed_and_unpacked():
    outcomes = np.random.default_rng(0).random((2, 37)) < 0.4
    text = pack_outcomes(outcomes)
    assert len(text) < 30
    assert unpack_outcomes(text).tolist() == outcomes.mean(axis=0).tolist()


def test_a_score_keeps_its_outcomes_where_asked():
    halves = np.array([0.0, 0.5, 1.0, 1.0])
    score = to_score(measured_mean(0.625, halves), SCORE, keep_outcomes=True)
    assert (score.value, score.count, score.halves) == (0.625, 4, (0.5, 0.75))
    assert score.low is not None
    assert score.high is not None
    assert score.low < 0.625 < score.high
    assert score.outcomes is not None
    assert unpack_outcomes(score.outcomes).tolist() == halves.tolist()
    assert to_score(measured_mean(0.625, halves), SCORE).outcomes is None
    thirds = np.array([0.0, 1 / 3])
    assert to_score(measured_mean(1 / 6, thirds), SCORE, keep_outcomes=True).outcomes is None
    ratio = Measured(0.5, 2, ExampleValues(np.array([1.0, 0]), np.array([1.0, 1])))
    assert to_score(ratio, SCORE, keep_outcomes=True).outcomes is not None
    uneven = Measured(1 / 3, 2, ExampleValues(np.array([1.0, 0]), np.array([1.0, 2])))
    assert to_score(uneven, SCORE, keep_outcomes=True).outcomes is None
    bounded = to_score(Measured(0.5, 9, bounds=(0.1, 0.7)), SCORE)
    assert (bounded.low, bounded.high, bounded.halves) == (0.1, 0.7, None)
