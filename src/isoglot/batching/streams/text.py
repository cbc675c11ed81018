"""The stream of running text: consecutive sentences filled up to a row, or single sentences.

`unit: stream` cuts each document into blocks of whole sentences, as many as fit into a row; only a
sentence longer than a row is cut. `unit: tokens` cuts wherever a block is full, and leaves no
padding but at the ends of documents (as XLM's code cuts its streams). `unit: sentence` draws
sentences one by one. In every case a block is a range of tokens in one shard, found once when the
stream is opened.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from numba import njit
from typing_extensions import override

from isoglot.batching.streams.base import Longest, Part, StreamConfig
from isoglot.batching.streams.other_language import OtherLanguages, other_languages
from isoglot.errors import require
from isoglot.types import Text

if TYPE_CHECKING:
    from isoglot.corpus import Corpus, Table
    from isoglot.corpus.heldout import Split
    from isoglot.types import FloatArray, IntArray, LongArray


@dataclass(frozen=True, slots=True, kw_only=True)
class TextStream(StreamConfig):
    """Monolingual text from sources of kind `text`."""

    kind: ClassVar[str] = "text"
    reads: ClassVar[str] = "text"

    unit: Literal["stream", "tokens", "sentence"] = "stream"
    """One draw is a block of consecutive sentences that fills a row, the same cut anywhere so that
    it fills the row exactly, or one sentence."""
    max_length: int | None = None
    """Longest block in tokens, without special tokens at its edges; none means what fits a row."""
    separators: bool = False
    """Put a separator token between the sentences of a block, as XLM does."""
    across_documents: bool = False
    """Let a block run over the end of a document, as XLM does."""
    others: tuple[str, ...] = ()
    """Languages to draw a text's other language from (`btmlm` writes in it); none means all."""
    other_alpha: float = 0.0
    """The other language is drawn with p proportional to N^alpha of its tokens: 0 all alike."""

    @override
    def __post_init__(self) -> None:
        StreamConfig.__post_init__(self)
        require(self.max_length is None or self.max_length >= 1, "max_length must be 1 or more")

    @override
    def open(
        self, corpus: Corpus, *, split: Split, longest: Longest, row_length: int
    ) -> tuple[Part, ...]:
        limit = most_tokens(longest, row_length)
        if self.max_length is not None:
            limit = min(limit, self.max_length)
        separator = corpus.vocabulary.sep if self.separators else None
        parts = []
        for source, language in self.selected(corpus):
            part = TextPart(
                source,
                language,
                corpus.table(source, language, split),
                corpus.languages.index(language),
                separator,
                other_languages(corpus, language, self.others, self.other_alpha),
            )
            part.cut(self, limit)
            part.drop(self, limit, longest, row_length)
            if part.num_examples:
                parts.append(part)
        return tuple(parts)


def most_tokens(longest: Longest, row_length: int) -> int:
    """The most tokens of text whose sequences still fit into a row."""
    sizes = np.arange(1, row_length + 1, dtype=np.int32)[:, None]
    return int((longest(sizes) <= row_length).sum())


class TextPart(Part):
    """The blocks of one (source, language): token ranges [start, stop) of a shard."""

    def __init__(
        self,
        source: str,
        language: str,
        table: Table,
        language_id: int,
        separator: int | None,
        others: OtherLanguages,
    ) -> None:
        self.source, self.language, self.table = source, language, table
        self.language_id, self.separator, self.others = language_id, separator, others
        self.num_dropped = 0

    def cut(self, config: TextStream, limit: int) -> None:
        """Find the blocks of every shard."""
        found = []
        for number, shard in enumerate(self.table.shards):
            offsets = shard.offsets("ids").astype(np.int64)
            if config.unit == "sentence":
                starts, stops = offsets[:-1], offsets[1:]
                lengths = stops - starts
            else:
                documents = shard.document
                if config.across_documents:
                    documents = np.zeros_like(documents)
                starts, stops, lengths = _blocks(
                    offsets,
                    documents,
                    limit,
                    int(self.separator is not None),
                    whole=config.unit == "stream",
                )
            found.append((np.full(len(starts), number, np.int32), starts, stops, lengths))
        columns = zip(*found, strict=True) if found else ([np.zeros(0, np.int64)],) * 4
        self.shard, self.start, self.stop, lengths = map(np.concatenate, columns)
        self.length = lengths.astype(np.int32)
        self.num_examples = len(self.length)
        self.num_tokens = int(self.length.sum(dtype=np.int64))

    def drop(self, config: TextStream, limit: int, longest: Longest, row_length: int) -> None:
        """Leave out sentences that are too long, or empty."""
        fit = (self.length <= limit) & (self.length > 0)
        if fit.all():
            return
        self.num_dropped = int((~fit).sum())
        self.num_examples -= self.num_dropped
        worst = int(np.argmax(self.length))
        length = int(longest(self.length[worst : worst + 1, None])[0])
        if length > row_length:
            config.refuse(self, worst, length, row_length)
        for name in ("shard", "start", "stop", "length"):
            setattr(self, name, getattr(self, name)[fit])
        self.num_tokens = int(self.length.sum(dtype=np.int64))

    @property
    @override
    def num_sentences(self) -> int:
        return self.table.num_rows

    @override
    def sizes(self, indices: LongArray, chances: FloatArray) -> IntArray:
        sizes: IntArray = self.length[indices][:, None]
        return sizes

    @override
    def example(self, index: int, chance: float) -> Text:
        shard = self.table.shards[self.shard[index]]
        start, stop = int(self.start[index]), int(self.stop[index])
        ids = shard.values("ids")[start:stop]
        offsets = shard.offsets("ids")
        # asked in the offsets' own type: for any other, numpy would copy them all each time
        first, last = np.searchsorted(offsets, np.array([start + 1, stop], offsets.dtype))
        ends = offsets[first:last]
        cuts = ends.astype(np.int64) - start
        sentences = np.zeros(stop - start, np.int32)
        np.add.at(sentences, cuts, 1)
        sentences = np.cumsum(sentences, dtype=np.int32)
        if self.separator is not None and len(cuts):
            ids = np.insert(ids, cuts, np.int32(self.separator))
            sentences = np.insert(sentences, cuts, sentences[cuts - 1])
        return Text(
            ids=ids,
            sentences=sentences,
            language=self.language_id,
            other_language=self.others.draw(chance),
        )

    @override
    def where(self, index: int) -> str:
        number = int(self.shard[index])
        shard = self.table.shards[number]
        row = int(np.searchsorted(shard.offsets("ids"), self.start[index], "right")) - 1
        return f"{shard.path}, row {row}"


@njit(cache=True)
def _blocks(
    offsets: LongArray,
    documents: IntArray,
    limit: int,
    separator: int,
    whole: bool,  # noqa: FBT001 (numba has no keyword-only arguments)
) -> tuple[LongArray, LongArray, LongArray]:  # pragma: no cover - compiled
    """Greedy blocks of (whole) sentences of at most `limit` tokens, separators counted."""
    most = len(offsets) + (offsets[-1] - offsets[0]) // max(limit, 1) + 1
    starts = np.empty(most, np.int64)
    stops = np.empty(most, np.int64)
    lengths = np.empty(most, np.int64)
    n, length, document = 0, 0, documents[0] if len(documents) else 0
    for row in range(len(offsets) - 1):
        start, stop = offsets[row], offsets[row + 1]
        size = stop - start
        if size == 0:
            continue
        same = documents[row] == document
        document = documents[row]
        room = limit - length - separator
        if length > 0 and same and room > 0 and (size <= room or not whole):
            piece = min(size, room)
            start += piece
            length += separator + piece
            stops[n - 1], lengths[n - 1] = start, length
        while start < stop:
            piece = min(limit, stop - start)
            starts[n], stops[n], lengths[n] = start, start + piece, piece
            length = piece
            start += piece
            n += 1
    return starts[:n], stops[:n], lengths[:n]
