"""Labeled sentences: natural language inference, paraphrases and sentiment.

Each function reads a composer, a grammar and one random generator per example; it draws the label
first and yields records whose label holds by construction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from isoglot.testbed.compose import NEGATED_TIMES, NEVER_FIRST
from isoglot.testbed.lexicon import OPPOSITE, SENTIMENT
from isoglot.testbed.meaning import Clause, Compound, Meaning, Quality, Simple, Tense

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from isoglot.testbed.compose import Composer
    from isoglot.testbed.languages import Grammar
    from isoglot.testbed.rng import Rng

NLI_LABELS = ("entailment", "neutral", "contradiction")


@dataclass(frozen=True, slots=True)
class Inference:
    """A premise, a hypothesis and their label, one of `NLI_LABELS`."""

    premise: str
    hypothesis: str
    label: str


@dataclass(frozen=True, slots=True)
class Paraphrase:
    """Two sentences: label 1 if they mean the same, 0 if they differ in one detail."""

    first: str
    second: str
    label: int


@dataclass(frozen=True, slots=True)
class Opinion:
    """A text that praises (label 1) or blames (0)."""

    text: str
    label: int


# --- natural language inference ---------------------------------------------------------------


def nli(composer: Composer, grammar: Grammar, rngs: Iterable[Rng]) -> Iterator[Inference]:
    """Premises and hypotheses.

    A statement with a place is stronger than the one without; under negation it is weaker. So one
    clause, with and without its place and its negation, gives all three labels in both polarities,
    and negation in the hypothesis tells nothing about the label. Qualities do the same with "very"
    and with opposites.
    """
    for rng in rngs:
        label = rng.below(3)
        make = _from_quality if rng.chance(25) else _from_clause
        premise, hypothesis = make(composer, rng, label)
        yield Inference(grammar.text(premise), grammar.text(hypothesis), NLI_LABELS[label])


def _from_clause(composer: Composer, rng: Rng, label: int) -> tuple[Simple, Simple]:
    """With (`full`) and without (`bare`) its place, and both negated."""
    clause = composer.clause(rng)
    while not clause.place or clause.verb in ("live", "collect"):
        clause = composer.clause(rng)
    thing = clause.object
    clause = clause._replace(
        negated=False,
        object=None if thing is None else thing._replace(number=""),
        time=clause.time if clause.tense != Tense.PRESENT or clause.time in NEGATED_TIMES else "",
    )
    full = clause._replace(fronted=clause.fronted and bool(clause.time))
    bare = full._replace(place="")
    not_full, not_bare = full._replace(negated=True), bare._replace(negated=True)
    if rng.chance(50):
        return ((full, bare), (bare, full), (full, not_bare))[label]
    return ((not_bare, not_full), (not_full, not_bare), (not_bare, full))[label]


def _from_quality(composer: Composer, rng: Rng, label: int) -> tuple[Simple, Simple]:
    """With and without "very", and the opposite."""
    quality = composer.quality(rng)
    while quality.adjective not in OPPOSITE:
        quality = composer.quality(rng)
    plain = quality._replace(very=False, negated=False)
    very = plain._replace(very=True)
    opposite = plain._replace(adjective=OPPOSITE[plain.adjective])
    if label == 0:
        return (very, plain) if rng.chance(50) else (plain, opposite._replace(negated=True))
    if label == 1:
        return (plain, very) if rng.chance(50) else (opposite._replace(negated=True), plain)
    return (very, opposite) if rng.chance(50) else (plain, plain._replace(negated=True))


# --- paraphrases ------------------------------------------------------------------------------


def paraphrases(composer: Composer, grammar: Grammar, rngs: Iterable[Rng]) -> Iterator[Paraphrase]:
    """Paraphrases, and near misses with one detail changed.

    Both move the time to the other end of the clause or swap coordinated clauses, so that word
    order tells nothing about the label.
    """
    for rng in rngs:
        label = rng.below(2)
        make = _swapped if rng.chance(30) else _moved
        first, second = make(composer, rng, label)
        yield Paraphrase(grammar.text(first), grammar.text(second), label)


def _moved(composer: Composer, rng: Rng, label: int) -> tuple[Meaning, Meaning]:
    """The time moves; in a near miss a detail changes besides."""
    clause = composer.clause(rng)
    while not clause.time or clause.time in NEVER_FIRST:
        clause = composer.clause(rng)
    other = clause if label else _changed(composer, rng, clause)
    return clause, other._replace(fronted=not clause.fronted)


def _swapped(composer: Composer, rng: Rng, label: int) -> tuple[Meaning, Meaning]:
    """Two clauses joined by "and" change places; in a near miss one of them has changed."""
    tense = Tense(rng.below(3))
    first, second = composer.clause(rng, None, tense), composer.clause(rng, None, tense)
    first, second = first._replace(fronted=False), second._replace(fronted=False)
    other = second if label else _changed(composer, rng, second)
    return Compound(first, "and", second), Compound(other, "and", first)


def _changed(composer: Composer, rng: Rng, clause: Clause) -> Clause:
    """The clause with its roles exchanged, or another person, place or polarity."""
    categories, thing = composer.inventory.categories, clause.object
    change = rng.below(3)
    actors = (*categories["person"], *categories["animal"])
    if thing is not None and thing.noun in actors and clause.verb == "see":
        return clause._replace(subject=thing, object=clause.subject)
    if change == 0 and clause.place:
        place = clause.place
        while place == clause.place:
            place = rng.choice(categories["place"])
        return clause._replace(place=place)
    if change == 1 and _is_negatable(clause):
        return clause._replace(negated=not clause.negated)
    noun = clause.subject.noun
    category = "person" if noun in categories["person"] else "animal"
    while noun == clause.subject.noun or (thing is not None and noun == thing.noun):
        noun = rng.choice(categories[category])
    return clause._replace(subject=composer.thing(rng, noun, 25))


def _is_negatable(clause: Clause) -> bool:
    thing = clause.object
    counted = thing is not None and bool(thing.number)
    return not counted and (clause.tense != Tense.PRESENT or clause.time in NEGATED_TIMES)


# --- sentiment --------------------------------------------------------------------------------


def sentiment(composer: Composer, grammar: Grammar, rngs: Iterable[Rng]) -> Iterator[Opinion]:
    """Qualities that praise or blame: alone, in pairs, or as the reason for something."""
    for rng in rngs:
        label = rng.below(2)
        yield Opinion(grammar.text(_opinion(composer, rng, label)), label)


def _opinion(composer: Composer, rng: Rng, label: int) -> Meaning:
    quality = _labeled_quality(composer, rng, label)
    kind = rng.below(3)
    if kind == 0:
        return quality
    if kind == 1:
        clause = composer.clause(rng, None, Tense.PRESENT)
        return Compound(clause, rng.choice(("because", "and")), quality)
    second = _labeled_quality(composer, rng, label)
    while second.subject == quality.subject:
        second = _labeled_quality(composer, rng, label)
    return Compound(quality, "and", second)


def _labeled_quality(composer: Composer, rng: Rng, label: int) -> Quality:
    """A quality with this label: an adjective of the label, or, for blame, negated praise."""
    while True:
        quality = composer.quality(rng)
        value = SENTIMENT.get(quality.adjective)
        if value == label:
            return quality._replace(negated=False)
        if value == 1 and label == 0 and quality.negated:
            return quality
