"""Text about entities: descriptions, mentions and cloze facts.

Reads the entities' triples; gives records whose spans hold: `text[start:end]` is the name as the
text has it (in some cases inflected).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from isoglot.testbed.compose import WORDINGS
from isoglot.testbed.meaning import Fact
from isoglot.testbed.phrase import Mention

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from isoglot.testbed.compose import Composer
    from isoglot.testbed.entities import Entities, Triple
    from isoglot.testbed.languages import Grammar
    from isoglot.testbed.phrase import Sentence
    from isoglot.testbed.rng import Rng

MAX_SENTENCES = 3
"""Sentences in a description."""


@dataclass(frozen=True, slots=True)
class Description:
    """An entity and a text about it."""

    entity: str
    text: str


@dataclass(frozen=True, slots=True)
class MentionText:
    """A sentence and the entities it names, by character span."""

    text: str
    mentions: tuple[Mention, ...]


@dataclass(frozen=True, slots=True)
class Cloze:
    """A true sentence with the span to be masked: `text[start:end] == answer`."""

    text: str
    answer: str
    start: int
    end: int
    relation: str
    subject: str
    object: str


def descriptions(entities: Entities, grammar: Grammar) -> Iterator[Description]:
    """For each entity up to three of the facts it takes part in."""
    by_entity: dict[str, list[Triple]] = {entity: [] for entity in entities.ids}
    for triple in entities.triples:
        by_entity[triple.subject].append(triple)
        by_entity[triple.object].append(triple)
    separator = "" if grammar.language == "zh" else " "
    for entity, triples in by_entity.items():
        facts = [_fact(triple) for triple in _varied(triples)]
        yield Description(entity, separator.join(grammar.text(fact) for fact in facts))


def mentions(composer: Composer, grammar: Grammar, rngs: Iterable[Rng]) -> Iterator[MentionText]:
    """Sentences about countries, with the spans of all names."""
    for rng in rngs:
        yield _with_mentions(grammar.sentence(composer.about_country(rng)))


def pages(composer: Composer, grammar: Grammar, rngs: Iterable[Rng]) -> Iterator[list[MentionText]]:
    """Lists of sentences, each list about one country, with the spans of all names."""
    for rng in rngs:
        yield [_with_mentions(grammar.sentence(meaning)) for meaning in composer.page(rng)]


def cloze(entities: Entities, grammar: Grammar) -> Iterator[Cloze]:
    """Every triple as a sentence, in a wording that does not inflect the object's name."""
    for triple in entities.triples:
        fact = _fact(triple)
        uninflected = f"{fact.wording}!"
        if uninflected in grammar.facts:
            fact = fact._replace(wording=uninflected)
        sentence = grammar.sentence(fact)
        found = next(m for m in sentence.mentions() if m.entity == triple.object)
        yield Cloze(
            text=sentence.text,
            answer=sentence.text[found.start : found.end],
            start=found.start,
            end=found.end,
            relation=triple.relation,
            subject=triple.subject,
            object=triple.object,
        )


def _with_mentions(sentence: Sentence) -> MentionText:
    return MentionText(sentence.text, tuple(sentence.mentions()))


def _fact(triple: Triple) -> Fact:
    return Fact(WORDINGS[triple.relation][0], triple.subject, triple.object)


def _varied(triples: list[Triple]) -> list[Triple]:
    """Up to three triples in their order, preferring those with another relation than before."""
    repeats = {b for a, b in pairwise(triples) if a.relation == b.relation}
    ranked = sorted(triples, key=lambda triple: triple in repeats)
    return sorted(ranked[:MAX_SENTENCES], key=triples.index)
