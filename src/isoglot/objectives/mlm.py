"""Masked language modelling: mask 15 % of a text's tokens and predict them from the rest.

Reads a draw of the text stream, or each side of a pair on its own (PPA's ablation that replaces TLM
by MLM), or an entity's description (XLM-K's ablation without its tasks), and predicts the masked
tokens. BERT (Devlin et al., 2019), multilingual as in XLM section 3.3. Where we differ: the number
of masked tokens is exactly 15 % of the length, not 15 % in expectation.

    [CLS] a [MASK] c d [SEP]      rule: full
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from typing_extensions import override

from isoglot.objectives.base import Objective
from isoglot.objectives.masking import Masking, apply_mask, build_sequence
from isoglot.types import IntArray, Pair, Sequence, Text

if TYPE_CHECKING:
    from typing import Self

    from isoglot.corpus import Corpus
    from isoglot.corpus.engine.runner import Progress
    from isoglot.types import Example, Rng, Vocabulary


@dataclass(frozen=True, slots=True, kw_only=True)
class MLM(Objective):
    """Settings of masked language modelling."""

    name: ClassVar[str] = "mlm"
    summary: ClassVar[str] = "predict masked tokens of a text from the rest of it"
    reads: ClassVar[tuple[str, ...]] = ("text", "parallel", "descriptions")
    paper: ClassVar[str] = "BERT; XLM 3.3"

    masking: Masking = field(default_factory=Masking)
    """Which tokens are masked, and how."""

    @override
    def prepare(self, corpus: Corpus, progress: Progress | None = None) -> Self:
        return replace(self, masking=self.masking.prepare(corpus, progress))

    @override
    def lengths(self, sizes: IntArray) -> IntArray:
        return sizes + 2

    @override
    def max_targets(self, sizes: IntArray) -> IntArray:
        return np.asarray(self.masking.num_masked(sizes).sum(axis=1), np.int32)

    @override
    def build(self, example: Example, vocabulary: Vocabulary, rng: Rng) -> tuple[Sequence, ...]:
        if isinstance(example, Pair):
            sequences = [
                build_sequence(example.first, example.first_language, vocabulary),
                build_sequence(example.second, example.second_language, vocabulary),
            ]
        else:
            assert isinstance(example, Text)
            text = build_sequence(example.ids, example.language, vocabulary, example.sentences)
            sequences = [text]
        return tuple(apply_mask(one, self.masking, vocabulary, rng) for one in sequences)
