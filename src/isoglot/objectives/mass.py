"""Masked sequence to sequence: the decoder predicts a fragment that is masked for the encoder.

Reads a draw of the text stream (one sentence each: `unit: sentence`). MASS (Song et al., 2019), as
MLM-GC (Ai and Fang, 2023) A.1 uses it. One fragment of half the sentence is masked, at the start of
a fifth of the sentences, at the end of another, anywhere in the others; of its tokens 80 % become
[MASK], 10 % a random token, 10 % stay. For a sentence x1 .. x6 and the fragment x3 x4 x5:

    encoder            <en> x1 x2 [M] [M] [M] x6 </s>
    decoder input      <en>    x2  x3  x4               each at its own position
    decoder targets             x3  x4  x5

The decoder does not attend to encoder positions that are [MASK]. The end token may be masked too,
so that the decoder learns to stop; the language token never is. Where we differ: the language is
the decoder's first token wherever the fragment is, in place of an embedding on every token.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
from typing_extensions import override

from isoglot.errors import require
from isoglot.objectives.masking import Masking, check_replace_probs, rounded_share
from isoglot.objectives.seq2seq import NUM_SPECIAL, Seq2SeqObjective, build_fragment, build_source
from isoglot.ranges import Probability, Range
from isoglot.types import IntArray, Sequence, Text

if TYPE_CHECKING:
    from isoglot.types import Example, Rng, Vocabulary

UNSEEN = "unseen"
"""The marker of encoder positions that the decoder does not attend to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MASS(Seq2SeqObjective):
    """Settings of masked sequence to sequence."""

    name: ClassVar[str] = "mass"
    summary: ClassVar[str] = "generate the masked half of a sentence from the rest of it"
    reads: ClassVar[tuple[str, ...]] = ("text",)
    paper: ClassVar[str] = "MASS; MLM-GC A.1"

    rate: Annotated[float, Range(0, 1, above=True)] = 0.5
    """Share of a sentence that is masked."""
    at_start: Probability = 0.2
    """Share of the fragments that begin with the sentence."""
    at_end: Probability = 0.2
    """Share of the fragments that end with the sentence; the others are anywhere."""
    length: Literal["sentence", "batch"] = "sentence"
    """A fragment's length is a share of its sentence, or of the batch's longest (MASS's code)."""
    mask_replace_prob: Probability = 0.8
    """Probability that a token of the fragment is replaced by the mask token."""
    random_replace_prob: Probability = 0.1
    """Probability that it is replaced by a random token; the rest stay."""

    @override
    def __post_init__(self) -> None:
        Seq2SeqObjective.__post_init__(self)
        shares = (self.at_start, self.at_end)
        require(sum(shares) <= 1, "mass.at_start and mass.at_end must add up to at most 1")
        check_replace_probs(self.name, self.mask_replace_prob, self.random_replace_prob)

    @override
    def lengths(self, sizes: IntArray) -> IntArray:
        # the decoder reads the fragment, at most the longest sentence, and its language
        masked = sizes + 1 if self.length == "batch" else rounded_share(self.rate, sizes + 1)
        return np.concatenate([sizes + NUM_SPECIAL, masked + 1], axis=1).astype(np.int32)

    @override
    def max_targets(self, sizes: IntArray) -> IntArray:
        return np.asarray(self.lengths(sizes)[:, 1] - 1, np.int32)

    @override
    def build(self, example: Example, vocabulary: Vocabulary, rng: Rng) -> tuple[Sequence, ...]:
        assert isinstance(example, Text)
        return self.build_padded(example, vocabulary, rng, len(example.ids) + NUM_SPECIAL)

    @override
    def build_padded(
        self, example: Example, vocabulary: Vocabulary, rng: Rng, max_length: int
    ) -> tuple[Sequence, ...]:
        assert isinstance(example, Text)
        source = build_source(example.ids, example.language, vocabulary)
        tokens = len(source) - 1  # all but the language
        # MASS's code counts the language, too
        length = tokens if self.length == "sentence" else max_length
        number = min(int(rounded_share(self.rate, np.array(length))), tokens)
        start = 1 + self._start(tokens - number, rng)
        stop = start + number
        masking = Masking(
            mask_replace_prob=self.mask_replace_prob, random_replace_prob=self.random_replace_prob
        )
        ids, targets = masking.replace_tokens(source.ids, [np.arange(start, stop)], vocabulary, rng)
        unseen = np.flatnonzero(ids == vocabulary.mask).astype(np.int64)
        masked = replace(source, ids=ids, targets=targets, markers={UNSEEN: unseen})
        return masked, build_fragment(source, start, stop, source.ids)

    def _start(self, room: int, rng: Rng) -> int:
        """Where a fragment begins: 0 .. room."""
        where = rng.random()
        if where < self.at_start:
            return 0
        if where < self.at_start + self.at_end:
            return room
        return int(rng.integers(room + 1))
