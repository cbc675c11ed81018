"""Slots: extra [MASK] tokens after a sentence that stand for tokens of another language.

What a slot predicts it must find in the sentence: it sees the sentence, and the sentence does not
see it (`Rule`). Its position and its language say what is asked for. CAMLM asks for tokens of a
sentence's translation, BTMLM for words that nobody has written.

    [CLS] x1 x2 x3 [SEP] | [MASK] [MASK]
    part 0: the sentence | part 1: slots
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from isoglot.errors import RecipeError
from isoglot.objectives.base import Objective

if TYPE_CHECKING:
    from isoglot.types import IntArray, Rule, Sequence, Vocabulary

NUM_EDGES = 2
"""Special tokens of a sentence: one before it, one after."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slotted(Objective):
    """The settings of objectives with slots."""

    positions: Literal["continuous", "restarted"] = "continuous"
    """A slot's position: in a text that follows the sentence, or in a text of its own."""

    def slot_positions(self, places: IntArray, num_tokens: int) -> IntArray:
        """The positions of slots for the n-th tokens of a text, after so many tokens."""
        first = num_tokens + NUM_EDGES if self.positions == "continuous" else 0
        return np.asarray(first + 1 + places, np.int32)


def with_slots(
    sequence: Sequence,
    *,
    positions: IntArray,
    targets: IntArray,
    language: int,
    sentence: int,
    rule: Rule,
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
        parts=extended(sequence.parts, 1),
        targets=extended(sequence.targets, targets),
        rule=rule,
        sites={**sequence.sites, "slots": len(sequence) + np.arange(number)},
    )


def check_positions(objectives: dict[str, Objective]) -> None:
    """Generation lives on what translation taught: slots must stand at the same positions."""
    found = {
        name: objective.positions
        for name, objective in objectives.items()
        if isinstance(objective, Slotted)
    }
    if len(set(found.values())) > 1:
        said = ", ".join(f"{name}: {positions}" for name, positions in found.items())
        raise RecipeError(
            f"the objectives with slots have different positions ({said}); what one learns the "
            "other could not use. Give them the same."
        )
