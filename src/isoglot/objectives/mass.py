"""Masked sequence to sequence: the decoder writes a fragment that the encoder does not see.

Reads a draw of the text stream (one sentence each: `unit: sentence`). MASS (Song et al., 2019), as
MLM-GC (Ai and Fang, 2023) A.1 uses it. One fragment of half the sentence is hidden, at the start of
a fifth of the sentences, at the end of another, anywhere in the others; of its tokens 80 % become
[MASK], 10 % a random token, 10 % stay. For a sentence x1 .. x6 and the fragment x3 x4 x5:

    encoder            <en> x1 x2 [M] [M] [M] x6 </s>
    decoder is given   <en>    x2  x3  x4               each at its own position
    decoder writes              x3  x4  x5

The decoder cannot look at encoder positions that are [MASK]. The end of a sentence is its last
token and may be hidden too, so that the decoder learns to stop; the language never is. Where we
differ: the language is the decoder's first token wherever the fragment is, in place of an embedding
on every token.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from typing_extensions import override

from isoglot.errors import require
from isoglot.objectives.masking import Masking
from isoglot.objectives.sides import NUM_EDGES, Decoded, DecodedPrediction, fragment, source
from isoglot.types import IntArray, Sequence, Text

if TYPE_CHECKING:
    from isoglot.corpus import Corpus
    from isoglot.models.encoder import Encoder
    from isoglot.objectives.base import ObjectiveModule
    from isoglot.types import Example, Vocabulary

UNSEEN = "unseen"
"""The name of the sites that the decoder cannot look at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MASS(Decoded):
    """Settings of masked sequence to sequence."""

    name: ClassVar[str] = "mass"
    line: ClassVar[str] = "write the hidden half of a sentence from the rest of it"
    reads: ClassVar[tuple[str, ...]] = ("text",)
    paper: ClassVar[str] = "MASS; MLM-GC A.1"

    share: float = 0.5
    """Share of a sentence that is hidden."""
    at_start: float = 0.2
    """Share of the fragments that begin with the sentence."""
    at_end: float = 0.2
    """Share of the fragments that end with it; the others are anywhere."""
    length: Literal["sentence", "batch"] = "sentence"
    """A fragment's length is a share of its sentence, or of the batch's longest (MASS's code)."""
    mask_share: float = 0.8
    """Share of the hidden tokens shown as the mask token."""
    random_share: float = 0.1
    """Share of the hidden tokens shown as a random token; the rest stay as they are."""

    def __post_init__(self) -> None:
        require(0 < self.share <= 1, "mass.share must be above 0 and at most 1")
        shares = (self.at_start, self.at_end)
        require(min(shares) >= 0, "mass.at_start and mass.at_end must not be negative")
        require(sum(shares) <= 1, "mass.at_start and mass.at_end must add up to at most 1")

    @override
    def lengths(self, sizes: IntArray) -> IntArray:
        # the decoder has the fragment, of the longest sentence at most, and its language
        hidden = sizes + 1 if self.length == "batch" else self._hidden(sizes + 1)
        return np.concatenate([sizes + NUM_EDGES, hidden + 1], axis=1).astype(np.int32)

    @override
    def max_targets(self, sizes: IntArray) -> IntArray:
        return np.asarray(self.lengths(sizes)[:, 1] - 1, np.int32)

    @override
    def build(
        self, example: Example, vocabulary: Vocabulary, rng: np.random.Generator
    ) -> tuple[Sequence, ...]:
        return self.build_beside(example, vocabulary, rng, len(_text(example).ids) + NUM_EDGES)

    @override
    def build_beside(
        self, example: Example, vocabulary: Vocabulary, rng: np.random.Generator, longest: int
    ) -> tuple[Sequence, ...]:
        text = _text(example)
        whole = source(text.ids, text.language, vocabulary)
        tokens = len(whole) - 1  # all but the language
        of = tokens if self.length == "sentence" else longest  # MASS's code counts the first too
        hidden = min(int(self._hidden(np.array(of))), tokens)
        start = 1 + self._start(tokens - hidden, rng)
        stop = start + hidden
        masking = Masking(mask_share=self.mask_share, random_share=self.random_share)
        shown, targets = masking.hide(whole.ids, [np.arange(start, stop)], vocabulary, rng)
        unseen = np.flatnonzero(shown == vocabulary.mask).astype(np.int64)
        read = replace(whole, ids=shown, targets=targets, sites={UNSEEN: unseen})
        return read, fragment(whole, start, stop, whole.ids)

    @override
    def module(self, encoder: Encoder, corpus: Corpus) -> ObjectiveModule:
        return DecodedPrediction(self.smoothing)

    def _hidden(self, tokens: IntArray) -> IntArray:
        """How many of so many tokens are hidden."""
        return np.asarray(np.maximum(np.rint(self.share * tokens), 1), np.int32)

    def _start(self, room: int, rng: np.random.Generator) -> int:
        """Where a fragment begins that could begin at 0 .. room."""
        where = rng.random()
        if where < self.at_start:
            return 0
        if where < self.at_start + self.at_end:
            return room
        return int(rng.integers(room + 1))


def _text(example: Example) -> Text:
    assert isinstance(example, Text)
    return example
