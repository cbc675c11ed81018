"""Translation language modelling: hide tokens of both sides of a translation, read across.

Reads a pair of the parallel stream as one sequence and predicts hidden tokens of either side; what
one side hides, the other may show. XLM (Conneau and Lample, 2019) section 3.3. Positions restart at
the second sentence as in XLM, or run on as in PPA section 2.1; language ids can be left out.

    separator: both     [CLS] a b [SEP] [CLS] x y [SEP]    XLM: each keeps its two delimiters
    separator: double   [CLS] a b [SEP] [SEP] x y [SEP]    XLM-R's pair format
    separator: single   [CLS] a b [SEP] x y [SEP]          PPA, InfoXLM
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from typing_extensions import override

from isoglot.objectives.base import Objective, ObjectiveModule, Prediction
from isoglot.objectives.masking import Masking
from isoglot.objectives.whole import masked
from isoglot.types import IGNORE, IntArray, Pair, Sequence

if TYPE_CHECKING:
    from typing import Self

    from isoglot.corpus import Corpus, Progress
    from isoglot.models.encoder import Encoder
    from isoglot.types import Example, Vocabulary

NO_LANGUAGE = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class TLM(Objective):
    """Settings of translation language modelling."""

    name: ClassVar[str] = "tlm"
    line: ClassVar[str] = "predict hidden tokens of a translation pair from both of its sides"
    reads: ClassVar[tuple[str, ...]] = ("parallel",)
    paper: ClassVar[str] = "XLM 3.3; PPA 2.1"

    masking: Masking = field(default_factory=Masking)
    """What is hidden, and how."""
    positions: Literal["reset", "continuous"] = "reset"
    """Positions restart at the second sentence (XLM) or run on (PPA, InfoXLM)."""
    separator: Literal["single", "double", "both"] = "double"
    """What stands between the sentences; see the drawing above."""
    language_ids: bool = True
    """Tell the model which language each token has, if it has language embeddings."""

    @override
    def prepared(self, corpus: Corpus, progress: Progress | None = None) -> Self:
        return replace(self, masking=self.masking.prepared(corpus, progress))

    @override
    def lengths(self, sizes: IntArray) -> IntArray:
        return np.asarray(sizes.sum(axis=1, keepdims=True) + self._num_special, np.int32)

    @override
    def max_targets(self, sizes: IntArray) -> IntArray:
        return self.masking.budget(sizes.sum(axis=1))

    @property
    def _num_special(self) -> int:
        return 3 if self.separator == "single" else 4

    @override
    def build(
        self, example: Example, vocabulary: Vocabulary, rng: np.random.Generator
    ) -> tuple[Sequence, ...]:
        assert isinstance(example, Pair)
        between = {"single": [], "double": [vocabulary.sep], "both": [vocabulary.cls]}
        first = np.concatenate([[vocabulary.cls], example.first, [vocabulary.sep]])
        second = np.concatenate([between[self.separator], example.second, [vocabulary.sep]])
        ids = np.concatenate([first, second]).astype(np.int32)
        positions = np.arange(len(ids), dtype=np.int32)
        if self.positions == "reset":
            positions[len(first) :] -= len(first)
        languages = np.repeat(
            [example.first_language, example.second_language], [len(first), len(second)]
        )
        sequence = Sequence(
            ids=ids,
            positions=positions,
            languages=np.where(self.language_ids, languages, NO_LANGUAGE).astype(np.int32),
            sentences=np.repeat([0, 1], [len(first), len(second)]).astype(np.int32),
            parts=np.zeros(len(ids), np.int32),
            targets=np.full(len(ids), IGNORE, np.int32),
        )
        return (masked(sequence, self.masking, vocabulary, rng),)

    @override
    def module(self, encoder: Encoder, corpus: Corpus) -> ObjectiveModule:
        return Prediction()
