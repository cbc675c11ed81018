"""Paraphrases that are real, and near misses: one detail changed in an otherwise equal sentence.

Both kinds move the time to the other end of the clause or swap coordinated clauses, so that order
alone tells nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isoglot.testbed.compose import NEGATED_TIMES, NEVER_FIRST
from isoglot.testbed.meaning import Clause, Compound, Meaning, Tense
from isoglot.testbed.records import Paraphrase

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from isoglot.testbed.compose import Composer
    from isoglot.testbed.draws import Draws
    from isoglot.testbed.languages import Grammar


def paraphrases(
    composer: Composer, grammar: Grammar, draws: Iterable[Draws]
) -> Iterator[Paraphrase]:
    """One pair per draw, the label drawn first."""
    for draw in draws:
        label = draw.below(2)
        make = _swapped if draw.chance(30) else _moved
        first, second = make(composer, draw, label)
        yield Paraphrase(grammar.text(first), grammar.text(second), label)


def _moved(composer: Composer, draws: Draws, label: int) -> tuple[Meaning, Meaning]:
    """The time moves; in a near miss a detail changes besides."""
    clause = _timed(composer, draws)
    other = clause if label else _changed(composer, draws, clause)
    return clause, other._replace(fronted=not clause.fronted)


def _swapped(composer: Composer, draws: Draws, label: int) -> tuple[Meaning, Meaning]:
    """Two clauses joined by "and" change places; in a near miss one of them has changed."""
    tense = Tense(draws.below(3))
    first, second = composer.clause(draws, None, tense), composer.clause(draws, None, tense)
    first, second = first._replace(fronted=False), second._replace(fronted=False)
    other = second if label else _changed(composer, draws, second)
    return Compound(first, "and", second), Compound(other, "and", first)


def _timed(composer: Composer, draws: Draws) -> Clause:
    clause = composer.clause(draws)
    while not clause.time or clause.time in NEVER_FIRST:
        clause = composer.clause(draws)
    return clause


def _changed(composer: Composer, draws: Draws, clause: Clause) -> Clause:
    """The clause with its roles exchanged, or another person, place or polarity."""
    thing = clause.object
    actors = (*composer.inventory.categories["person"], *composer.inventory.categories["animal"])
    way = draws.below(3)
    if thing is not None and thing.noun in actors and clause.verb == "see":
        return clause._replace(subject=thing, object=clause.subject)
    if way == 0 and clause.place:
        place = clause.place
        while place == clause.place:
            place = draws.choice(composer.inventory.categories["place"])
        return clause._replace(place=place)
    if way == 1 and _negatable(clause):
        return clause._replace(negated=not clause.negated)
    noun = clause.subject.noun
    group = "person" if noun in composer.inventory.categories["person"] else "animal"
    while noun == clause.subject.noun or (thing is not None and noun == thing.noun):
        noun = draws.choice(composer.inventory.categories[group])
    return clause._replace(subject=composer.thing(draws, noun, 25))


def _negatable(clause: Clause) -> bool:
    thing = clause.object
    counted = thing is not None and bool(thing.number)
    return not counted and (clause.tense != Tense.PRESENT or clause.time in NEGATED_TIMES)
