"""Translation language modeling: mask tokens of both sides of a translation pair.

Reads a pair of the parallel stream as one sequence and predicts masked tokens of either side from
both. XLM (Conneau and Lample, 2019) section 3.4. Positions restart at the second sentence as in
XLM (`positions: reset`), or run on as in PPA section 2.2 (`continuous`); language ids are optional.

    separator: both     [CLS] a b [SEP] [CLS] x y [SEP]    XLM: each keeps its two delimiters
    separator: double   [CLS] a b [SEP] [SEP] x y [SEP]    XLM-R's pair format
    separator: single   [CLS] a b [SEP] x y [SEP]          PPA, InfoXLM
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from typing_extensions import override

from isoglot.objectives.masking import apply_mask, new_sequence
from isoglot.objectives.mlm import MLM
from isoglot.types import IntArray, Pair, Sequence

if TYPE_CHECKING:
    from isoglot.types import Example, Rng, Vocabulary

NO_LANGUAGE = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class TLM(MLM):
    """Settings of translation language modeling."""

    name: ClassVar[str] = "tlm"
    summary: ClassVar[str] = "predict masked tokens of a translation pair from both of its sides"
    reads: ClassVar[tuple[str, ...]] = ("parallel",)
    paper: ClassVar[str] = "XLM 3.4; PPA 2.2"

    positions: Literal["reset", "continuous"] = "reset"
    """Positions restart at the second sentence (XLM) or run on (PPA, InfoXLM)."""
    separator: Literal["single", "double", "both"] = "double"
    """Between the sentences: [SEP] (single), [SEP] [SEP] (double) or [SEP] [CLS] (both)."""
    language_ids: bool = True
    """Give the model each token's language, if it has language embeddings."""

    @override
    def lengths(self, sizes: IntArray) -> IntArray:
        num_special = 3 if self.separator == "single" else 4
        return np.asarray(sizes.sum(axis=1, keepdims=True) + num_special, np.int32)

    @override
    def max_targets(self, sizes: IntArray) -> IntArray:
        return self.masking.num_masked(sizes.sum(axis=1))

    @override
    def build(self, example: Example, vocabulary: Vocabulary, rng: Rng) -> tuple[Sequence, ...]:
        assert isinstance(example, Pair)
        whole = self.join_pair(example, vocabulary)
        masked = apply_mask(whole, self.masking, vocabulary, rng)
        return (self.with_languages(masked, vocabulary),)

    def join_pair(self, example: Pair, vocabulary: Vocabulary) -> Sequence:
        """Both sentences as one sequence, before masking."""
        between = {"single": [], "double": [vocabulary.sep], "both": [vocabulary.cls]}
        first = np.concatenate([[vocabulary.cls], example.first, [vocabulary.sep]])
        second = np.concatenate([between[self.separator], example.second, [vocabulary.sep]])
        ids = np.concatenate([first, second])
        positions = np.arange(len(ids))
        if self.positions == "reset":
            positions[len(first) :] -= len(first)
        languages = np.repeat(
            [example.first_language, example.second_language], [len(first), len(second)]
        )
        return new_sequence(
            ids,
            languages.astype(np.int32),
            positions=positions,
            sentences=np.repeat([0, 1], [len(first), len(second)]).astype(np.int32),
        )

    def with_languages(self, sequence: Sequence, vocabulary: Vocabulary) -> Sequence:
        """The sequence with language tokens, or without language ids, as the settings say."""
        sequence = self.name_languages(sequence, vocabulary)
        if self.language_ids:
            return sequence
        return replace(sequence, languages=np.full(len(sequence), NO_LANGUAGE, np.int32))
