"""The world: one seed, nine languages, and every kind of data that the project needs.

Every method is a function of the seed, the stream's name and an index, so that any example can be
generated again, in any process, without the examples before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isoglot.errors import CorpusError, nearest
from isoglot.testbed import knowledge, sentence_tasks, word_tasks
from isoglot.testbed.compose import Composer
from isoglot.testbed.entities import make_entities
from isoglot.testbed.languages import LANGUAGES, grammar_of
from isoglot.testbed.lexicon import make_inventory
from isoglot.testbed.phrase import align
from isoglot.testbed.rng import Rng, ZipfRng, stable_hash

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isoglot.testbed.entities import Triple
    from isoglot.testbed.knowledge import Cloze, Description, MentionText
    from isoglot.testbed.languages import Grammar
    from isoglot.testbed.meaning import Meaning
    from isoglot.testbed.phrase import Translation
    from isoglot.testbed.sentence_tasks import Inference, Opinion, Paraphrase
    from isoglot.testbed.word_tasks import Question, Tagged


ALL_LANGUAGES, NO_LANGUAGE = "*", ""
"""Parts of a partition of all meanings, see `World.text`."""


class World:
    """A generated multilingual world.

    Args:
        seed: Random seed of the sentences; words and facts do not depend on it.
        num_concepts: About how many concepts the lexicon keeps, the first of each category; all
            by default.
        max_entities: At most how many countries, languages, currencies and continents there are.
        zipf: Word frequencies follow Zipf's law, and each word ranks its neighbors in an order
            of its own, the same in all languages. Otherwise all words that fit a place are equally
            frequent there, and text of one language cannot tell them apart.
    """

    def __init__(
        self,
        seed: int = 0,
        *,
        num_concepts: int | None = None,
        max_entities: int | None = None,
        zipf: bool = False,
    ) -> None:
        self.seed = seed
        self._rng = ZipfRng if zipf else Rng
        self._entities = make_entities(max_entities)
        self._composer = Composer(make_inventory(num_concepts), self._entities)

    # --- text ---------------------------------------------------------------------------------

    def text(
        self, language: str, n: int, *, stream: str = "text", partition: tuple[str, ...] = ()
    ) -> Iterator[list[str]]:
        """Documents: lists of up to eight sentences on one topic, no sentence twice in all.

        Documents of two languages are no translations of each other; single sentences may mean
        the same by chance.

        Args:
            language: Its code.
            n: How many documents, at most.
            stream: Another name gives other documents.
            partition: All meanings are split into parts of equal size by a hash; part i is said
                only in the language `partition[i]`, in ALL_LANGUAGES or in NO_LANGUAGE.
        """
        grammar = _grammar(language)
        given: set[str] = set()
        for rng in self._rngs(stream, n, language):
            texts = (
                grammar.text(meaning)
                for meaning in self._composer.document(rng)
                if not partition or _part(meaning, partition) in (language, ALL_LANGUAGES)
            )
            fresh = [text for text in dict.fromkeys(texts) if text not in given]
            given.update(fresh)
            if fresh:
                yield fresh

    def translations(
        self, first: str, second: str, n: int, *, stream: str = "parallel"
    ) -> Iterator[Translation]:
        """Sentences with their translation and gold word alignment.

        The meaning of sentence i depends on the stream alone, so all languages are parallel.
        """
        one, other = _grammar(first), _grammar(second)
        for rng in self._rngs(stream, n):
            meaning = self._composer.meaning(rng)
            yield align(one.sentence(meaning), other.sentence(meaning))

    def pairs(
        self,
        first: str,
        second: str,
        n: int,
        *,
        stream: str = "parallel",
        partition: tuple[str, ...] = (),
    ) -> Iterator[tuple[str, str]]:
        """The texts of `translations`, without words and alignments: more than twice as fast.

        With a `partition` (see `text`), only meanings of NO_LANGUAGE.
        """
        one, other = _grammar(first), _grammar(second)
        for rng in self._rngs(stream, n):
            meaning = self._composer.meaning(rng)
            if not partition or _part(meaning, partition) == NO_LANGUAGE:
                yield one.text(meaning), other.text(meaning)

    def dictionary(self, first: str, second: str) -> list[tuple[str, str]]:
        """Words and their translations, as they appear in text."""
        return word_tasks.dictionary(self._composer, _grammar(first), _grammar(second))

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

    def mentions(self, language: str, n: int, *, stream: str = "mentions") -> Iterator[MentionText]:
        """Sentences that name entities, with the character span of each name."""
        rngs = self._rngs(stream, n, language)
        return knowledge.mentions(self._composer, _grammar(language), rngs)

    def pages(self, language: str, n: int, *, stream: str = "pages") -> Iterator[list[MentionText]]:
        """Pages of sentences that name entities, each page about one country."""
        return knowledge.pages(self._composer, _grammar(language), self._rngs(stream, n, language))

    def cloze(self, language: str) -> Iterator[Cloze]:
        """Every fact as a sentence, with the span of its object."""
        return knowledge.cloze(self._entities, _grammar(language))

    # --- tasks: example i has the same meaning in all languages ---------------------------------

    def nli(self, language: str, n: int, *, stream: str = "nli") -> Iterator[Inference]:
        """Premises and hypotheses."""
        return sentence_tasks.nli(self._composer, _grammar(language), self._rngs(stream, n))

    def paraphrases(
        self, language: str, n: int, *, stream: str = "paraphrases"
    ) -> Iterator[Paraphrase]:
        """Pairs that mean the same in another order, and near misses."""
        return sentence_tasks.paraphrases(self._composer, _grammar(language), self._rngs(stream, n))

    def sentiment(self, language: str, n: int, *, stream: str = "sentiment") -> Iterator[Opinion]:
        """Opinions that praise or blame."""
        return sentence_tasks.sentiment(self._composer, _grammar(language), self._rngs(stream, n))

    def questions(self, language: str, n: int, *, stream: str = "questions") -> Iterator[Question]:
        """Contexts, questions and answer spans."""
        return word_tasks.questions(self._composer, _grammar(language), self._rngs(stream, n))

    def ner(self, language: str, n: int, *, stream: str = "ner") -> Iterator[Tagged]:
        """Words with BIO tags of LOC (countries, continents), LANG and CUR."""
        return word_tasks.ner(self._composer, _grammar(language), self._rngs(stream, n))

    def pos(self, language: str, n: int, *, stream: str = "pos") -> Iterator[Tagged]:
        """Words with universal part-of-speech tags."""
        return word_tasks.pos(self._composer, _grammar(language), self._rngs(stream, n))

    def _rngs(self, stream: str, n: int, language: str = "") -> Iterator[Rng]:
        name = f"{stream}/{language}" if language else stream
        return (self._rng(self.seed, name, index) for index in range(n))


def _part(meaning: Meaning, partition: tuple[str, ...]) -> str:
    return partition[stable_hash(repr(meaning)) % len(partition)]


def _grammar(language: str) -> Grammar:
    if language not in LANGUAGES:
        message = f"The testbed has no language {language!r}: {nearest(language, LANGUAGES)}"
        raise CorpusError(message)
    return grammar_of(language)
