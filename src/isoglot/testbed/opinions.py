"""Opinions: qualities that praise or blame, alone, in pairs, or as the reason for something."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isoglot.testbed.concepts import SENTIMENT
from isoglot.testbed.meaning import Compound, Meaning, Quality, Tense
from isoglot.testbed.records import Opinion

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from isoglot.testbed.compose import Composer
    from isoglot.testbed.draws import Draws
    from isoglot.testbed.languages import Grammar


def sentiment(composer: Composer, grammar: Grammar, draws: Iterable[Draws]) -> Iterator[Opinion]:
    """One opinion per draw, the label drawn first."""
    for draw in draws:
        label = draw.below(2)
        yield Opinion(grammar.text(_opinion(composer, draw, label)), label)


def _opinion(composer: Composer, draws: Draws, label: int) -> Meaning:
    quality = _quality(composer, draws, label)
    kind = draws.below(3)
    if kind == 0:
        return quality
    if kind == 1:
        clause = composer.clause(draws, None, Tense.PRESENT)
        return Compound(clause, draws.choice(("because", "and")), quality)
    second = _quality(composer, draws, label)
    while second.subject == quality.subject:
        second = _quality(composer, draws, label)
    return Compound(quality, "and", second)


def _quality(composer: Composer, draws: Draws, label: int) -> Quality:
    """A quality with this label: said so, or, for blame, praise denied."""
    while True:
        quality = composer.quality(draws)
        value = SENTIMENT.get(quality.adjective)
        plain = quality._replace(negated=False)
        if value == label:
            return plain
        if value == 1 and label == 0 and quality.negated:
            return quality
