"""Cross-attention masked language modelling: tokens of a sentence from its translation alone.

Reads a pair of the parallel stream; predicts 15 % of the tokens of either side, each from the other
side and from the slots of its own side, never from its own sentence. ERNIE-M (Ouyang et al., 2021)
section 3.1. A pair is two sequences, each a whole sentence followed by slots of the other:

    [CLS] x1 x2 x3 [SEP] M5 M6      p(y5 | x1 x2 x3, M5, M6)     the target part of the loss
    [CLS] y4 y5 y6 y7 [SEP] M2      p(x2 | y4 y5 y6 y7, M2)      the source part
    rule: translate. A sentence sees itself, a slot sees the sentence and its fellow slots.

Slots are always [MASK] (a token that was kept or replaced at random would show one slot the
sentence of another), and both conditionals are exact in one pass over 1.15 n tokens where two
masked copies of the pair need 2 n.

Where we differ: the paper draws [MASK]s inside the sentences; its example conditions on the whole
other sentence (`slots: extra`, the default), its formula on what the other side does not hide
(`slots: inline`, which takes the hidden tokens out). Its figure does not say where positions begin:
here the sentence that is read begins at 0 in both sequences, and what is asked for follows it
(`positions: continuous`) or begins at 0 as well (`restarted`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from typing_extensions import override

from isoglot.errors import require
from isoglot.objectives.base import Encoded, LossSum, ObjectiveModule, Prediction
from isoglot.objectives.masking import share
from isoglot.objectives.slots import NUM_EDGES, Slotted, with_slots
from isoglot.objectives.whole import whole
from isoglot.types import IntArray, LongArray, Pair, Rule, Sequence

if TYPE_CHECKING:
    from isoglot.corpus import Corpus
    from isoglot.models.encoder import Encoder
    from isoglot.types import Example, Vocabulary


@dataclass(frozen=True, slots=True, kw_only=True)
class CAMLM(Slotted):
    """Settings of cross-attention masked language modelling."""

    name: ClassVar[str] = "camlm"
    line: ClassVar[str] = "predict tokens of a sentence from its translation alone"
    reads: ClassVar[tuple[str, ...]] = ("parallel",)
    paper: ClassVar[str] = "ERNIE-M 3.1"

    rate: float = 0.15
    """Share of the tokens of each side to predict."""
    slots: Literal["extra", "inline"] = "extra"
    """`extra` keeps the sentence that is read whole; `inline` takes its own hidden tokens out."""

    def __post_init__(self) -> None:
        require(0 < self.rate <= 1, "camlm.rate must be above 0 and at most 1")

    @override
    def lengths(self, sizes: IntArray) -> IntArray:
        hidden = share(self.rate, sizes)
        read = sizes + NUM_EDGES - (hidden if self.slots == "inline" else 0)
        return np.asarray(read + hidden[:, ::-1], np.int32)

    @override
    def reach(self, sizes: IntArray) -> IntArray:
        """Slots stand where their tokens would: a pair reaches as far as when it is written out."""
        if self.positions == "continuous":
            return np.asarray(sizes.sum(axis=1) + NUM_EDGES + 1, np.int32)
        return np.asarray(sizes.max(axis=1) + NUM_EDGES, np.int32)

    @override
    def max_targets(self, sizes: IntArray) -> IntArray:
        return np.asarray(share(self.rate, sizes).sum(axis=1), np.int32)

    @override
    def build(
        self, example: Example, vocabulary: Vocabulary, rng: np.random.Generator
    ) -> tuple[Sequence, ...]:
        assert isinstance(example, Pair)
        sides = (example.first, example.second)
        languages = (example.first_language, example.second_language)
        hidden = [_choose(ids, self.rate, vocabulary, rng) for ids in sides]
        made = []
        for read, asked in ((0, 1), (1, 0)):
            ids = sides[read]
            sequence = whole(ids, languages[read], np.full(len(ids), read, np.int32), vocabulary)
            if self.slots == "inline":
                sequence = _without(sequence, 1 + hidden[read].taken_out)
            places = hidden[asked].asked
            made.append(
                with_slots(
                    sequence,
                    positions=self.slot_positions(places.astype(np.int32), len(ids)),
                    targets=sides[asked][places],
                    language=languages[asked],
                    sentence=asked,
                    rule=Rule.TRANSLATE,
                    vocabulary=vocabulary,
                )
            )
        return tuple(made)

    @override
    def module(self, encoder: Encoder, corpus: Corpus) -> ObjectiveModule:
        return BothParts()


class BothParts(Prediction):
    """The sum of the source and the target part of the loss, and each part's mean."""

    @override
    def loss(self, encoded: Encoded) -> LossSum:
        found = Prediction.loss(self, encoded)
        start, stop = encoded.batch.spans[encoded.name]
        asked = encoded.batch.rows.sentences.flatten()[encoded.batch.positions[start:stop]]
        for number, part in enumerate(("source", "target")):
            mine = asked == number
            found.ratios[f"{part} loss"] = ((encoded.losses * mine).sum(), mine.sum())
        return found


@dataclass(frozen=True, slots=True)
class _Hidden:
    """Tokens of one side, by their places in its text, ascending."""

    asked: LongArray
    """Those that the other side's slots ask for."""
    taken_out: LongArray
    """As many as the length alone tells: the same, and special tokens where others lack."""


def _choose(
    ids: IntArray, rate: float, vocabulary: Vocabulary, rng: np.random.Generator
) -> _Hidden:
    wanted = int(share(rate, np.array(len(ids))))
    special = vocabulary.is_special[ids]
    order = rng.permutation(len(ids))
    order = order[np.argsort(special[order], kind="stable")][:wanted]
    return _Hidden(asked=np.sort(order[~special[order]]), taken_out=np.sort(order))


def _without(sequence: Sequence, places: LongArray) -> Sequence:
    """A sequence without the tokens at these places; the others keep their positions."""
    return Sequence(
        ids=np.delete(sequence.ids, places),
        positions=np.delete(sequence.positions, places),
        languages=np.delete(sequence.languages, places),
        sentences=np.delete(sequence.sentences, places),
        parts=np.delete(sequence.parts, places),
        targets=np.delete(sequence.targets, places),
    )
