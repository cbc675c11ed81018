"""The stream of mentions: one draw is an entity's name in its context, and a description of it.

The context is the name's page as far as the length allows: as many whole sentences on both sides of
it as fit, and the name's own sentence cut only where it is longer than that alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from typing_extensions import override

from isoglot.batching.streams.base import Part
from isoglot.batching.streams.knowledge import SOURCE, KnowledgeStream, chunks
from isoglot.types import Mention

if TYPE_CHECKING:
    from isoglot.batching.streams.knowledge_choice import Choice
    from isoglot.corpus import Corpus
    from isoglot.corpus.heldout import Split
    from isoglot.corpus.knowledge.store_files import Mapped
    from isoglot.types import FloatArray, IntArray, LongArray


@dataclass(frozen=True, slots=True, kw_only=True)
class MentionStream(KnowledgeStream):
    """Names of entities in their contexts, each with a description in another language."""

    kind: ClassVar[str] = "mentions"

    @override
    def part(self, corpus: Corpus, language: str, split: Split, choice: Choice, limit: int) -> Part:
        knowledge = corpus.knowledge
        tables = knowledge.mentions(language, split), knowledge.sentences(language, split)
        return MentionPart(language, corpus.languages.index(language), tables, choice, limit)


class MentionPart(Part):
    """The mentions of one language."""

    why_dropped: ClassVar[str] = (
        "as their entity has no description that may be drawn, or their name is too long"
    )

    def __init__(
        self,
        language: str,
        language_id: int,
        tables: tuple[Mapped, Mapped],
        choice: Choice,
        limit: int,
    ) -> None:
        self.source, self.language, self.language_id = SOURCE, language, language_id
        self.mentions, self.sentences = tables
        self.choice, self.own, self.limit = choice, choice.number_of(language), limit
        kept = [self._good(rows) for rows in chunks(len(self.mentions))]
        self.rows = np.concatenate(kept) if kept else np.zeros(0, np.int64)
        self.num_examples = len(self.rows)
        self.num_dropped = len(self.mentions) - self.num_examples

    def _good(self, chunk: slice) -> LongArray:
        lengths = self.mentions["end"][chunk] - self.mentions["start"][chunk]
        good = self.choice.possible(self.mentions["entity"][chunk], self.own)
        return np.asarray(chunk.start + np.flatnonzero(good & (lengths <= self.limit)))

    @property
    @override
    def num_tokens(self) -> int:  # type: ignore[override]
        """Tokens of all sentences that mentions are drawn from."""
        return len(self.sentences["tokens"])

    @override
    def sizes(self, indices: LongArray, chances: FloatArray) -> IntArray:
        rows = self.rows[indices]
        begin, end = self._windows(rows)
        described = self.choice.lengths(self._chosen(rows, chances))
        sizes = [end - begin, np.minimum(described, self.limit)]
        return np.stack(sizes, axis=1).astype(np.int32)

    @override
    def example(self, index: int, chance: float) -> Mention:
        rows = self.rows[index : index + 1]
        (begin,), (end,) = self._windows(rows)
        offsets = self.sentences.offsets("tokens")
        row = int(rows[0])
        start = int(offsets[self.mentions["sentence"][row]] + self.mentions["start"][row] - begin)
        chosen = self._chosen(rows, np.array([chance]))
        description, language = self.choice.read(int(chosen[0]), self.limit)
        inside = np.arange(begin, end)
        sentences = np.searchsorted(offsets, inside, "right")
        return Mention(
            context=self.sentences["tokens"][begin:end],
            sentences=(sentences - sentences[0]).astype(np.int32),
            start=start,
            end=start + int(self.mentions["end"][row] - self.mentions["start"][row]),
            language=self.language_id,
            entity=int(self.mentions["entity"][row]),
            description=description,
            description_language=language,
        )

    @override
    def where(self, index: int) -> str:
        return f"{self.mentions.path}, row {int(self.rows[index])}"

    def _chosen(self, rows: LongArray, chances: FloatArray) -> LongArray:
        return self.choice(self.mentions["entity"][rows], self.own, chances)

    def _windows(self, rows: LongArray) -> tuple[LongArray, LongArray]:
        """The tokens [begin, end) of the table of sentences that are each mention's context."""
        offsets, pages = self.sentences.offsets("tokens"), self.sentences["page"]
        sentence = self.mentions["sentence"][rows]
        starts = offsets[sentence] + self.mentions["start"][rows]
        lengths = self.mentions["end"][rows] - self.mentions["start"][rows]
        first = offsets[np.searchsorted(pages, pages[sentence], "left")]
        last = offsets[np.searchsorted(pages, pages[sentence], "right")]
        begin = np.minimum(starts - (self.limit - lengths) // 2, last - self.limit)
        begin = np.maximum(begin, first)
        end = np.minimum(begin + self.limit, last)
        # whole sentences, unless the edge lies in the name's own
        whole = offsets[np.searchsorted(offsets, begin, "left")]
        begin = np.where(whole <= offsets[sentence], whole, begin)
        whole = offsets[np.searchsorted(offsets, end, "right") - 1]
        end = np.where(whole >= offsets[sentence + 1], whole, end)
        return begin, end
