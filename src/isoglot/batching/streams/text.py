"""The text stream: consecutive sentences that fill a row, or single sentences.

`unit: full-sentences` cuts each document into blocks of as many whole sentences as fit into a row
(RoBERTa's FULL-SENTENCES); only a sentence longer than a row is cut. `unit: tokens` cuts wherever
a block is full, as XLM's code does, and pads only at the ends of documents. `unit: sentence` draws
single sentences. A block is a range of tokens in one shard, found once when the stream is opened.

With each text the stream draws a second language, the target of `btmlm` and `backtranslate`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
from numba import njit
from typing_extensions import override

from isoglot.batching.dropped import Limit, count_dropped
from isoglot.batching.streams.base import LanguageSlice, SequenceLength, StreamConfig
from isoglot.errors import CorpusError
from isoglot.languages import find
from isoglot.ranges import Range
from isoglot.types import FloatArray, Text

if TYPE_CHECKING:
    from collections.abc import Collection

    from isoglot.corpus import Corpus, Table
    from isoglot.corpus.storage.shards import Split
    from isoglot.types import IntArray, LongArray


@dataclass(frozen=True, slots=True, kw_only=True)
class TextStream(StreamConfig):
    """Monolingual text from sources of kind `text`."""

    kind: ClassVar[str] = "text"
    reads: ClassVar[str] = "text"

    unit: Literal["full-sentences", "tokens", "sentence"] = "full-sentences"
    """One draw is a block of whole sentences that fills a row, a block of tokens cut anywhere, or
    one sentence."""
    max_tokens: Annotated[int | None, Range(1, 2**17)] = None
    """Most tokens of a block, special tokens at its edges not counted; none: what fits a row."""
    separators: bool = False
    """Put a separator token between the sentences of a block, as XLM does."""
    across_documents: bool = False
    """Let a block run over the end of a document, as XLM does."""
    target_languages: tuple[str, ...] = ()
    """Languages that `btmlm` and `backtranslate` generate, one drawn per text; none means all."""
    target_alpha: Annotated[float, Range(-10, 10)] = 0.0
    """Target languages are drawn with p proportional to N^alpha of their tokens: 0 uniformly."""

    @override
    def open(
        self, corpus: Corpus, *, split: Split, sequence_length: SequenceLength, row_length: int
    ) -> tuple[LanguageSlice, ...]:
        sizes = np.arange(1, row_length + 1, dtype=np.int32)[:, None]
        limit = int((sequence_length(sizes) <= row_length).sum())
        if self.max_tokens is not None:
            limit = min(limit, self.max_tokens)
        separator = corpus.vocabulary.sep if self.separators else None
        slices = []
        for source, language in self.selected(corpus):
            blocks = TextSlice(
                source,
                language,
                corpus.table(source, language, split),
                corpus.languages.index(language),
                separator,
                target_languages(corpus, language, self.target_languages, self.target_alpha),
            )
            blocks.cut(self, limit)
            blocks.drop(self, limit, sequence_length, row_length)
            slices.append(blocks)
        return tuple(slices)

    @override
    def available(self, corpus: Corpus) -> dict[str, Collection[str]]:
        return {**StreamConfig.available(self, corpus), "target_languages": corpus.languages}


class TextSlice(LanguageSlice):
    """The blocks of one (source, language): token ranges [start, stop) of a shard."""

    def __init__(
        self,
        source: str,
        language: str,
        table: Table,
        language_id: int,
        separator: int | None,
        targets: TargetLanguages,
    ) -> None:
        self.source, self.language, self.table = source, language, table
        self.language_id, self.separator, self.targets = language_id, separator, targets

    def cut(self, config: TextStream, limit: int) -> None:
        """Find the blocks of every shard."""
        found = []
        for number, shard in enumerate(self.table.shards):
            offsets = shard.offsets("ids").astype(np.int64)
            if config.unit == "sentence":
                starts, stops = offsets[:-1], offsets[1:]
                lengths = stops - starts
            else:
                documents = shard["document"]
                if config.across_documents:
                    documents = np.zeros_like(documents)
                starts, stops, lengths = _blocks(
                    offsets,
                    documents,
                    limit,
                    int(self.separator is not None),
                    whole=config.unit == "full-sentences",
                )
            found.append((np.full(len(starts), number, np.int32), starts, stops, lengths))
        columns = zip(*found, strict=True) if found else ([np.zeros(0, np.int64)],) * 4
        self.shard, self.start, self.stop, lengths = map(np.concatenate, columns)
        self.length = lengths.astype(np.int32)
        self.num_examples = len(self.length)
        self.num_tokens = int(self.length.sum(dtype=np.int64))

    def drop(
        self, config: TextStream, limit: int, sequence_length: SequenceLength, row_length: int
    ) -> None:
        """Drop sentences that are too long, or empty."""
        fit = (self.length <= limit) & (self.length > 0)
        if fit.all():
            return
        lengths = sequence_length(self.length[:, None])
        limits = [
            Limit(self.length > 0, "have no token", "the prepared text"),
            Limit(
                lengths <= row_length,
                f"do not fit a row of {row_length} tokens",
                "batch.row_length",
                lengths,
            ),
        ]
        if config.max_tokens is not None:
            limits.append(
                Limit(
                    self.length <= config.max_tokens,
                    f"have more than {config.max_tokens} tokens",
                    "the stream's max_tokens",
                    self.length,
                )
            )
        self.dropped = count_dropped(limits)
        self.num_examples -= self.num_dropped
        longest = int(np.argmax(self.length))
        if lengths[longest] > row_length:
            config.check_overlong(self, longest, int(lengths[longest]), row_length)
        for name in ("shard", "start", "stop", "length"):
            setattr(self, name, getattr(self, name)[fit])
        self.num_tokens = int(self.length.sum(dtype=np.int64))

    @property
    @override
    def num_sentences(self) -> int:
        return self.table.num_rows

    @override
    def sizes(self, indices: LongArray, uniforms: FloatArray) -> IntArray:
        sizes: IntArray = self.length[indices][:, None]
        return sizes

    @override
    def example(self, index: int, uniform: float) -> Text:
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
            target_language=self.targets.draw(uniform),
        )

    @override
    def where(self, index: int) -> str:
        number = int(self.shard[index])
        shard = self.table.shards[number]
        row = int(np.searchsorted(shard.offsets("ids"), self.start[index], "right")) - 1
        return f"{shard.path}, row {row}"

    @override
    def block_ends(self) -> LongArray:
        return np.searchsorted(self.shard, np.arange(len(self.table.shards)), "right")


@njit(cache=True)
def _blocks(
    offsets: LongArray,
    documents: IntArray,
    limit: int,
    separator: int,
    whole: bool,  # noqa: FBT001 (numba has no keyword-only arguments)
) -> tuple[LongArray, LongArray, LongArray]:  # pragma: no cover - compiled
    """Greedy blocks of (whole) sentences of at most `limit` tokens, separators counted."""
    capacity = len(offsets) + (offsets[-1] - offsets[0]) // max(limit, 1) + 1
    starts = np.empty(capacity, np.int64)
    stops = np.empty(capacity, np.int64)
    lengths = np.empty(capacity, np.int64)
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
            taken = min(size, room)
            start += taken
            length += separator + taken
            stops[n - 1], lengths[n - 1] = start, length
        while start < stop:
            taken = min(limit, stop - start)
            starts[n], stops[n], lengths[n] = start, start + taken, taken
            length = taken
            start += taken
            n += 1
    return starts[:n], stops[:n], lengths[:n]


@dataclass(frozen=True, slots=True)
class TargetLanguages:
    """The languages that texts of one language may be translated into, and their probabilities."""

    ids: tuple[int, ...]
    cumulative: FloatArray

    def draw(self, uniform: float) -> int:
        """The language of a number in [0, 1); -1 if there is none."""
        if not self.ids:
            return -1
        place = int(np.searchsorted(self.cumulative, uniform, "right"))
        return self.ids[min(place, len(self.ids) - 1)]


def target_languages(
    corpus: Corpus, language: str, targets: tuple[str, ...], alpha: float
) -> TargetLanguages:
    """The target languages for texts of one language, p proportional to N^alpha of their tokens."""
    tokens = {code: number for code, number in corpus.tokens_of_languages().items() if number}
    found = [find(code, tokens) for code in targets] if targets else list(tokens)
    chosen = [code for code in dict.fromkeys(found) if code is not None and code != language]
    if targets and not chosen:
        raise CorpusError(
            f"target_languages: texts in {language!r} have no other language of {corpus.folder} to "
            f"choose. Name a second one ({', '.join(tokens)}), or remove {language!r} from the "
            "stream's languages."
        )
    shares = np.array([tokens[code] for code in chosen], np.float64) ** alpha
    return TargetLanguages(
        tuple(corpus.languages.index(code) for code in chosen),
        np.cumsum(shares / shares.sum()) if chosen else shares,
    )
