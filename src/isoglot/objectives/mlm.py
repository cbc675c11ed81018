"""Masked language modeling: mask 15 % of a text's tokens and predict them from the rest.

Reads a draw of the text stream, or each side of a pair on its own (PPA's ablation that replaces TLM
by MLM), or an entity's description (XLM-K's ablation without its tasks), and predicts the masked
tokens. BERT (Devlin et al., 2019), multilingual as in XLM section 3.3. Where we differ: the number
of masked tokens is exactly 15 % of the length, not 15 % in expectation.

    [CLS] a [MASK] c d [SEP]      rule: full

In an encoder-decoder, whose languages are tokens, `start_with: language` tells MLM the language:

    <en>  a [MASK] c d [SEP]
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Literal

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
    """Settings of masked language modeling."""

    name: ClassVar[str] = "mlm"
    summary: ClassVar[str] = "predict masked tokens of a text from the rest of it"
    reads: ClassVar[tuple[str, ...]] = ("text", "parallel", "descriptions")
    paper: ClassVar[str] = "BERT; XLM 3.3"

    masking: Masking = field(default_factory=Masking)
    """Which tokens are masked, and how."""
    start_with: Literal["cls", "language"] = "cls"
    """A text's first token: [CLS], or its language's token, which models with a decoder have."""

    @override
    def prepare(self, corpus: Corpus, progress: Progress | None = None) -> Self:
        return replace(self, masking=self.masking.prepare(corpus, progress))

    @override
    def with_masking_rate(self, rate: float) -> Self:
        return replace(self, masking=replace(self.masking, rate=rate))

    @property
    @override
    def uses_language_tokens(self) -> bool:  # type: ignore[override]
        return self.start_with == "language"

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
        return tuple(
            self.name_languages(apply_mask(one, self.masking, vocabulary, rng), vocabulary)
            for one in sequences
        )

    def name_languages(self, sequence: Sequence, vocabulary: Vocabulary) -> Sequence:
        """The sequence with language tokens in the place of [CLS], where the settings ask."""
        if self.start_with == "cls":
            return sequence
        tokens = vocabulary.language_token(0) + sequence.languages
        named = np.where(sequence.ids == vocabulary.cls, tokens, sequence.ids)
        return replace(sequence, ids=named.astype(np.int32))
