"""What a stream is: settings that open a prepared corpus as randomly addressable examples.

A stream opens one `LanguageSlice` per (source, language). A slice gives one example per draw; the
random choices that all objectives of the stream share (which side of a pair comes first) are a
function of the draw's uniform random number. Sizes of examples are known without reading text, so
that rows are planned from the length index alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np

from isoglot.errors import CorpusError, RecipeError, nearest, require
from isoglot.languages import find
from isoglot.ranges import Range, check_ranges

if TYPE_CHECKING:
    from collections.abc import Collection

    from isoglot.batching.dropped import Dropped
    from isoglot.corpus import Corpus
    from isoglot.corpus.storage.shards import Split
    from isoglot.types import Example, FloatArray, IntArray, LongArray

SequenceLength = Callable[["IntArray"], "IntArray"]
"""(n, k) sizes of examples -> (n,) tokens or positions of the longest sequence built from each."""


_GRID = 257
"""Sizes of one side at which the lengths of pairs are compared."""


def key_of_lengths(sequence_length: SequenceLength, columns: int, row_length: int) -> str:
    """Equal for objectives that make sequences of the same lengths of examples."""
    if columns == 1:
        sizes = np.arange(1, 2 * row_length + 2, dtype=np.int32)[:, None]
    else:
        side = np.unique(np.linspace(1, row_length + 1, _GRID).astype(np.int32))
        sizes = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    return sha256(sequence_length(sizes).astype(np.int64).tobytes()).hexdigest()


class OverlongError(CorpusError):
    """No example fits into a row, or one does not and `overlong: error` is set."""


class LanguageSlice(ABC):
    """The examples of one (source, language) of a stream."""

    source: str
    language: str
    num_examples: int
    num_tokens: int
    dropped: tuple[Dropped, ...] = ()
    """Examples that are not read, by reason."""

    @property
    def num_dropped(self) -> int:
        """Examples that are not read."""
        return sum(one.count for one in self.dropped)

    @property
    def num_sentences(self) -> int:
        """Sentences, or pairs, in all examples."""
        return self.num_examples

    @property
    def name(self) -> str:
        """`source/language`, for messages and keys."""
        return f"{self.source}/{self.language}"

    @abstractmethod
    def sizes(self, indices: LongArray, uniforms: FloatArray) -> IntArray:
        """(n, k) sizes of examples, from which objectives compute the lengths of sequences.

        `uniforms` has a random number in [0, 1) for each draw. The choices that all objectives
        share (which side comes first) are a function of it, since lengths may depend on them.
        """

    @abstractmethod
    def example(self, index: int, uniform: float) -> Example:
        """Read one example; its random choices are a function of `uniform` in [0, 1)."""

    @abstractmethod
    def where(self, index: int) -> str:
        """The file and row of an example, for messages."""

    def block_ends(self) -> LongArray:
        """Where blocks of examples that lie together end: one block, or one for each shard."""
        return np.array([self.num_examples], np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamConfig(ABC):
    """Settings that every stream has."""

    kind: ClassVar[str]
    reads: ClassVar[str]
    """The kind of prepared source it reads, or `knowledge`."""

    objectives: tuple[str, ...]
    """The objectives that read each draw of this stream."""
    must_fit: tuple[str, ...] = ()
    """Objectives that are not trained, but whose sequences must fit a row too: a control reads the
    examples of the recipe it controls."""
    share: Annotated[float, Range(0, 1e6, above=True)] = 1.0
    """Its share of the tokens of a step, relative to the other streams'."""
    sources: tuple[str, ...] = ()
    """Names of prepared sources; none means all of the right kind."""
    languages: tuple[str, ...] = ()
    """Languages (or language pairs) to read, those that the corpus has; none means all."""
    alpha: Annotated[float, Range(-10, 10)] = 0.7
    """Languages are drawn with p proportional to N^alpha: 1 in proportion to N, 0 uniformly."""
    alpha_unit: Literal["sentences", "tokens"] = "sentences"
    """What the N of alpha counts."""
    sampling: Literal["languages", "epochs"] = "languages"
    """`languages` draws a language for each example; `epochs` shuffles the union of all."""
    overlong: Literal["drop", "error"] = "drop"
    """Drop examples whose sequence is longer than a row, or stop with an error."""
    # not in `repr`, which feeds fingerprints of runs that were made before these settings
    shuffle: Literal["examples", "blocks"] | None = field(default=None, repr=False)
    """Shuffle all examples of an epoch, or shards and the examples of some shards at a time (for
    slow disks and object stores); none: examples, blocks if the corpus is read from a URL."""
    shuffle_blocks: Annotated[int, Range(1, 100_000)] = field(default=8, repr=False)
    """Shards whose examples are shuffled together with `shuffle: blocks`."""
    end_alpha: Annotated[float | None, Range(-10, 10)] = field(default=None, repr=False)
    """The alpha of the stage's last step, which `alpha` approaches linearly; none: it stays."""

    @property
    def blocks_together(self) -> int | None:
        """Blocks whose examples are shuffled together; none: all examples of an epoch are."""
        return self.shuffle_blocks if self.shuffle == "blocks" else None

    @classmethod
    def class_for(cls, name: str, settings: Any) -> type[StreamConfig]:
        """The class of a recipe's stream: named by its key, or by `kind` where they differ."""
        from isoglot.batching.streams import STREAMS

        kind = settings.pop("kind", name) if isinstance(settings, dict) else name
        for stream in STREAMS:
            if stream.kind == kind:
                return stream
        known = [stream.kind for stream in STREAMS]
        raise RecipeError(f"there is no stream {kind!r}; {nearest(str(kind), known)}")

    @classmethod
    def check_objective(cls, name: str) -> None:
        """Raise unless there is such an objective and it can read this stream."""
        from isoglot.objectives import find_objective

        reads = find_objective(name).reads
        if cls.kind not in reads:
            raise RecipeError(f"the objective {name!r} reads {' or '.join(reads)}, not {cls.kind}")

    @abstractmethod
    def open(
        self, corpus: Corpus, *, split: Split, sequence_length: SequenceLength, row_length: int
    ) -> tuple[LanguageSlice, ...]:
        """The slices of this stream in a corpus, one per (source, language); some may be empty."""

    def fingerprint(self, corpus: Corpus) -> str:
        """Equal for corpora that give this stream the same examples, and for no others."""
        return corpus.fingerprint

    def selected(self, corpus: Corpus) -> list[tuple[str, str]]:
        """The (source, language) pairs of a corpus that these settings name."""
        known = corpus.sources(self.reads)
        if not known:
            raise CorpusError(
                f"{corpus.folder} has no prepared source of kind {self.reads!r}, which the stream "
                f"{self.kind!r} reads. Add one to the prepare file, or remove the stream."
            )
        for source in self.sources:
            if source not in known:
                raise CorpusError(
                    f"{corpus.folder} has no source {source!r} of kind {self.reads!r}: "
                    f"{nearest(source, known)}"
                )
        found = [
            (source, language)
            for source in (self.sources or known)
            for language in corpus.manifest.sources[source].languages
        ]
        chosen = self.chosen(corpus, "languages", {language for _, language in found})
        return [pair for pair in found if pair[1] in chosen]

    def chosen(self, corpus: Corpus, setting: str, available: Collection[str]) -> set[str]:
        """The available languages that a setting names, all if it names none; at least one."""
        asked: tuple[str, ...] = getattr(self, setting)
        found = {name for name in (find(code, available) for code in asked) if name is not None}
        if asked and not found:
            raise CorpusError(
                f"stream {self.kind!r}: {corpus.folder} has none of its {setting} "
                f"({', '.join(asked[:5])}{', ...' if len(asked) > 5 else ''}); "
                f"{nearest(asked[0], available)}"
            )
        return found if asked else set(available)

    def available(self, corpus: Corpus) -> dict[str, Collection[str]]:
        """Setting that names languages -> the languages of the corpus that it may name."""
        names = self.sources or corpus.sources(self.reads)
        sources = [corpus.manifest.sources[name] for name in names]
        return {"languages": {code for source in sources for code in source.languages}}

    def missing_languages(self, corpus: Corpus) -> tuple[str, ...]:
        """The languages that the settings name and the corpus lacks: they are left out."""
        missing = [
            code
            for setting, available in self.available(corpus).items()
            for code in getattr(self, setting)
            if find(code, available) is None
        ]
        return tuple(dict.fromkeys(missing))

    def __post_init__(self) -> None:
        require(len(self.objectives) > 0, "a stream needs an objective that reads it")
        require(len(set(self.objectives)) == len(self.objectives), "an objective is named twice")
        require(
            self.end_alpha is None or self.sampling == "languages",
            "end_alpha is for sampling: languages; sampling: epochs does not use alpha",
        )
        check_ranges(self)

    def check_overlong(
        self, examples: LanguageSlice, index: int, length: int, row_length: int
    ) -> None:
        """Raise for examples that do not fit, with `overlong: error` or if no example fits."""
        if self.overlong == "drop" and examples.num_examples:
            return
        fix = f"Raise batch.row_length to {length}"
        if self.overlong == "error":
            fix += ", or set the stream's overlong: drop to leave them out"
        raise OverlongError(
            f"{examples.where(index)}: its sequence reaches over {length} tokens and a row has "
            f"{row_length} ({examples.num_dropped} examples of {examples.name} do not fit, "
            f"{examples.num_examples} do). {fix}."
        )
