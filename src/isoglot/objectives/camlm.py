"""Cross-attention masked language modeling: tokens of a sentence from its translation alone.

Reads a pair of the parallel stream; predicts 15 % of the tokens of either side, each from the other
side and from the slots of its own side, never from its own sentence. ERNIE-M (Ouyang et al., 2021)
section 3.1. A pair is two sequences, each a whole sentence followed by slots of the other:

    [CLS] x1 x2 x3 [SEP] M5 M6      p(y5 | x1 x2 x3, M5, M6)     the target part of the loss
    [CLS] y4 y5 y6 y7 [SEP] M2      p(x2 | y4 y5 y6 y7, M2)      the source part
    rule: translate. A sentence attends to itself, a slot to the sentence and the other slots.

A slot is an extra [MASK] token after a sentence that predicts a token of another language from the
sentence; its position and language say which. BTMLM has slots, too. Slots are always [MASK] (a kept
or random token would show one slot the target of another), and both conditionals are exact in one
pass over 1.15 n tokens, where two masked copies of the pair need 2 n.

Where we differ: the paper draws [MASK]s inside the sentences; its example conditions on the whole
other sentence (`slots: extra`, the default), its formula on the unmasked tokens of the other side
(`slots: inline`, which removes the masked tokens). Its figure does not show where positions begin:
here the sentence begins at 0 in both sequences, and slots continue after it (`positions:
continuous`) or begin at 0 as well (`reset`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from typing_extensions import override

from isoglot.errors import RecipeError
from isoglot.objectives.base import (
    ForwardResult,
    LossSum,
    Objective,
    ObjectiveModule,
    TokenPrediction,
)
from isoglot.objectives.masking import build_sequence, rounded_share
from isoglot.ranges import Range
from isoglot.types import IntArray, LongArray, MaskRule, Pair, Sequence

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isoglot.corpus import Corpus
    from isoglot.models.encoder import Encoder
    from isoglot.types import Example, Rng, Vocabulary

NUM_SPECIAL = 2
"""Special tokens of a sentence: [CLS] and [SEP]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotObjective(Objective):
    """The settings of objectives with slots."""

    positions: Literal["continuous", "reset"] = "continuous"
    """Positions of slots: of a text that continues after the sentence, or from 0."""

    @override
    def check_together(self, objectives: Mapping[str, Objective]) -> None:
        check_slot_positions(objectives)

    def slot_positions(self, places: IntArray, num_tokens: int) -> IntArray:
        """The positions of slots for the n-th tokens of a text, after `num_tokens` tokens."""
        first = num_tokens + NUM_SPECIAL if self.positions == "continuous" else 0
        return np.asarray(first + 1 + places, np.int32)


@dataclass(frozen=True, slots=True, kw_only=True)
class CAMLM(SlotObjective):
    """Settings of cross-attention masked language modeling."""

    name: ClassVar[str] = "camlm"
    summary: ClassVar[str] = "predict tokens of a sentence from its translation alone"
    reads: ClassVar[tuple[str, ...]] = ("parallel",)
    paper: ClassVar[str] = "ERNIE-M 3.1"

    rate: Annotated[float, Range(0, 1, above=True)] = 0.15
    """Share of the tokens of each side to predict."""
    slots: Literal["extra", "inline"] = "extra"
    """`extra` keeps all tokens of the sentence that is read; `inline` removes its masked ones."""

    @override
    def lengths(self, sizes: IntArray) -> IntArray:
        masked = rounded_share(self.rate, sizes)
        read = sizes + NUM_SPECIAL - (masked if self.slots == "inline" else 0)
        return np.asarray(read + masked[:, ::-1], np.int32)

    @override
    def num_positions(self, sizes: IntArray) -> IntArray:
        """Slots have the positions of their tokens: those of both sentences in full."""
        if self.positions == "continuous":
            return np.asarray(sizes.sum(axis=1) + NUM_SPECIAL + 1, np.int32)
        return np.asarray(sizes.max(axis=1) + NUM_SPECIAL, np.int32)

    @override
    def max_targets(self, sizes: IntArray) -> IntArray:
        return np.asarray(rounded_share(self.rate, sizes).sum(axis=1), np.int32)

    @override
    def build(self, example: Example, vocabulary: Vocabulary, rng: Rng) -> tuple[Sequence, ...]:
        assert isinstance(example, Pair)
        sides = (example.first, example.second)
        languages = (example.first_language, example.second_language)
        chosen = [_choose_positions(ids, self.rate, vocabulary, rng) for ids in sides]
        predicted_places, removed = zip(*chosen, strict=True)
        return tuple(
            self.read_translation(
                sides[read],
                predicted_places[predicted],
                sides[predicted][predicted_places[predicted]],
                languages=(languages[read], languages[predicted]),
                sentences=(read, predicted),
                vocabulary=vocabulary,
                removed=removed[read] if self.slots == "inline" else None,
            )
            for read, predicted in ((0, 1), (1, 0))
        )

    def read_translation(
        self,
        ids: IntArray,
        places: LongArray,
        targets: IntArray,
        *,
        languages: tuple[int, int],
        sentences: tuple[int, int],
        vocabulary: Vocabulary,
        removed: LongArray | None = None,
    ) -> Sequence:
        """A sentence, and slots for tokens of its translation.

        Args:
            ids: tokens of the sentence that is read.
            places: the predicted tokens' places in the translation, from 0.
            targets: the predicted tokens.
            languages: of the sentence and of the translation.
            sentences: number of the sentence and of the translation in their pair.
            vocabulary: the tokenizer's.
            removed: places of tokens of the sentence that are left out; none: it is read in full.
        """
        sentence = np.full(len(ids), sentences[0], np.int32)
        sequence = build_sequence(ids, languages[0], vocabulary, sentence)
        if removed is not None:
            sequence = _without(sequence, 1 + removed)
        return append_slots(
            sequence,
            positions=self.slot_positions(places.astype(np.int32), len(ids)),
            targets=targets,
            language=languages[1],
            sentence=sentences[1],
            rule=MaskRule.TRANSLATE,
            vocabulary=vocabulary,
        )

    @override
    def build_module(self, encoder: Encoder, corpus: Corpus) -> ObjectiveModule:
        return CAMLMModule()


class CAMLMModule(TokenPrediction):
    """The sum of the source and the target part of the loss, and the mean of each part."""

    @override
    def loss(self, result: ForwardResult) -> LossSum:
        found = TokenPrediction.loss(self, result)
        batch = result.batch
        start, stop = batch.target_slices[result.name]
        sides = batch.rows.sentences.flatten()[batch.target_positions[start:stop]]
        for number, part in enumerate(("source", "target")):
            mine = sides == number
            found.ratios[f"{part}_loss"] = ((result.target_losses * mine).sum(), mine.sum())
        return found


def append_slots(
    sequence: Sequence,
    *,
    positions: IntArray,
    targets: IntArray,
    language: int,
    sentence: int,
    rule: MaskRule,
    vocabulary: Vocabulary,
) -> Sequence:
    """A sequence with slots after it, one for each of the positions and targets."""
    number = len(positions)

    def extended(values: IntArray, more: IntArray | int) -> IntArray:
        return np.concatenate([values, np.broadcast_to(np.int32(more), number)])

    return replace(
        sequence,
        ids=extended(sequence.ids, vocabulary.mask),
        positions=extended(sequence.positions, positions),
        languages=extended(sequence.languages, language),
        sentences=extended(sequence.sentences, sentence),
        roles=extended(sequence.roles, 1),
        targets=extended(sequence.targets, targets),
        rule=rule,
        markers={**sequence.markers, "slots": len(sequence) + np.arange(number)},
    )


def check_slot_positions(objectives: Mapping[str, Objective]) -> None:
    """BTMLM generates with what CAMLM has learned: their slots must have the same positions."""
    found = {
        name: objective.positions
        for name, objective in objectives.items()
        if isinstance(objective, SlotObjective)
    }
    if len(set(found.values())) > 1:
        said = ", ".join(f"{name}: {positions}" for name, positions in found.items())
        raise RecipeError(
            f"the objectives with slots have different positions ({said}); what one learns the "
            "other could not use. Give them the same."
        )


def _choose_positions(
    ids: IntArray, rate: float, vocabulary: Vocabulary, rng: Rng
) -> tuple[LongArray, LongArray]:
    """The places of tokens in a text, ascending: those that are predicted, and those removed.

    As many are removed as follow from the length: special tokens, too, if there are too few others.
    """
    number = int(rounded_share(rate, np.array(len(ids))))
    special = vocabulary.is_special[ids]
    order = rng.permutation(len(ids))
    order = order[np.argsort(special[order], kind="stable")][:number]
    return np.sort(order[~special[order]]), np.sort(order)


def _without(sequence: Sequence, places: LongArray) -> Sequence:
    """A sequence without the tokens at these places; the others keep their positions."""
    names = ("ids", "positions", "languages", "sentences", "roles", "targets")
    left: Any = {name: np.delete(getattr(sequence, name), places) for name in names}
    return replace(sequence, **left)
