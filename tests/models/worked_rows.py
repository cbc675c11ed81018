"""Rows that meet every case: all rules, several sequences a row, padding, more than a window."""

from __future__ import annotations

import numpy as np

from isoglot.types import Rows, Rule
from tests.models.tiny import Tokens, pack, random_tokens

PLAN = (
    ((Rule.FULL, 60), (Rule.TRANSLATE, 40), (Rule.GENERATE, 30)),
    ((Rule.GENERATE, 33), (Rule.FULL, 50), (Rule.FULL, 61)),
)
LENGTH = 144


def mixed_rows(seed: int = 0) -> tuple[list[list[Tokens]], Rows]:
    """The sequences, and the two rows of 144 tokens that they are packed into."""
    rng = np.random.default_rng(seed)
    sequences = [[random_tokens(rng, rule, length) for rule, length in row] for row in PLAN]
    return sequences, pack(sequences, LENGTH)
