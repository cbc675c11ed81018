"""Tagged words: named entities (BIO) and universal parts of speech."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isoglot.testbed.records import Tagged

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from isoglot.testbed.compose import Composer
    from isoglot.testbed.draws import Draws
    from isoglot.testbed.languages import Grammar

ENTITY_TAGS = {"territory": "LOC", "continent": "LOC", "language": "LANG", "currency": "CUR"}
"""Kind of entity (before the colon of its id) -> tag."""


def ner(composer: Composer, grammar: Grammar, draws: Iterable[Draws]) -> Iterator[Tagged]:
    """Sentences of all kinds, two in three about a country."""
    for draw in draws:
        named = draw.chance(66)
        sentence = grammar.sentence(
            composer.about_country(draw) if named else composer.meaning(draw)
        )
        tags = ["O"] * len(sentence.words)
        for mention in sentence.mentions():
            tag = ENTITY_TAGS[mention.entity.partition(":")[0]]
            tags[mention.first] = f"B-{tag}"
            for index in range(mention.first + 1, mention.last):
                tags[index] = f"I-{tag}"
        yield Tagged(sentence.forms(), tuple(tags))


def pos(composer: Composer, grammar: Grammar, draws: Iterable[Draws]) -> Iterator[Tagged]:
    """Sentences of all kinds."""
    for draw in draws:
        sentence = grammar.sentence(composer.meaning(draw))
        yield Tagged(sentence.forms(), tuple(word.upos for word in sentence.words))
