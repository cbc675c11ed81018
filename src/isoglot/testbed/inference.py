"""Natural language inference, true by construction.

A statement with a place is stronger than the one without; under negation it is weaker. So from
one clause, with and without its place and its negation, come all three labels, in both polarities
(a negated hypothesis says nothing about the label). Qualities do the same with "very" and with
opposites.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isoglot.testbed.compose import NEGATED_TIMES
from isoglot.testbed.concepts import OPPOSITE
from isoglot.testbed.meaning import Simple, Tense
from isoglot.testbed.records import Inference

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from isoglot.testbed.compose import Composer
    from isoglot.testbed.draws import Draws
    from isoglot.testbed.languages import Grammar

LABELS = ("entailment", "neutral", "contradiction")


def nli(composer: Composer, grammar: Grammar, draws: Iterable[Draws]) -> Iterator[Inference]:
    """One pair per draw, the label drawn first."""
    for draw in draws:
        label = draw.below(3)
        make = _from_quality if draw.chance(25) else _from_clause
        premise, hypothesis = make(composer, draw, label)
        yield Inference(grammar.text(premise), grammar.text(hypothesis), LABELS[label])


def _from_clause(composer: Composer, draws: Draws, label: int) -> tuple[Simple, Simple]:
    """With (`full`) and without (`bare`) its place, and both negated."""
    clause = composer.clause(draws)
    while not clause.place or clause.verb in ("live", "collect"):
        clause = composer.clause(draws)
    thing = clause.object
    clause = clause._replace(
        negated=False,
        object=None if thing is None else thing._replace(number=""),
        time=clause.time if clause.tense != Tense.PRESENT or clause.time in NEGATED_TIMES else "",
    )
    full = clause._replace(fronted=clause.fronted and bool(clause.time))
    bare = full._replace(place="")
    not_full, not_bare = full._replace(negated=True), bare._replace(negated=True)
    if draws.chance(50):
        return ((full, bare), (bare, full), (full, not_bare))[label]
    return ((not_bare, not_full), (not_full, not_bare), (not_bare, full))[label]


def _from_quality(composer: Composer, draws: Draws, label: int) -> tuple[Simple, Simple]:
    """With and without "very", and the opposite."""
    quality = composer.quality(draws)
    while quality.adjective not in OPPOSITE:
        quality = composer.quality(draws)
    plain = quality._replace(very=False, negated=False)
    very = plain._replace(very=True)
    opposite = plain._replace(adjective=OPPOSITE[plain.adjective])
    if label == 0:
        return (very, plain) if draws.chance(50) else (plain, opposite._replace(negated=True))
    if label == 1:
        return (plain, very) if draws.chance(50) else (opposite._replace(negated=True), plain)
    return (very, opposite) if draws.chance(50) else (plain, plain._replace(negated=True))
