"""A text as one sequence, `[CLS] a b c [SEP]`: whole, or with some of its tokens hidden."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from isoglot.types import IGNORE, IntArray, Sequence

if TYPE_CHECKING:
    from isoglot.objectives.masking import Masking
    from isoglot.types import Vocabulary


def whole(ids: IntArray, language: int, sentences: IntArray, vocabulary: Vocabulary) -> Sequence:
    """A text between its special tokens; nothing is predicted."""
    ids = np.concatenate([[vocabulary.cls], ids, [vocabulary.sep]]).astype(np.int32)
    return Sequence(
        ids=ids,
        positions=np.arange(len(ids), dtype=np.int32),
        languages=np.full(len(ids), language, np.int32),
        sentences=np.concatenate([sentences[:1], sentences, sentences[-1:]]),
        parts=np.zeros(len(ids), np.int32),
        targets=np.full(len(ids), IGNORE, np.int32),
    )


def masked(
    sequence: Sequence, masking: Masking, vocabulary: Vocabulary, rng: np.random.Generator
) -> Sequence:
    """The same sequence with tokens hidden that must be predicted."""
    units = masking.choose(sequence.ids, vocabulary, rng)
    shown, targets = masking.hide(sequence.ids, units, vocabulary, rng)
    return replace(sequence, ids=shown, targets=targets)
