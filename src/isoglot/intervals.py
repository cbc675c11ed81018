"""Intervals of scores: a bootstrap over the examples of a test set.

    examples, predictions --measure--> values of each example --interval--> 2.5 and 97.5 %

A metric is a ratio of two sums over examples: right answers over questions, or for F1 twice the
right entities over found and gold ones. Examples are drawn with replacement. Those with equal
values are drawn together, by one multinomial draw of their number, which has the same distribution
as drawing examples one by one and takes a thousandth of the time. Two models that answered the same
examples are compared in pairs: the same examples are drawn for both.
"""

from __future__ import annotations

import base64
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from isoglot.tasks.tagging import find_entities
from isoglot.types import FloatArray

if TYPE_CHECKING:
    from isoglot.results import Score
    from isoglot.tasks.base import Task
    from isoglot.types import BoolArray

SAMPLES = 1000
_QUANTILES = (0.025, 0.975)
_SAME = 1e-9
"""A score and the ratio of its examples' sums differ by rounding only."""


@dataclass(frozen=True, slots=True)
class ExampleValues:
    """One metric by example: the score is the sum of numerators over that of denominators."""

    numerators: FloatArray
    denominators: FloatArray
    strata: Sequence[str] | None = None
    """The relation of each fact: the score is the mean of the relations' scores (LAMA)."""

    def __len__(self) -> int:
        return len(self.numerators)

    @property
    def value(self) -> float:
        """The score."""
        return float(np.mean([_ratio(*part.sums) for part in self.parts()]))

    @property
    def sums(self) -> tuple[float, float]:
        """Sum of the numerators, and of the denominators."""
        return float(self.numerators.sum()), float(self.denominators.sum())

    def parts(self) -> list[ExampleValues]:
        """The values of each stratum."""
        if self.strata is None:
            return [self]
        names = np.asarray(self.strata)
        chosen = [names == name for name in dict.fromkeys(self.strata)]
        return [ExampleValues(self.numerators[own], self.denominators[own]) for own in chosen]

    def halves(self) -> tuple[float, float] | None:
        """The scores of the even and of the odd examples; none for fewer than two."""
        if len(self) < 2:
            return None
        first, second = (
            ExampleValues(
                self.numerators[start::2],
                self.denominators[start::2],
                None if self.strata is None else self.strata[start::2],
            ).value
            for start in (0, 1)
        )
        return first, second


def means_of(values: Sequence[float] | FloatArray) -> ExampleValues:
    """The values of a metric that is their mean."""
    array = np.asarray(values, float)
    return ExampleValues(array, np.ones(len(array)))


def interval(
    values: ExampleValues, *, samples: int = SAMPLES, seed: int = 0
) -> tuple[float, float]:
    """The 2.5 % and the 97.5 % quantile of the score over resampled examples.

    Where all examples agree on 0 or on 1, samples do too, and the interval is the exact binomial
    one: 0 of 8 right answers are compatible with up to 37 %.
    """
    score = values.value
    if score in (0.0, 1.0):
        bound = _QUANTILES[0] ** (1 / len(values))
        return (bound, 1.0) if score else (0.0, 1 - bound)
    rng = np.random.default_rng(seed)
    drawn = np.mean([_resampled(part, rng, samples) for part in values.parts()], axis=0)
    low, high = np.quantile(drawn, _QUANTILES)
    return float(low), float(high)


def difference_interval(
    before: ExampleValues, after: ExampleValues, *, samples: int = SAMPLES, seed: int = 0
) -> tuple[float, float]:
    """The 2.5 % and the 97.5 % quantile of after less before; the same examples are drawn for both.

    Both have one value for each example, in the same order, and no strata.
    """
    assert len(before) == len(after), "a pair for every value"
    rng, number = np.random.default_rng(seed), len(before)
    drawn = []
    for _ in range(samples):  # one by one: a table of all of them would not fit into memory
        weights = rng.multinomial(number, np.full(number, 1 / number))
        old = _ratio(float(weights @ before.numerators), float(weights @ before.denominators))
        new = _ratio(float(weights @ after.numerators), float(weights @ after.denominators))
        drawn.append(new - old)
    low, high = np.quantile(drawn, _QUANTILES)
    return float(low), float(high)


def mean_interval(
    scores: Iterable[tuple[float, float | None, float | None]],
) -> tuple[float, float] | None:
    """The interval of the mean of scores (value, low, high) over independent test sets.

    Distances below and above the scores are combined apart (Zou and Donner, 2008), so that the
    interval of one score is its own, and no end is beyond the mean of the ends. None where a score
    has no interval.
    """
    found = list(scores)
    known = [(v, low, high) for v, low, high in found if low is not None and high is not None]
    if not found or len(known) < len(found):
        return None
    mean = float(np.mean([value for value, _, _ in known]))
    below = math.hypot(*(value - low for value, low, _ in known)) / len(known)
    above = math.hypot(*(high - value for value, _, high in known)) / len(known)
    return mean - below, mean + above


def resampled_means(values: FloatArray, rng: np.random.Generator, samples: int) -> FloatArray:
    """(samples,) means of as many values, drawn with replacement."""
    unique, counts = np.unique(values, return_counts=True)
    total = len(values)
    means: FloatArray = rng.multinomial(total, counts / total, samples) @ unique / total
    return means


def _resampled(values: ExampleValues, rng: np.random.Generator, samples: int) -> FloatArray:
    pairs = np.stack([values.numerators, values.denominators], axis=1)
    unique, counts = np.unique(pairs, axis=0, return_counts=True)
    drawn = rng.multinomial(len(values), counts / len(values), samples) @ unique
    ratios: FloatArray = np.divide(
        drawn[:, 0], drawn[:, 1], out=np.zeros(samples), where=drawn[:, 1] != 0
    )
    return ratios


def _ratio(numerator: float, denominator: float) -> float:
    return numerator / denominator if denominator else 0.0


def correlation_interval(correlation: float, count: int) -> tuple[float, float]:
    """The 95 % interval of Spearman's correlation: Fisher's z with Fieller's variance 1.06."""
    if count < 4 or abs(correlation) >= 1:
        return -1.0, 1.0
    half = 1.96 * math.sqrt(1.06 / (count - 3))
    z = math.atanh(correlation)
    return math.tanh(z - half), math.tanh(z + half)


@dataclass(frozen=True, slots=True)
class Measured:
    """A score, and what its interval is computed from."""

    value: float
    count: int
    """Examples that the value is computed from."""
    examples: ExampleValues | None = None
    """Values by example; none where the score is no ratio of sums."""
    bounds: tuple[float, float] | None = None
    """The interval, where it is not computed from examples."""


def measured_mean(value: float, by_example: FloatArray) -> Measured:
    """A score with the values that it is the mean of; another score has no values by example."""
    values = means_of(by_example)
    same = abs(values.value - value) <= _SAME
    return Measured(value, len(values), values if same else None)


def measure(
    task: Task[Any, Any], examples: Sequence[Any], predictions: Sequence[Any], language: str
) -> dict[str, Measured]:
    """The task's own score of predictions: metric -> its value, and values by example.

    A metric over some examples only (a section, a relation) counts those. Values by example are
    left out where their ratio is not the task's score.
    """
    found = _single_scores(task, examples, predictions, language)
    counts = {name: len(values) for name, values in found.items()}
    read = _COUNTS.get(task.kind)
    if read is not None:
        found |= read(examples, predictions)
    if task.kind == "similarity":  # one pair has no correlation
        found = {}
    measured = {}
    for name, value in task.score(examples, predictions, language).items():
        values = found.get(name)
        if values is not None and abs(values.value - value) > _SAME:
            values = None
        measured[name] = Measured(value, counts.get(name, len(examples)), values)
    return measured


def to_score(measured: Measured, score: Score, *, keep_outcomes: bool = False) -> Score:
    """The score with its value, interval and halves, and with outcomes if they are 0 and 1."""
    found = replace(score, value=measured.value, count=measured.count)
    if measured.bounds is not None:
        found = replace(found, low=measured.bounds[0], high=measured.bounds[1])
    values = measured.examples
    if values is None or not len(values):
        return found
    low, high = interval(values)
    found = replace(found, low=low, high=high, halves=values.halves())
    if keep_outcomes and values.strata is None and (values.denominators == 1).all():
        rows = _as_rows(values.numerators)
        found = found if rows is None else replace(found, outcomes=pack_outcomes(rows))
    return found


def _as_rows(values: FloatArray) -> BoolArray | None:
    """(rows, examples) booleans whose means are the values; none if they are no 0, 1/2 and 1."""
    if np.isin(values, (0, 1)).all():
        one: BoolArray = values[None] == 1
        return one
    if np.isin(values, (0, 0.5, 1)).all():
        return np.stack([values > 0, values == 1])
    return None


def _single_scores(
    task: Task[Any, Any], examples: Sequence[Any], predictions: Sequence[Any], language: str
) -> dict[str, ExampleValues]:
    """The scores of each example alone: values of the metrics that are means over examples."""
    if task.kind in ("retrieval", "mining"):  # a prediction is an index of another example
        return {}
    singles: dict[str, list[float]] = defaultdict(list)
    strata: dict[str, list[str]] = defaultdict(list)
    for example, prediction in zip(examples, predictions, strict=True):
        for name, value in task.score([example], [prediction], language).items():
            singles[name].append(value)
            if task.kind == "probe":
                strata[name].append(f"{example.group} {example.relation}")
    return {
        name: ExampleValues(*_with_ones(values), strata.get(name))
        for name, values in singles.items()
    }


def _with_ones(values: Sequence[float]) -> tuple[FloatArray, FloatArray]:
    found = means_of(values)
    return found.numerators, found.denominators


def _f1_values(right: FloatArray, found: FloatArray, gold: FloatArray) -> dict[str, ExampleValues]:
    return {
        "f1": ExampleValues(2 * right, found + gold),
        "precision": ExampleValues(right, found),
        "recall": ExampleValues(right, gold),
    }


def _of_tags(examples: Sequence[Any], predictions: Sequence[Any]) -> dict[str, ExampleValues]:
    rows = []
    for example, tags in zip(examples, predictions, strict=True):
        gold, found = find_entities(example.tags), find_entities(tags)
        right = sum(true == said for true, said in zip(example.tags, tags, strict=True))
        rows.append((len(gold & found), len(found), len(gold), right, len(example.tags)))
    entities, found_, gold_, right_, words = np.array(rows, float).T
    f1 = _f1_values(entities, found_, gold_)
    return {**f1, "xtreme_f1": f1["f1"], "accuracy": ExampleValues(right_, words)}


def _of_links(examples: Sequence[Any], predictions: Sequence[Any]) -> dict[str, ExampleValues]:
    rows = [
        (len(found), len(one.sure), len(found & one.sure), len(found & one.possible))
        for one, found in zip(examples, predictions, strict=True)
    ]
    found, sure, right_sure, right_possible = np.array(rows, float).T
    total = found + sure
    return {
        "aer": ExampleValues(total - right_sure - right_possible, total),
        "precision": ExampleValues(right_possible, found),
        "recall": ExampleValues(right_sure, sure),
    }


def _of_mined(examples: Sequence[Any], predictions: Sequence[Any]) -> dict[str, ExampleValues]:
    """A mined pair counts for the example of its first side."""
    right, found = np.zeros((2, len(examples)))
    for first, second in set(predictions):
        found[first] += 1
        right[first] += first == second
    gold = np.array([None not in (one.first, one.second) for one in examples], float)
    return _f1_values(right, found, gold)


_COUNTS: Mapping[str, Callable[[Sequence[Any], Sequence[Any]], dict[str, ExampleValues]]] = {
    "token-classification": _of_tags,
    "alignment": _of_links,
    "mining": _of_mined,
}
"""Kind of task -> the counts behind its metrics that are no means over examples."""


def chance(task: Task[Any, Any], examples: Sequence[Any]) -> float | None:
    """The share of the most frequent label, tag or choice; none for other kinds of tasks."""
    match task.kind:
        case "text-classification":
            labels = Counter(example.label for example in examples)
        case "multiple-choice":
            labels = Counter(example.right for example in examples)
        case "token-classification" if task.metrics[0].name == "accuracy":
            labels = Counter(tag for example in examples for tag in example.tags)
        case _:
            return None
    return labels.most_common(1)[0][1] / labels.total() if labels else None


def pack_outcomes(outcomes: BoolArray) -> str:
    """(rows, examples) booleans as text; an example's value is the mean over its rows."""
    rows, count = outcomes.shape
    bits = base64.b64encode(np.packbits(outcomes).tobytes()).decode()
    return f"{rows}x{count}:{bits}"


def unpack_outcomes(text: str) -> FloatArray:
    """(examples,) values of packed outcomes."""
    values: FloatArray = unpack_rows(text).mean(axis=0)
    return values


def unpack_rows(text: str) -> FloatArray:
    """(rows, examples) packed outcomes, 0 or 1."""
    shape, _, bits = text.partition(":")
    rows, count = map(int, shape.split("x"))
    packed = np.frombuffer(base64.b64decode(bits), np.uint8)
    return np.unpackbits(packed, count=rows * count).reshape(rows, count).astype(float)
