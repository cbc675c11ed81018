"""What the world knows, as text: descriptions of entities, mentions of them, cloze facts.

Reads the entities' triples; gives records whose spans hold: `text[start:end]` is the name as it
stands there (in some cases inflected).
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from isoglot.testbed.compose import WORDINGS
from isoglot.testbed.meaning import Fact
from isoglot.testbed.records import Cloze, Description, Mentioned

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from isoglot.testbed.compose import Composer
    from isoglot.testbed.draws import Draws
    from isoglot.testbed.entities import Entities, Triple
    from isoglot.testbed.languages import Grammar

LONGEST = 3
"""Sentences in a description."""


def descriptions(entities: Entities, grammar: Grammar) -> Iterator[Description]:
    """For each entity up to three of the facts it takes part in."""
    taking_part: dict[str, list[Triple]] = {entity: [] for entity in entities.ids}
    for triple in entities.triples:
        taking_part[triple.subject].append(triple)
        taking_part[triple.object].append(triple)
    for entity, triples in taking_part.items():
        facts = [_fact(triple) for triple in _spread(triples)]
        separator = "" if grammar.language == "zh" else " "
        yield Description(entity, separator.join(grammar.text(fact) for fact in facts))


def mentions(composer: Composer, grammar: Grammar, draws: Iterable[Draws]) -> Iterator[Mentioned]:
    """Sentences about countries, with the spans of all names."""
    for draw in draws:
        sentence = grammar.sentence(composer.about_country(draw))
        yield Mentioned(sentence.text, tuple(sentence.mentions()))


def pages(
    composer: Composer, grammar: Grammar, draws: Iterable[Draws]
) -> Iterator[list[Mentioned]]:
    """Sentences about one country at a time, with the spans of all names."""
    for draw in draws:
        told = [grammar.sentence(meaning) for meaning in composer.page(draw)]
        yield [Mentioned(sentence.text, tuple(sentence.mentions())) for sentence in told]


def cloze(entities: Entities, grammar: Grammar) -> Iterator[Cloze]:
    """Every triple as a sentence, in a wording that leaves the object's name as it is."""
    for triple in entities.triples:
        fact = _fact(triple)
        plain = f"{fact.wording}!"
        if plain in grammar.facts:
            fact = fact._replace(wording=plain)
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


def _fact(triple: Triple) -> Fact:
    return Fact(WORDINGS[triple.relation][0], triple.subject, triple.object)


def _spread(triples: list[Triple]) -> list[Triple]:
    """The first triple of each relation, then the others, three in all, in their order."""
    repeats = {b for a, b in pairwise(triples) if a.relation == b.relation}
    ranked = sorted(triples, key=lambda triple: triple in repeats)
    return sorted(ranked[:LONGEST], key=triples.index)
