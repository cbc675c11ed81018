"""What a stream is: settings that open a prepared corpus as randomly addressable examples.

A stream makes one example per draw, with the random choices that its objectives share already made
(which side of a pair comes first). It knows the sizes of its examples without reading them, so that
rows are planned from the length index alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol

from isoglot.errors import CorpusError, nearest, require

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np

    from isoglot.corpus import Corpus
    from isoglot.corpus.heldout import Split
    from isoglot.types import (
        Example,
        FloatArray,
        IntArray,
        LongArray,
        Sequence,
        Vocabulary,
    )

Longest = Callable[["IntArray"], "IntArray"]
"""Sizes of examples (n, k) -> tokens or positions of the longest sequence made of each (n,)."""


class SequenceMaker(Protocol):
    """The data half of an objective, as batching sees it."""

    num_side: ClassVar[int]
    """How many of its sequences, the last ones, go into the objective's side rows."""
    counts: ClassVar[str | None]
    """The name of the sites it counts; none: the tokens to predict."""
    host_sites: ClassVar[tuple[str, ...]]
    """Names of its sites that are places in its host's sequence, not in its own."""
    decodes: ClassVar[bool]
    """Are its first two sequences what an encoder reads and what a decoder writes?"""

    def hosts(self) -> tuple[str, ...]:
        """The objectives whose sequences it rides on; none: it builds its own."""
        ...

    def wants(self, language: str) -> bool:
        """Does it make anything of examples of a language (or pair)?"""
        ...

    def lengths(self, sizes: IntArray) -> IntArray:
        """(n, k) sizes of examples -> (n, m) the most tokens of the sequences it makes of each."""
        ...

    def reach(self, sizes: IntArray) -> IntArray:
        """(n, k) sizes of examples -> (n,) how many positions its sequences reach over."""
        ...

    def max_targets(self, sizes: IntArray) -> IntArray:
        """(n, k) sizes of examples -> (n,) the most prediction sites it can make of each."""
        ...

    def build(
        self, example: Example, vocabulary: Vocabulary, rng: np.random.Generator
    ) -> tuple[Sequence, ...]:
        """The m sequences of one example."""
        ...

    def ride(
        self, hosted: tuple[Sequence, ...], vocabulary: Vocabulary, rng: np.random.Generator
    ) -> tuple[Sequence, ...]:
        """The m sequences of an example of which its hosts have made these."""
        ...

    def build_beside(
        self, example: Example, vocabulary: Vocabulary, rng: np.random.Generator, longest: int
    ) -> tuple[Sequence, ...]:
        """The same in a padded batch whose longest source has so many tokens."""
        ...


class TooLongError(CorpusError):
    """No example fits into a row, or one does not that must."""


class Part(ABC):
    """The examples of one (source, language) of a stream."""

    source: str
    language: str
    num_examples: int
    num_tokens: int
    num_dropped: int
    """Examples left out."""
    why_dropped: ClassVar[str] = (
        "longer than a row of {row_length} tokens or than the stream allows, or too short"
    )
    """What is wrong with those, for messages."""

    @property
    def num_sentences(self) -> int:
        """Sentences (or pairs) that the examples are made of."""
        return self.num_examples

    @property
    def name(self) -> str:
        """`source/language`, for messages and keys."""
        return f"{self.source}/{self.language}"

    @abstractmethod
    def sizes(self, indices: LongArray, chances: FloatArray) -> IntArray:
        """(n, k) sizes of examples: whatever an objective needs to tell its lengths.

        `chances` has a number in [0, 1) for each draw: the choices that its objectives share (which
        side comes first) are a function of it, since lengths may depend on them.
        """

    @abstractmethod
    def example(self, index: int, chance: float) -> Example:
        """Read one example, with the choices that follow from the draw's number in [0, 1)."""

    @abstractmethod
    def where(self, index: int) -> str:
        """The file and row of an example, for messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamConfig(ABC):
    """Settings that every stream has."""

    kind: ClassVar[str]
    reads: ClassVar[str]
    """The kind of prepared source it reads, or `knowledge`."""

    objectives: tuple[str, ...]
    """The objectives that read each draw of this stream."""
    share: float = 1.0
    """Its share of the tokens of a step, relative to the other streams'."""
    sources: tuple[str, ...] = ()
    """Names of prepared sources; none means all of the right kind."""
    languages: tuple[str, ...] = ()
    """Languages (or pairs, as prepared) to read; none means all."""
    alpha: float = 0.7
    """Languages are drawn with p proportional to N^alpha: 1 as they come, 0 all alike."""
    count: Literal["sentences", "tokens"] = "sentences"
    """What N counts."""
    mixture: Literal["languages", "epochs"] = "languages"
    """`languages` draws a language each time; `epochs` goes through the union of all, shuffled."""
    too_long: Literal["drop", "error"] = "drop"
    """What to do with an example that gives a sequence longer than a row."""

    @abstractmethod
    def open(
        self, corpus: Corpus, *, split: Split, longest: Longest, row_length: int
    ) -> tuple[Part, ...]:
        """The parts of this stream in a corpus, one per (source, language)."""

    def fingerprint(self, corpus: Corpus) -> str:
        """Equal for corpora that give this stream the same examples, and for no others."""
        return corpus.fingerprint

    def selected(self, corpus: Corpus) -> list[tuple[str, str]]:
        """The (source, language) pairs of a corpus that these settings name."""
        known = corpus.sources(self.reads)
        if not known:
            raise CorpusError(
                f"{corpus.folder} has no prepared source of kind {self.reads!r}, which the stream "
                f"{self.kind!r} reads. Add one to the prepare file, or leave the stream out."
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
        self.check_languages(corpus, self.languages, {language for _, language in found})
        return [pair for pair in found if not self.languages or pair[1] in self.languages]

    def check_languages(self, corpus: Corpus, asked: Iterable[str], available: set[str]) -> None:
        """Raise unless there is something in every language that was asked for."""
        for language in asked:
            if language not in available:
                raise CorpusError(
                    f"stream {self.kind!r}: {corpus.folder} has nothing for language "
                    f"{language!r}: {nearest(language, available)}"
                )

    def __post_init__(self) -> None:
        require(len(self.objectives) > 0, "a stream needs an objective that reads it")
        require(len(set(self.objectives)) == len(self.objectives), "an objective is named twice")
        require(self.share > 0, "share must be above 0; leave the stream out instead")

    def refuse(self, part: Part, index: int, length: int, row_length: int) -> None:
        """Stop on examples that do not fit if asked to, or if nothing else is left."""
        if self.too_long == "drop" and part.num_examples:
            return
        fix = f"Raise batch.row_length to {length}"
        if self.too_long == "error":
            fix += ", or set the stream's too_long: drop to leave them out"
        raise TooLongError(
            f"{part.where(index)}: its sequence reaches over {length} tokens and a row has "
            f"{row_length} ({part.num_dropped} examples of {part.name} do not fit, "
            f"{part.num_examples} do). {fix}."
        )
