"""The text stream: consecutive sentences that fill a row, or single sentences.

`unit: full-sentences` cuts each document into blocks of as many whole sentences as fit into a row
(RoBERTa's FULL-SENTENCES); only a sentence longer than a row is cut. `unit: tokens` cuts wherever
a block is full, as XLM's code does, and pads only at the ends of documents. `unit: sentence` draws
single sentences. A block is a range of tokens in one shard (`blocks.py`).

With each text the stream draws a second language, the target of `btmlm` and `backtranslate`.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
from typing_extensions import override

from isoglot.batching.dropped import Limit
from isoglot.batching.streams.base import (
    LanguageSlice,
    OverlongError,
    SequenceLength,
    StreamConfig,
    key_of_lengths,
)
from isoglot.batching.streams.blocks import Blocks, BlockSettings, cut_blocks
from isoglot.batching.streams.kept_rows import Chunk, KeptRows, find_kept
from isoglot.errors import CorpusError
from isoglot.languages import find
from isoglot.ranges import Range
from isoglot.types import FloatArray, Text

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from isoglot.corpus import Corpus, Table
    from isoglot.corpus.storage.array_file import ArrayWriter
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
        if limit < 1:
            raise OverlongError(
                f"no text fits a row of {row_length} tokens with the special tokens of "
                f"{', '.join(self.objectives)}. Raise batch.row_length."
            )
        slices: list[LanguageSlice] = []
        for source, language in self.selected(corpus):
            about = (
                source,
                language,
                corpus.table(source, language, split),
                corpus.languages.index(language),
                separator,
                target_languages(corpus, language, self.target_languages, self.target_alpha),
            )
            if self.unit == "sentence":
                sentences = SentenceSlice(*about)
                sentences.choose(corpus, split, self, sequence_length, row_length)
                slices.append(sentences)
            else:
                blocks = BlockSlice(*about)
                blocks.cut(corpus, split, self, limit)
                slices.append(blocks)
        return tuple(slices)

    @override
    def available(self, corpus: Corpus) -> dict[str, Collection[str]]:
        return {**StreamConfig.available(self, corpus), "target_languages": corpus.languages}


class TextSlice(LanguageSlice):
    """Texts of one (source, language): token ranges [start, stop) of its shards."""

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

    @abstractmethod
    def span(self, index: int) -> tuple[int, int, int]:
        """The shard of a text, and its tokens [start, stop) there."""

    @property
    @override
    def num_sentences(self) -> int:
        return self.table.num_rows

    @override
    def example(self, index: int, uniform: float) -> Text:
        number, start, stop = self.span(index)
        shard = self.table.shards[number]
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


class BlockSlice(TextSlice):
    """The blocks of one (source, language)."""

    def cut(self, corpus: Corpus, split: Split, config: TextStream, limit: int) -> None:
        """Find the blocks, or map those that another process has found."""
        assert config.unit != "sentence"
        settings = BlockSettings(
            unit=config.unit,
            limit=limit,
            separators=config.separators,
            across_documents=config.across_documents,
        )
        table = self.table

        def build(writer: ArrayWriter) -> None:
            rows = corpus.rows(self.source, self.language, split)
            cut_blocks(writer, rows, table.starts, settings)

        name = f"{self.source}/{self.language}/{split}-blocks"
        found = corpus.index(name, (settings,), build, num_rows=table.num_rows)
        self.blocks = Blocks(found)
        self.num_examples, self.num_tokens = self.blocks.num_blocks, self.blocks.num_tokens

    @override
    def sizes(self, indices: LongArray, uniforms: FloatArray) -> IntArray:
        return self.blocks.lengths(indices)[:, None]

    @override
    def span(self, index: int) -> tuple[int, int, int]:
        return self.blocks.span(index)

    @override
    def where(self, index: int) -> str:
        number, start, _ = self.span(index)
        shard = self.table.shards[number]
        row = int(np.searchsorted(shard.offsets("ids"), start, "right")) - 1
        return f"{shard.path}, row {row}"

    @override
    def block_ends(self) -> LongArray:
        return self.blocks.ends


class SentenceSlice(TextSlice):
    """The sentences of one (source, language) that are neither too long nor empty."""

    kept: KeptRows | None = None
    """None until those that are read are known."""

    def choose(
        self,
        corpus: Corpus,
        split: Split,
        config: TextStream,
        sequence_length: SequenceLength,
        row_length: int,
    ) -> None:
        """Find the sentences that are read, or map what another process has found."""
        self.rows = corpus.rows(self.source, self.language, split)

        def chunks() -> Iterator[Chunk]:
            for part in self.rows.chunks():
                sizes = self.rows.sizes(part)
                tokens, lengths = sizes[:, 0], sequence_length(sizes)
                yield Chunk(_sentence_limits(config, tokens, lengths, row_length), tokens, lengths)

        def build(writer: ArrayWriter) -> None:
            find_kept(writer, chunks)

        name = f"{self.source}/{self.language}/{split}-sentences"
        lengths_key = key_of_lengths(sequence_length, 1, row_length)
        settings = (config.max_tokens, row_length, lengths_key)
        kept = KeptRows(corpus.index(name, settings, build, num_rows=len(self.rows)))
        self.num_examples, self.num_tokens = kept.num_kept, kept.num_tokens
        self.dropped = kept.dropped
        row, length = kept.longest
        if length > row_length:
            config.check_overlong(self, row, length, row_length)
        self.kept = kept

    def _row(self, indices: LongArray) -> LongArray:
        return indices if self.kept is None else self.kept.rows(indices)

    @override
    def sizes(self, indices: LongArray, uniforms: FloatArray) -> IntArray:
        return self.rows.sizes(self._row(indices))

    @override
    def span(self, index: int) -> tuple[int, int, int]:
        number, row = self.table.locate(int(self._row(np.array([index]))[0]))
        start, stop = self.table.shards[number].offsets("ids")[row : row + 2].tolist()
        return number, start, stop

    @override
    def where(self, index: int) -> str:
        path, row = self.table.where(int(self._row(np.array([index]))[0]))
        return f"{path}, row {row}"

    @override
    def block_ends(self) -> LongArray:
        ends = self.table.starts[1:]
        return ends if self.kept is None else self.kept.num_before(ends)


def _sentence_limits(
    config: TextStream, tokens: IntArray, lengths: IntArray, row_length: int
) -> list[Limit]:
    """What sentences are dropped by."""
    reason = f"do not fit a row of {row_length} tokens"
    limits = [
        Limit(tokens > 0, "have no token", "the prepared text"),
        Limit(lengths <= row_length, reason, "batch.row_length", lengths),
    ]
    if config.max_tokens is not None:
        reason = f"have more than {config.max_tokens} tokens"
        good = tokens <= config.max_tokens
        limits.append(Limit(good, reason, "the stream's max_tokens", tokens))
    return limits


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
