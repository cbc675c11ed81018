"""Bilingual dictionaries: the words of each concept as they stand in text, one word a side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isoglot.testbed.languages.nodes import HEAD, VERB
from isoglot.testbed.meaning import Clause, Thing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from isoglot.testbed.compose import Composer
    from isoglot.testbed.languages import Grammar
    from isoglot.testbed.phrase import Piece

NOUNS = ("person", "animal", "food", "drink", "object", "place")


def dictionary(composer: Composer, first: Grammar, second: Grammar) -> list[tuple[str, str]]:
    """All concepts and entities that are one word in both languages, each pair once."""
    left, right = dict(_words(composer, first)), dict(_words(composer, second))
    pairs = {(left[key], right[key]): None for key in left if key in right}
    return list(pairs)


def _words(composer: Composer, grammar: Grammar) -> Iterator[tuple[str, str]]:
    """Concept or entity -> its word; those of several words are left out."""
    for key, pieces, tags in _phrases(composer, grammar):
        words = [piece.form for piece in pieces if piece.upos in tags]
        if len(words) == 1:
            yield key, words[0]


def _phrases(
    composer: Composer, grammar: Grammar
) -> Iterator[tuple[str, Iterable[Piece], tuple[str, ...]]]:
    """Each concept in a phrase of its own, and the tags of its word there."""
    groups, adjectives = composer.inventory.categories, composer.inventory.adjectives
    for key in (noun for group in NOUNS for noun in groups[group]):
        yield key, grammar.thing(Thing(key)).pieces, ("NOUN",)
    actor = Thing(groups["person"][0])
    for verb in groups["transitive"] + groups["intransitive"]:
        parts = grammar.realise(Clause(actor, verb))
        pieces = [piece for slot, phrase in parts if slot == VERB for piece in phrase.pieces]
        # What only marks tense ("है") is no part of the word; a noun of the verb ("काम") is.
        yield verb, [piece for piece in pieces if HEAD[0] in piece.kinds], ("VERB", "NOUN")
    for adjective in groups["adjective"]:
        noun = next((noun for noun, fitting in adjectives.items() if adjective in fitting), None)
        if noun is not None:
            yield adjective, grammar.thing(Thing(noun, adjective)).pieces, ("ADJ",)
    counted = next((noun for noun in adjectives if noun in composer.inventory.countable), None)
    for number in groups["number"] if counted else ():
        thing = Thing(counted or "", number=number)
        yield number, grammar.thing(thing, "acc").pieces, ("NUM",)
    for time in groups["time"]:
        phrase = grammar.fixed(time)
        yield time, phrase.pieces, tuple(piece.upos for piece in phrase.pieces)
    for entity in composer.entities.ids:
        yield entity, grammar.name_pieces(entity), ("PROPN",)
