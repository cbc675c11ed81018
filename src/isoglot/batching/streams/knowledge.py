"""What the streams of knowledge share: which languages they read, and how a description is drawn.

They open the folder `knowledge` of a prepared corpus. A draw names an entity in a text of one
language; the description that goes with it comes from another (XLM-K), chosen by the draw's own
number in [0, 1), so that all its objectives see the same one and lengths are known beforehand.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from typing_extensions import override

from isoglot.batching.streams.base import Longest, Part, StreamConfig
from isoglot.batching.streams.knowledge_choice import Choice
from isoglot.errors import require

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isoglot.corpus import Corpus
    from isoglot.corpus.heldout import Split

SOURCE = "knowledge"
"""The one source that these streams have, for messages and keys."""
_ROWS_AT_A_TIME = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class KnowledgeStream(StreamConfig):
    """Settings that the streams of knowledge share."""

    reads: ClassVar[str] = "knowledge"

    max_length: int = 254
    """Longest text or description in tokens, without the special tokens at its edges."""
    description: Literal["other", "same", "any"] = "other"
    """Draw descriptions in another language than the text's, in its own, or in any."""
    description_languages: tuple[str, ...] = ()
    """Languages to draw descriptions from; none means all of the corpus."""
    description_alpha: float = 0.0
    """They are drawn with p proportional to N^alpha of their descriptions: 0 all alike."""

    @override
    def __post_init__(self) -> None:
        StreamConfig.__post_init__(self)
        require(self.max_length >= 1, "max_length must be 1 or more")
        require(set(self.sources) <= {SOURCE}, f"sources: there is one for knowledge, {SOURCE!r}")

    @override
    def selected(self, corpus: Corpus) -> list[tuple[str, str]]:
        available = corpus.knowledge.languages
        self.check_languages(corpus, self.languages, set(available))
        return [
            (SOURCE, code) for code in available if not self.languages or code in self.languages
        ]

    @override
    def fingerprint(self, corpus: Corpus) -> str:
        parts = corpus.fingerprint + corpus.knowledge.fingerprint
        return sha256(parts.encode()).hexdigest()

    @override
    def open(
        self, corpus: Corpus, *, split: Split, longest: Longest, row_length: int
    ) -> tuple[Part, ...]:
        choice = self._choice(corpus)
        limit = min(self.max_length, _most_tokens(longest, row_length))
        # a language that the corpus has no text in has no number there
        codes = [code for _, code in self.selected(corpus) if code in corpus.languages]
        parts = [self.part(corpus, code, split, choice, limit) for code in codes]
        return tuple(part for part in parts if part.num_examples)

    @abstractmethod
    def part(self, corpus: Corpus, language: str, split: Split, choice: Choice, limit: int) -> Part:
        """The draws of one language, with texts of at most so many tokens."""

    def _choice(self, corpus: Corpus) -> Choice:
        knowledge = corpus.knowledge
        self.check_languages(corpus, self.description_languages, set(knowledge.languages))
        wanted = self.description_languages or knowledge.languages
        counts = np.array(
            [
                knowledge.about.counts[code].descriptions
                if code in wanted and code in corpus.languages
                else 0
                for code in knowledge.languages
            ],
            np.float64,
        )
        return Choice(knowledge, corpus.languages, counts, self.description, self.description_alpha)


def chunks(number: int) -> Iterator[slice]:
    """All rows of a table, so many at a time that what is computed of them fits into memory."""
    for begin in range(0, number, _ROWS_AT_A_TIME):
        yield slice(begin, min(begin + _ROWS_AT_A_TIME, number))


def _most_tokens(longest: Longest, row_length: int) -> int:
    """The most tokens of two texts alike whose sequences still fit into a row."""
    sizes = np.arange(1, row_length + 1, dtype=np.int32)[:, None].repeat(2, axis=1)
    return int((longest(sizes) <= row_length).sum())
