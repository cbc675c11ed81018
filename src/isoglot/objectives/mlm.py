"""Masked language modelling: hide 15 % of a text's tokens and predict them from the rest.

Reads a draw of the text stream (or each side of a pair on its own: PPA's ablation that replaces TLM
by MLM; or an entity's description: XLM-K's ablation without its tasks) and predicts the hidden
tokens. BERT (Devlin et al., 2019), multilingual as in XLM section 3.3. Where we differ: the number
of hidden tokens is exactly 15 % of the length, not 15 % in expectation.

    [CLS] a [MASK] c d [SEP]      rule: full
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from typing_extensions import override

from isoglot.objectives.base import Objective, ObjectiveModule, Prediction
from isoglot.objectives.masking import Masking
from isoglot.objectives.whole import masked, whole
from isoglot.types import IntArray, Pair, Sequence, Text

if TYPE_CHECKING:
    from typing import Self

    from isoglot.corpus import Corpus, Progress
    from isoglot.models.encoder import Encoder
    from isoglot.types import Example, Vocabulary


@dataclass(frozen=True, slots=True, kw_only=True)
class MLM(Objective):
    """Settings of masked language modelling."""

    name: ClassVar[str] = "mlm"
    line: ClassVar[str] = "predict hidden tokens of a text from the rest of it"
    reads: ClassVar[tuple[str, ...]] = ("text", "parallel", "descriptions")
    paper: ClassVar[str] = "BERT; XLM 3.3"

    masking: Masking = field(default_factory=Masking)
    """What is hidden, and how."""

    @override
    def prepared(self, corpus: Corpus, progress: Progress | None = None) -> Self:
        return replace(self, masking=self.masking.prepared(corpus, progress))

    @override
    def lengths(self, sizes: IntArray) -> IntArray:
        return sizes + 2

    @override
    def max_targets(self, sizes: IntArray) -> IntArray:
        return np.asarray(self.masking.budget(sizes).sum(axis=1), np.int32)

    @override
    def build(
        self, example: Example, vocabulary: Vocabulary, rng: np.random.Generator
    ) -> tuple[Sequence, ...]:
        if isinstance(example, Pair):
            sides = (
                (example.first, example.first_language),
                (example.second, example.second_language),
            )
            return tuple(
                masked(
                    whole(ids, language, np.zeros(len(ids), np.int32), vocabulary),
                    self.masking,
                    vocabulary,
                    rng,
                )
                for ids, language in sides
            )
        assert isinstance(example, Text)
        sequence = whole(example.ids, example.language, example.sentences, vocabulary)
        return (masked(sequence, self.masking, vocabulary, rng),)

    @override
    def module(self, encoder: Encoder, corpus: Corpus) -> ObjectiveModule:
        return Prediction()
