"""The transfer gap: what a model loses on the way from the language it was trained on.

The score on the source language less the mean over the others (XTREME, section 4). Small is good,
for models that are equally good on the source.
"""

from __future__ import annotations

from statistics import mean
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_FROM = "zero-shot from "


def source_of(scenario: str | None) -> str | None:
    """The language that a scenario transfers from, if it does."""
    if scenario is None or not scenario.startswith(_FROM):
        return None
    return scenario.removeprefix(_FROM).partition(",")[0]


def transfer_gap(values: Mapping[str, float], scenario: str | None) -> float | None:
    """The gap of one seed's scores by language; none where there is no source, or nothing else.

    Scores of two languages (a question in one, its context in another) are none of the others.
    """
    source = source_of(scenario)
    others = [value for code, value in values.items() if code != source and "-" not in code]
    if source is None or source not in values or not others:
        return None
    return values[source] - mean(others)
