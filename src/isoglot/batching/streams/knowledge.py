"""Streams of the knowledge store: their shared settings, and how a description is drawn.

They read the folder `knowledge` of a prepared corpus. A draw names an entity in a text of one
language; the entity's description comes in another language (XLM-K), a function of the draw's
uniform number, so that all objectives see the same one and lengths are known before reading.

`DescriptionStream` draws descriptions as running text: MLM on them is XLM-K's ablation. Mentions
and triples are in `entities.py`.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
from typing_extensions import override

from isoglot.batching.streams.base import LanguageSlice, SequenceLength, StreamConfig
from isoglot.errors import require
from isoglot.languages import find, from_wikipedia
from isoglot.ranges import Range
from isoglot.types import Text

if TYPE_CHECKING:
    from collections.abc import Collection

    from isoglot.corpus import Corpus
    from isoglot.corpus.knowledge.store import Knowledge
    from isoglot.corpus.storage.shards import Shard, Split
    from isoglot.types import BoolArray, FloatArray, IntArray, LongArray

SOURCE = "knowledge"
"""The source name of these streams, for messages and keys."""
NONE = -1
"""The row of a description that does not exist."""
_FINEST = 2**20
"""The weight of the language with the most descriptions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnowledgeStream(StreamConfig):
    """Settings of the streams that read the knowledge store."""

    reads: ClassVar[str] = "knowledge"
    slice_class: ClassVar[type[KnowledgeSlice]]
    """The draws of one language."""

    max_tokens: Annotated[int, Range(1, 2**17)] = 254
    """Most tokens of a text or description, special tokens at its edges not counted."""
    description: Literal["other", "same", "any"] = "other"
    """Draw descriptions in another language than the text's, in the same, or in any."""
    description_languages: tuple[str, ...] = ()
    """Languages to draw descriptions from; none means all of the corpus."""
    description_alpha: Annotated[float, Range(-10, 10)] = 0.0
    """Those are drawn with p proportional to N^alpha of their descriptions: 0 uniformly."""

    @override
    def __post_init__(self) -> None:
        StreamConfig.__post_init__(self)
        require(set(self.sources) <= {SOURCE}, f"sources: there is one for knowledge, {SOURCE!r}")

    @override
    def selected(self, corpus: Corpus) -> list[tuple[str, str]]:
        chosen = self.chosen(corpus, "languages", self.available(corpus)["languages"])
        return [(SOURCE, code) for code in corpus.knowledge.languages if code in chosen]

    @override
    def available(self, corpus: Corpus) -> dict[str, Collection[str]]:
        """A language without text in the corpus has no number there."""
        found = list(filter(partial(language_in, corpus), corpus.knowledge.languages))
        return dict.fromkeys(("languages", "description_languages"), found)

    @override
    def missing_languages(self, corpus: Corpus) -> tuple[str, ...]:
        if self.languages:
            return StreamConfig.missing_languages(self, corpus)
        return tuple(c for c in corpus.knowledge.languages if language_in(corpus, c) is None)

    @override
    def fingerprint(self, corpus: Corpus) -> str:
        parts = corpus.fingerprint + corpus.knowledge.fingerprint
        return sha256(parts.encode()).hexdigest()

    @override
    def open(
        self, corpus: Corpus, *, split: Split, sequence_length: SequenceLength, row_length: int
    ) -> tuple[LanguageSlice, ...]:
        sampler = DescriptionSampler(self, corpus)
        # the most tokens of two texts of one length whose sequences still fit into a row
        sizes = np.arange(1, row_length + 1, dtype=np.int32)[:, None].repeat(2, axis=1)
        limit = min(self.max_tokens, int((sequence_length(sizes) <= row_length).sum()))
        return tuple(
            self.slice_class(corpus, code, split, sampler, limit)
            for _, code in self.selected(corpus)
        )


def language_in(corpus: Corpus, code: str) -> str | None:
    """The name that a corpus has for a language of its knowledge; None if it has no text in it."""
    return find(from_wikipedia(code), corpus.languages)


class DescriptionSampler:
    """Draws a description of an entity: its language, by the draw's uniform number.

    Works on thousands of draws at once, from the index of descriptions alone. Weights are integers,
    so that a draw's result does not depend on the other draws of the call.
    """

    def __init__(self, config: KnowledgeStream, corpus: Corpus) -> None:
        knowledge, languages = corpus.knowledge, corpus.languages
        self.knowledge, self.how = knowledge, config.description
        setting = "description_languages"
        wanted = config.chosen(corpus, setting, config.available(corpus)[setting])
        stored = knowledge.manifest.counts
        counts = np.array(
            [stored[code].descriptions if code in wanted else 0 for code in knowledge.languages],
            np.float64,
        )
        allowed = counts > 0
        relative = counts / max(counts.max(initial=0), 1)
        shares = np.where(allowed, relative**config.description_alpha, 0)
        weights = np.where(allowed, np.maximum(np.rint(_FINEST * shares), 1), 0)
        self.weights = weights.astype(np.int64)
        names = [language_in(corpus, code) for code in knowledge.languages]
        numbers = [NONE if name is None else languages.index(name) for name in names]
        self.language_ids = np.array(numbers, np.int64)

    def language_number(self, language: str) -> int:
        """A language's number in the store."""
        return self.knowledge.languages.index(language)

    def possible(self, entities: IntArray, own: int) -> BoolArray:
        """Which entities have a description that can be drawn for a text in language `own`."""
        return np.asarray(self(entities, own, np.zeros(len(entities))) != NONE)

    def __call__(self, entities: IntArray, own: int, uniforms: FloatArray) -> LongArray:
        """A description of each entity for a text in language `own`: an index row, or NONE."""
        described = self.knowledge.described
        first, number = described[entities]
        ends = np.cumsum(number)
        rows = np.repeat(first - ends + number, number) + np.arange(number.sum())
        languages = described.where["language"][rows] if len(rows) else np.zeros(0, np.int16)
        weights = self.weights[languages]
        if self.how != "any":
            weights = np.where((languages == own) == (self.how == "same"), weights, 0)
        sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(weights)])
        before = sums[ends - number]
        total = sums[ends] - before
        wanted = before + np.minimum((uniforms * total).astype(np.int64), np.maximum(total - 1, 0))
        places = np.searchsorted(sums[1:], wanted, "right")
        found = np.full(len(entities), NONE, np.int64)
        good = total > 0
        found[good] = rows[places[good]]
        return found

    def lengths(self, rows: LongArray) -> IntArray:
        """The number of tokens of rows of the index."""
        lengths: IntArray = self.knowledge.described.where["length"][rows]
        return lengths

    def read(self, row: int, limit: int) -> tuple[IntArray, int]:
        """The first `limit` tokens of a description, and the id of its language in the corpus."""
        where = self.knowledge.described.where
        number = int(where["language"][row])
        table = self.knowledge.descriptions(self.knowledge.languages[number]).table
        tokens = table.tokens("tokens", int(where["row"][row]))[:limit]
        return tokens, int(self.language_ids[number])


class KnowledgeSlice(LanguageSlice):
    """The draws of one language from a table, with texts of at most `limit` tokens."""

    def __init__(
        self, corpus: Corpus, language: str, split: Split, sampler: DescriptionSampler, limit: int
    ) -> None:
        self.source, self.language, self.limit = SOURCE, language, limit
        self.language_id = int(sampler.language_ids[sampler.language_number(language)])
        self.sampler, self.own = sampler, sampler.language_number(language)
        self.table = self.open(corpus.knowledge, split)
        self.num_examples = len(self.table)

    @abstractmethod
    def open(self, knowledge: Knowledge, split: Split) -> Shard:
        """The table that draws are rows of."""


class DescriptionSlice(KnowledgeSlice):
    """The descriptions of one language, the same in both splits."""

    @override
    def open(self, knowledge: Knowledge, split: Split) -> Shard:
        return knowledge.descriptions(self.language).table

    @property
    @override
    def num_tokens(self) -> int:  # type: ignore[override]
        return len(self.table["tokens"])

    @override
    def sizes(self, indices: LongArray, uniforms: FloatArray) -> IntArray:
        offsets = self.table.offsets("tokens")
        lengths = offsets[indices + 1] - offsets[indices]
        return np.asarray(np.minimum(lengths, self.limit), np.int32)[:, None]

    @override
    def example(self, index: int, uniform: float) -> Text:
        ids = self.table.tokens("tokens", index)[: self.limit]
        return Text(ids=ids, sentences=np.zeros(len(ids), np.int32), language=self.language_id)

    @override
    def where(self, index: int) -> str:
        return f"{self.table.path}, row {index}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DescriptionStream(KnowledgeStream):
    """Descriptions of entities, each a text of its own."""

    kind: ClassVar[str] = "descriptions"
    slice_class: ClassVar[type[KnowledgeSlice]] = DescriptionSlice
