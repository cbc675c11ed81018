"""How much arithmetic a step asks for: products of the model, each counted once.

    6 x weights of the body x tokens            forward and backward, padding not counted
    12 x layers x width x (length of a sequence)^2    attention, as if nothing else were computed
    6 x sites x (weights of the head)           logits where something is predicted, only there
    a third of the first two for rows that are only encoded: momentum keys, BTMLM's writing

What an engine computes beyond that (padding, logits nobody reads, passes done twice) earns nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from transformers import XLMRobertaConfig

    from isoglot.types import Batch, Rows


@dataclass(frozen=True)
class Work:
    """Of a step, on average."""

    tokens: float
    squares: float
    """Sum over sequences of the square of their length."""
    sites: float
    side_tokens: float = 0.0
    side_squares: float = 0.0

    def operations(self, shape: XLMRobertaConfig) -> float:
        layers, width, inner = shape.num_hidden_layers, shape.hidden_size, shape.intermediate_size
        body = layers * (4 * width**2 + 2 * width * inner)
        head = width**2 + width * shape.vocab_size
        pairs = 12 * layers * width
        there_and_back = 6 * body * self.tokens + pairs * self.squares
        there = (6 * body * self.side_tokens + pairs * self.side_squares) / 3
        return float(there_and_back + there + 6 * head * self.sites)


def work_of(steps: list[list[Batch]]) -> Work:
    """Measured on the batches themselves."""
    batches = [batch for step in steps for batch in step]
    main = np.array([_sizes(batch.rows) for batch in batches]).sum(axis=0)
    sides = [_sizes(rows) for batch in batches for rows in batch.side.values()]
    side = np.array(sides or [(0, 0)]).sum(axis=0)
    sites = sum(float(batch.weights.sum()) for batch in batches)
    tokens, squares, side_tokens, side_squares = (float(x) / len(steps) for x in (*main, *side))
    return Work(tokens, squares, sites / len(steps), side_tokens, side_squares)


def of_lengths(lengths: list[int], rate: float, steps: int) -> Work:
    """Of sequences of these lengths, a share of whose tokens is predicted."""
    tokens, squares = sum(lengths), sum(length**2 for length in lengths)
    return Work(tokens / steps, squares / steps, rate * tokens / steps)


def _sizes(rows: Rows) -> tuple[int, int]:
    """Tokens, and the sum of squared lengths, of all sequences of some rows."""
    sequences = rows.sequences.numpy()
    lengths = [np.bincount(row[row >= 0]) for row in sequences if (row >= 0).any()]
    if not lengths:
        return 0, 0
    flat = np.concatenate(lengths)
    return int(flat.sum()), int((flat**2).sum())
