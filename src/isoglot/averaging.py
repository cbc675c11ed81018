"""How scores are averaged, wherever they are: in results files, tables, studies and reports.

Languages come first, then repetitions (XTREME): a repetition has one number for each language, and
its mean is taken over the languages that all repetitions have. Questions whose paragraph is in
another language (MLQA's G-XLT) are averaged apart, as in the papers, and F1 is averaged with exact
match.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace
from statistics import fmean
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from isoglot.results import Score

ANSWERS = ("f1", "exact")
"""Metrics of questions; a task's one number is their mean, as in XTREME."""
BOTH = "f1/exact"
ACROSS = "G-XLT"
"""Ends the metric of pairs of languages, where a task has single languages too."""
_FROM = "zero-shot from "
R = TypeVar("R", bound=Hashable)
"""What tells repetitions apart: a seed, or a file and a seed."""
L = TypeVar("L", int, "int | None")


def to_average(scores: Iterable[Score]) -> list[Score]:
    """Scores as they are averaged: `f1/exact` before F1, and pairs of languages by their own name.

    A task whose languages are all pairs (Tatoeba's en-de) keeps its metrics.
    """
    found = list(scores)
    exact = {_cell(score): score.value for score in found if score.metric == ANSWERS[1]}
    whole: list[Score] = []
    for score in found:
        if score.metric == ANSWERS[0] and _cell(score) in exact:
            value = (score.value + exact[_cell(score)]) / 2
            whole.append(replace(score, metric=BOTH, value=value))
        whole.append(score)
    single = {(score.task, score.version) for score in whole if not is_pair(score.language)}
    return [
        replace(score, metric=f"{score.metric} {ACROSS}")
        if is_pair(score.language) and (score.task, score.version) in single
        else score
        for score in whole
    ]


def over_languages(
    repetitions: Mapping[R, Mapping[str, float]],
) -> tuple[tuple[str, ...], dict[R, float]]:
    """The languages that all repetitions have, in the first one's order, and each one's mean.

    Repetitions that share no language are averaged over what each has.
    """
    first = next(iter(repetitions.values()))
    shared = tuple(code for code in first if all(code in v for v in repetitions.values()))
    means = {
        repetition: fmean(values[code] for code in shared or values)
        for repetition, values in repetitions.items()
    }
    return shared, means


def best_of(means: Mapping[L, float], *, higher_is_better: bool) -> L:
    """The layer with the best mean; of equal ones the lowest."""
    sign = 1 if higher_is_better else -1
    return max(means, key=lambda layer: (sign * means[layer], -(layer or 0)))


def source_of(scenario: str | None) -> str | None:
    """The language that a scenario (`zero-shot from en, xtreme`) transfers from, if it does."""
    if scenario is None or not scenario.startswith(_FROM):
        return None
    return scenario.removeprefix(_FROM).partition(",")[0]


def transfer_gap(
    values: Mapping[str, float], scenario: str | None, *, higher_is_better: bool = True
) -> float | None:
    """What one repetition loses on the way from the language it was trained in (XTREME, section 4).

    The score of the source language less the mean over the others, turned so that a loss is above
    zero; none where there is no source, or nothing else. Pairs of languages are none of the others.
    """
    source = source_of(scenario)
    others = [value for code, value in values.items() if code != source and not is_pair(code)]
    if source is None or source not in values or not others:
        return None
    gap = values[source] - fmean(others)
    return gap if higher_is_better else -gap


def is_pair(language: str) -> bool:
    """Is it two languages, a question's and its context's or those of two sides?"""
    return "-" in language


def _cell(score: Score) -> Score:
    """What a score is of, whatever its metric."""
    return replace(score, metric="", value=0.0)
