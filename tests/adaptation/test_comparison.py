"""Before and after, against loops written out; what is chosen on which data."""

import random
from dataclasses import replace
from statistics import fmean, quantiles

import numpy as np
import pytest

from isoglot.adaptation.comparison import (
    ALIGNMENT,
    BITS,
    RETRIEVAL,
    TOKENS,
    VECTORS,
    AdaptScores,
    Comparison,
    Development,
    compare,
)
from isoglot.adaptation.scores import ModelScores
from isoglot.intervals import ExampleValues, difference_interval, pack_outcomes

RNG = np.random.default_rng(5)


def values(numerators, denominators):
    return ExampleValues(np.array(numerators, float), np.array(denominators, float))


def outcomes(share, number=80, seed=0):
    """Packed outcomes of two directions, with about this share right."""
    return pack_outcomes(np.random.default_rng(seed).random((2, number)) < share)


SPEED = (800.0, 1200.0)
NONE = Development(before={}, after={}, vectors="the mean state of the last layer")


def test_the_interval_of_a_difference_draws_the_same_examples_for_both():
    characters = RNG.integers(5, 30, 60)
    bits = characters * RNG.uniform(1, 6, 60)  # lines differ much more than models do
    before, after = values(bits, characters), values(bits * 0.97, characters)
    drawn = []
    rng = random.Random(0)
    for _ in range(4000):
        rows = [rng.randrange(60) for _ in range(60)]
        old, new = (
            sum(one.numerators[row] for row in rows) / sum(one.denominators[row] for row in rows)
            for one in (before, after)
        )
        drawn.append(new - old)
    low, high = difference_interval(before, after)
    edges = quantiles(drawn, n=40)
    assert (low, high) == pytest.approx((edges[0], edges[-1]), abs=0.004)
    assert high < 0, "every sample is better, though lines vary"


def test_languages_that_got_worse_come_first():
    lengths = np.full(50, 10.0)
    noise = RNG.normal(0, 0.5, 50)
    before = {code: values(30 + noise, lengths) for code in ("en", "sw", "ha")}
    after = {
        "en": values(30.6 + noise, lengths),
        "sw": values(15 + noise, lengths),
        "ha": values(30 + noise[::-1], lengths),
    }
    found = compare(ModelScores(bits=before), ModelScores(bits=after), NONE, SPEED)
    assert [(one.where, one.verdict) for one in found.of(BITS)] == [
        ("en", "worse"),
        ("ha", "same"),
        ("sw", "better"),
    ]
    assert [one.where for one in found.worse] == ["en"]
    assert found.of(BITS)[0].difference == pytest.approx(0.06)


def test_the_layer_is_chosen_on_development_pairs_and_not_on_the_test():
    """On the held-out pairs another layer would be best: it must not be read."""
    before = ModelScores(
        retrieval={"en-sw": [outcomes(0.9, seed=1), outcomes(0.5, seed=2), outcomes(0.2, seed=3)]},
        vectors={"en-sw": outcomes(0.2, seed=3)},
    )
    after = ModelScores(
        retrieval={"en-sw": [outcomes(0.1, seed=5), outcomes(0.99, seed=6), outcomes(0.8, seed=7)]},
        vectors={"en-sw": outcomes(0.7, seed=8)},
    )
    development = Development(
        before={"en-sw": [outcomes(0.1), outcomes(0.6), outcomes(0.2)]},
        after={"en-sw": [outcomes(0.1), outcomes(0.6), outcomes(0.7)]},
        vectors="the state of the first token of layer 2",
    )
    found = compare(before, after, development, SPEED)
    forward = next(one for one in found.of(RETRIEVAL) if one.where == "en→sw")
    backward = next(one for one in found.of(RETRIEVAL) if one.where == "sw→en")
    assert (forward.before + backward.before) / 2 == pytest.approx(0.5, abs=0.1), "layer 1"
    assert (forward.after + backward.after) / 2 == pytest.approx(0.8, abs=0.1), "layer 2"
    (vectors,) = found.of(VECTORS)
    assert vectors.before == pytest.approx(0.2, abs=0.1), "the mean of the last layer"
    assert vectors.after == pytest.approx(0.7, abs=0.1), "the folder's own"
    assert "layer 1 of 2 before, 2 of 2 after" in found.choices[0].choice
    assert found.choices[1].choice.startswith("the state of the first token of layer 2 after")
    assert found.choices[0].data == "80 development pairs, held out of the corpus"


def test_pairs_of_languages_count_alike_in_the_choice_of_a_layer():
    """Layer 0 is better on the large pair, layer 1 on the small one, and by more."""
    retrieval = {
        "en-sw": [outcomes(0.6, 2000), outcomes(0.5, 2000)],
        "en-ha": [outcomes(0.1, 40), outcomes(0.9, 40)],
    }
    found = Development(before=retrieval, after=retrieval, vectors="")
    assert found.layers() == (1, 1)
    assert found.num_pairs == 2040


def test_the_vectors_of_both_encoders_are_said():
    layers = [outcomes(0.5), outcomes(0.6, seed=1)]
    scores = ModelScores(retrieval={"en-sw": layers}, vectors={"en-sw": layers[-1]})
    for own, said in (
        ("", "before, the mean of the last layer, which sentence-transformers takes for any"),
        ("first token of the last layer", "before, first token of the last layer, as its modules"),
    ):
        development = replace(NONE, own_vectors=own)
        (choice,) = (
            one
            for one in compare(scores, scores, development, SPEED).choices
            if one.what == "sentence vectors"
        )
        assert said in choice.choice


def test_without_development_pairs_the_last_layer_is_read_and_that_is_said():
    model = ModelScores(
        retrieval={"en-sw": [outcomes(0.9), outcomes(0.3)]}, vectors={"en-sw": outcomes(0.3)}
    )
    found = compare(model, model, NONE, SPEED)
    assert fmean(one.before for one in found.of(RETRIEVAL)) == pytest.approx(0.3, abs=0.1)
    assert "no held-out pairs" in found.choices[0].data


def test_where_no_pair_differs_the_interval_is_not_empty():
    model = ModelScores(retrieval={"en-sw": [outcomes(0.0)]}, vectors={"en-sw": outcomes(0.0)})
    found = compare(model, model, NONE, SPEED).of(RETRIEVAL)[0]
    assert found.high == pytest.approx(1 - 0.025 ** (1 / 80))
    assert found.low == -found.high
    assert found.verdict == "same"


def test_the_layer_of_alignment_is_chosen_on_one_half_and_scored_on_the_other():
    """Layer 0 is best on the even pairs, layer 1 on the odd ones."""
    total = np.full(40, 10.0)
    even = np.arange(40) % 2 == 0
    layers = [values(np.where(even, 1, 8), total), values(np.where(even, 5, 0), total)]
    found = compare(
        ModelScores(alignment={"de-en": layers}),
        ModelScores(alignment={"de-en": layers[::-1]}),
        NONE,
        SPEED,
    )
    (one,) = found.of(ALIGNMENT)
    assert (one.before, one.after) == (0.8, 0.8), "layer 0 of the first, on the odd pairs"
    assert one.count == 20
    assert found.choices[0].choice == "layer 0 before, 1 after"


def test_an_encoder_without_an_lm_head_has_no_bits_before():
    lines = {"sw": values([3, 4], [1, 2])}
    before, after = ModelScores(tokens=lines), ModelScores(tokens=lines, bits=lines)
    assert [one.metric for one in compare(before, after, NONE, SPEED).comparisons] == [TOKENS]


@pytest.mark.parametrize(
    ("metric", "low", "high", "verdict"),
    [
        (BITS, 0.1, 0.3, "worse"),
        (BITS, -0.3, -0.1, "better"),
        (RETRIEVAL, 0.1, 0.3, "better"),
        (RETRIEVAL, -0.3, -0.1, "worse"),
        (RETRIEVAL, -0.1, 0.1, "same"),
        (ALIGNMENT, 0.1, 0.2, "worse"),
    ],
)
def test_verdicts(metric, low, high, verdict):
    after = 1 + (low + high) / 2
    one = Comparison(metric=metric, where="", before=1, after=after, low=low, high=high, count=9)
    assert one.verdict == verdict


def test_scores_are_written_and_read():
    lines = {"sw": values([3, 4], [1, 2])}
    model = ModelScores(bits=lines, tokens=lines)
    again = ModelScores.from_json(model.to_json())
    assert again.to_json() == model.to_json()
    found = compare(model, again, NONE, SPEED)
    assert AdaptScores.from_json(found.to_json()) == found


def test_a_change_that_is_shown_as_zero_is_neither_better_nor_worse():
    for after, verdict in ((1.4956, "same"), (1.4950, "better")):
        one = Comparison(
            metric=TOKENS, where="en", before=1.496, after=after, low=-1e-3, high=-1e-5, count=9
        )
        assert one.verdict == verdict
