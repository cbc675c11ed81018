"""The world: one seed, nine languages, and every kind of data that the project needs.

Every method is a function of the seed, the stream's name and an index, so that anything can be
drawn again, in any process, without what came before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isoglot.errors import CorpusError, nearest
from isoglot.testbed import asking, inference, knowledge, opinions, paraphrase, tagging, words
from isoglot.testbed.compose import Composer
from isoglot.testbed.concepts import make_inventory
from isoglot.testbed.draws import Draws, UnevenDraws, number_of
from isoglot.testbed.entities import make_entities
from isoglot.testbed.languages import LANGUAGES, grammar_of
from isoglot.testbed.phrase import align
from isoglot.testbed.records import Translation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isoglot.testbed.entities import Triple
    from isoglot.testbed.languages import Grammar
    from isoglot.testbed.meaning import Meaning
    from isoglot.testbed.records import (
        Cloze,
        Description,
        Inference,
        Mentioned,
        Opinion,
        Paraphrase,
        Question,
        Tagged,
    )


EVERYONE, NOBODY = "*", ""
"""Takers of a share of all meanings, see `World.text`."""


class World:
    """A generated multilingual world.

    Args:
        seed: Another seed, another world of sentences; the words and facts stay.
        concepts: About how many concepts the lexicon keeps, the first of each category; all by
            default.
        entities: At most how many countries, languages, currencies and continents there are.
        uneven: Words come by Zipf's law and have favourite company, the same in all languages;
            otherwise all words that could stand in a place are equally frequent there, and text
            of one language cannot tell them apart.
    """

    def __init__(
        self,
        seed: int = 0,
        *,
        concepts: int | None = None,
        entities: int | None = None,
        uneven: bool = False,
    ) -> None:
        self.seed = seed
        self._drawn = UnevenDraws if uneven else Draws
        self._entities = make_entities(entities)
        self._composer = Composer(make_inventory(concepts), self._entities)

    # --- text ---------------------------------------------------------------------------------

    def text(
        self, language: str, n: int, *, stream: str = "text", shares: tuple[str, ...] = ()
    ) -> Iterator[list[str]]:
        """Documents: lists of three to eight sentences on one topic.

        No language's documents are translations of another's, and no sentence comes twice. Single
        sentences of two languages may say the same by chance.

        Args:
            language: Its code.
            n: How many, at most.
            stream: Another name, other documents.
            shares: Who may say what: every meaning falls, by a hash, to one of these codes, to
                EVERYONE or to NOBODY.
        """
        grammar = _grammar(language)
        given: set[str] = set()
        for index in range(n):
            draws = self._drawn(self.seed, f"{stream}/{language}", index)
            told = (
                grammar.text(meaning)
                for meaning in self._composer.document(draws)
                if not shares or _whose(meaning, shares) in (language, EVERYONE)
            )
            fresh = [text for text in dict.fromkeys(told) if text not in given]
            given.update(fresh)
            if fresh:
                yield fresh

    def translations(
        self, first: str, second: str, n: int, *, stream: str = "parallel"
    ) -> Iterator[Translation]:
        """Sentences with their translation and gold alignment.

        The meaning of number i depends on the stream alone, so all languages are parallel.
        """
        one, other = _grammar(first), _grammar(second)
        for index in range(n):
            meaning = self._composer.meaning(self._drawn(self.seed, stream, index))
            left, right = one.sentence(meaning), other.sentence(meaning)
            yield Translation(
                first=left.forms(),
                second=right.forms(),
                alignment=align(left, right),
                first_text=left.text,
                second_text=right.text,
            )

    def pairs(
        self,
        first: str,
        second: str,
        n: int,
        *,
        stream: str = "parallel",
        shares: tuple[str, ...] = (),
    ) -> Iterator[tuple[str, str]]:
        """The texts of `translations`, without words and alignments: more than twice as fast.

        With `shares` (see `text`), only of what nobody says.
        """
        one, other = _grammar(first), _grammar(second)
        for index in range(n):
            meaning = self._composer.meaning(self._drawn(self.seed, stream, index))
            if not shares or _whose(meaning, shares) == NOBODY:
                yield one.text(meaning), other.text(meaning)

    def dictionary(self, first: str, second: str) -> list[tuple[str, str]]:
        """Words and their translations, as they appear in text."""
        return words.dictionary(self._composer, _grammar(first), _grammar(second))

    # --- knowledge ----------------------------------------------------------------------------

    def triples(self) -> tuple[Triple, ...]:
        """All facts: (subject, relation, object), as entity ids."""
        return self._entities.triples

    def entity_names(self, language: str) -> dict[str, str]:
        """The name of every entity."""
        names = _grammar(language).names
        return {entity: names[entity] for entity in self._entities.ids}

    def descriptions(self, language: str) -> Iterator[Description]:
        """One to three true sentences about every entity."""
        return knowledge.descriptions(self._entities, _grammar(language))

    def mentions(self, language: str, n: int, *, stream: str = "mentions") -> Iterator[Mentioned]:
        """Sentences that name entities, with the characters of each name."""
        return knowledge.mentions(
            self._composer, _grammar(language), self._draws(stream, n, language)
        )

    def pages(self, language: str, n: int, *, stream: str = "pages") -> Iterator[list[Mentioned]]:
        """Pages of sentences that name entities, each page about one country."""
        return knowledge.pages(self._composer, _grammar(language), self._draws(stream, n, language))

    def cloze(self, language: str) -> Iterator[Cloze]:
        """Every fact as a sentence, with the span of its object."""
        return knowledge.cloze(self._entities, _grammar(language))

    # --- tasks: number i has the same meaning in all languages ----------------------------------

    def nli(self, language: str, n: int, *, stream: str = "nli") -> Iterator[Inference]:
        """Premises and hypotheses."""
        return inference.nli(self._composer, _grammar(language), self._draws(stream, n))

    def questions(self, language: str, n: int, *, stream: str = "questions") -> Iterator[Question]:
        """Contexts, questions and answer spans."""
        return asking.questions(self._composer, _grammar(language), self._draws(stream, n))

    def ner(self, language: str, n: int, *, stream: str = "ner") -> Iterator[Tagged]:
        """Words with BIO tags of LOC (countries, continents), LANG and CUR."""
        return tagging.ner(self._composer, _grammar(language), self._draws(stream, n))

    def pos(self, language: str, n: int, *, stream: str = "pos") -> Iterator[Tagged]:
        """Words with universal part-of-speech tags."""
        return tagging.pos(self._composer, _grammar(language), self._draws(stream, n))

    def paraphrases(
        self, language: str, n: int, *, stream: str = "paraphrases"
    ) -> Iterator[Paraphrase]:
        """Pairs that say the same in another order, and near misses."""
        return paraphrase.paraphrases(self._composer, _grammar(language), self._draws(stream, n))

    def sentiment(self, language: str, n: int, *, stream: str = "sentiment") -> Iterator[Opinion]:
        """Opinions, for and against."""
        return opinions.sentiment(self._composer, _grammar(language), self._draws(stream, n))

    def _draws(self, stream: str, n: int, language: str = "") -> Iterator[Draws]:
        name = f"{stream}/{language}" if language else stream
        return (self._drawn(self.seed, name, index) for index in range(n))


def _whose(meaning: Meaning, shares: tuple[str, ...]) -> str:
    return shares[number_of(repr(meaning)) % len(shares)]


def _grammar(language: str) -> Grammar:
    if language not in LANGUAGES:
        message = f"The testbed does not speak {language!r}: {nearest(language, LANGUAGES)}"
        raise CorpusError(message)
    return grammar_of(language)
