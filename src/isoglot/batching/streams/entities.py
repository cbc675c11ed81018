"""The streams of mentions and of triples, for XLM-K's two knowledge tasks.

`mentions`: one draw is an entity's name in its context, and a description of the entity. The
context is as many whole sentences of the name's page, on both sides, as `max_tokens` allows; the
name's own sentence is cut only if it is longer.

`triples`: one draw is (subject, relation, object), both entities as descriptions. A triple belongs
to every language that its subject is described in; languages are drawn as in any stream, and the
object's description in another one.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from typing_extensions import override

from isoglot.batching.dropped import Limit
from isoglot.batching.streams.kept_rows import Chunk, KeptRows, find_kept
from isoglot.batching.streams.knowledge import SOURCE, KnowledgeSlice, KnowledgeStream
from isoglot.types import Mention, TripleExample

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isoglot.batching.streams.knowledge import DescriptionSampler
    from isoglot.corpus import Corpus
    from isoglot.corpus.knowledge.store import Knowledge
    from isoglot.corpus.storage.array_file import ArrayWriter
    from isoglot.corpus.storage.shards import Shard, Split
    from isoglot.types import BoolArray, FloatArray, IntArray, LongArray

DESCRIPTIONS = "the stream's description and description_languages"
OF_OTHERS = "belong to other languages"
"""Triples whose subject has no description in the language: not counted as dropped."""
_ROWS_AT_A_TIME = 2**20
"""Rows of a table that are checked at a time, to bound memory."""


class EntitySlice(KnowledgeSlice):
    """The usable rows of a table, each with an entity that a description is drawn of."""

    entity_column: ClassVar[str]

    def __init__(
        self, corpus: Corpus, language: str, split: Split, sampler: DescriptionSampler, limit: int
    ) -> None:
        super().__init__(corpus, language, split, sampler, limit)
        knowledge = corpus.knowledge.fingerprint
        settings = (knowledge, limit, sampler.how, sampler.weights.tolist())
        name = f"{SOURCE}/{language}/{split}-{self.entity_column}"
        found = corpus.index(name, settings, self._find, num_rows=len(self.table))
        self._kept = KeptRows(found)
        self.num_examples = self._kept.num_kept
        self.dropped = tuple(one for one in self._kept.dropped if one.reason != OF_OTHERS)

    def _find(self, writer: ArrayWriter) -> None:
        def chunks() -> Iterator[Chunk]:
            for start in range(0, len(self.table), _ROWS_AT_A_TIME):
                yield self._look_at(slice(start, min(start + _ROWS_AT_A_TIME, len(self.table))))

        find_kept(writer, chunks)

    def rows(self, indices: LongArray) -> LongArray:
        """The rows of the table of these examples."""
        return self._kept.rows(indices)

    @override
    def where(self, index: int) -> str:
        return f"{self.table.path}, row {int(self.rows(np.array([index]))[0])}"

    @abstractmethod
    def _look_at(self, chunk: slice) -> Chunk:
        """Which rows of a chunk can be drawn, and why the others cannot."""

    def _possible(self, chunk: slice) -> BoolArray:
        """Which rows of a chunk have a description that can be drawn."""
        return self.sampler.possible(self.table[self.entity_column][chunk], self.own)

    def _sample(self, rows: LongArray, uniforms: FloatArray) -> LongArray:
        return self.sampler(self.table[self.entity_column][rows], self.own, uniforms)


class MentionSlice(EntitySlice):
    """The mentions of one language."""

    entity_column: ClassVar[str] = "entity"

    @override
    def open(self, knowledge: Knowledge, split: Split) -> Shard:
        self.sentences = knowledge.sentences(self.language, split)
        self.mentions = knowledge.mentions(self.language, split)
        return self.mentions

    @override
    def _look_at(self, chunk: slice) -> Chunk:
        lengths = self.mentions["end"][chunk] - self.mentions["start"][chunk]
        described, short = self._possible(chunk), lengths <= self.limit
        long = f"have a name of more than {self.limit} tokens"
        limits = [
            Limit(described, "have an entity without a usable description", DESCRIPTIONS),
            Limit(short, long, "batch.row_length or the stream's max_tokens"),
        ]
        return Chunk(limits, lengths, lengths)

    @property
    @override
    def num_tokens(self) -> int:  # type: ignore[override]
        """Tokens of all sentences with mentions."""
        return len(self.sentences["tokens"])

    @override
    def sizes(self, indices: LongArray, uniforms: FloatArray) -> IntArray:
        rows = self.rows(indices)
        begin, end = self._windows(rows)
        described = self.sampler.lengths(self._sample(rows, uniforms))
        sizes = [end - begin, np.minimum(described, self.limit)]
        return np.stack(sizes, axis=1).astype(np.int32)

    @override
    def example(self, index: int, uniform: float) -> Mention:
        rows = self.rows(np.array([index]))
        (begin,), (end,) = self._windows(rows)
        offsets = self.sentences.offsets("tokens")
        row = int(rows[0])
        start = int(offsets[self.mentions["sentence"][row]] + self.mentions["start"][row] - begin)
        chosen = self._sample(rows, np.array([uniform]))
        description, language = self.sampler.read(int(chosen[0]), self.limit)
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

    def _windows(self, rows: LongArray) -> tuple[LongArray, LongArray]:
        """The context of each mention: tokens [begin, end) of the table of sentences."""
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


class TripleSlice(EntitySlice):
    """The triples whose subject is described in one language."""

    entity_column: ClassVar[str] = "object"

    @override
    def open(self, knowledge: Knowledge, split: Split) -> Shard:
        self.knowledge, self.triples = knowledge, knowledge.triples(split)
        self.subjects = knowledge.descriptions(self.language)
        return self.triples

    @override
    def _look_at(self, chunk: slice) -> Chunk:
        rows = self.subjects.rows(self.triples["subject"][chunk])
        described, offsets = rows >= 0, self.subjects.table.offsets("tokens")
        lengths = np.where(described, offsets[rows + 1] - offsets[np.maximum(rows, 0)], 0)
        reason = "have an object without a usable description"
        limits = [
            Limit(described, OF_OTHERS, ""),
            Limit(self._possible(chunk), reason, DESCRIPTIONS),
        ]
        return Chunk(limits, lengths, lengths)

    @property
    @override
    def num_tokens(self) -> int:  # type: ignore[override]
        """Tokens of the subjects' descriptions."""
        return self._kept.num_tokens

    @override
    def sizes(self, indices: LongArray, uniforms: FloatArray) -> IntArray:
        rows = self.rows(indices)
        offsets = self.subjects.table.offsets("tokens")
        subjects = self.subjects.rows(self.triples["subject"][rows])
        lengths = (
            offsets[subjects + 1] - offsets[subjects],
            self.sampler.lengths(self._sample(rows, uniforms)),
        )
        sizes: IntArray = np.minimum(np.stack(lengths, axis=1), self.limit).astype(np.int32)
        return sizes

    @override
    def example(self, index: int, uniform: float) -> TripleExample:
        rows = self.rows(np.array([index]))
        subject, relation, thing = (
            int(self.triples[name][rows[0]]) for name in ("subject", "relation", "object")
        )
        described = self.subjects[subject]
        assert described is not None, (
            "subjects without a description are dropped when the stream is opened"
        )
        chosen = self._sample(rows, np.array([uniform]))
        description, language = self.sampler.read(int(chosen[0]), self.limit)
        return TripleExample(
            subject=described[: self.limit],
            subject_language=self.language_id,
            relation=relation,
            object=description,
            object_language=language,
            object_entity=thing,
            known_objects=self.knowledge.objects(subject, relation).astype(np.int64),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MentionStream(KnowledgeStream):
    """Entity names in their contexts, each with a description in another language."""

    kind: ClassVar[str] = "mentions"
    slice_class: ClassVar[type[KnowledgeSlice]] = MentionSlice


@dataclass(frozen=True, slots=True, kw_only=True)
class TripleStream(KnowledgeStream):
    """Subject, relation and object, the two described in different languages."""

    kind: ClassVar[str] = "triples"
    slice_class: ClassVar[type[KnowledgeSlice]] = TripleSlice
