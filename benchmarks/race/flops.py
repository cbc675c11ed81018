"""Floating-point operations of a training step: each matrix product of the model counted once.

    6 x weights of the body x tokens                    forward and backward, without padding
    12 x layers x width x (length of a sequence)^2      attention
    6 x target positions x weights of the LM head       logits at target positions only
    a third of the first two for auxiliary rows, which are only encoded (momentum keys, BTMLM)

What is computed beyond that (padding, unused logits, recomputed passes) is not counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from transformers import XLMRobertaConfig

    from isoglot.types import Batch, Rows


@dataclass(frozen=True)
class StepCounts:
    """Tokens and targets of a step, on average."""

    tokens: float
    squared_lengths: float
    """Sum of squared sequence lengths."""
    targets: float
    aux_tokens: float = 0.0
    aux_squared_lengths: float = 0.0

    def flops(self, config: XLMRobertaConfig) -> float:
        layers, width = config.num_hidden_layers, config.hidden_size
        body = layers * (4 * width**2 + 2 * width * config.intermediate_size)
        head = width**2 + width * config.vocab_size
        attention = 12 * layers * width
        trained = 6 * body * self.tokens + attention * self.squared_lengths
        encoded = (6 * body * self.aux_tokens + attention * self.aux_squared_lengths) / 3
        return float(trained + encoded + 6 * head * self.targets)


def count_batches(steps: list[list[Batch]]) -> StepCounts:
    """Count the batches of some steps."""
    batches = [batch for step in steps for batch in step]
    main = np.array([_lengths(batch.rows) for batch in batches]).sum(axis=0)
    aux_rows = [_lengths(rows) for batch in batches for rows in batch.aux_rows.values()]
    aux = np.array(aux_rows or [(0, 0)]).sum(axis=0)
    targets = sum(float(batch.target_weights.sum()) for batch in batches)
    tokens, squares, aux_tokens, aux_squares = (float(x) / len(steps) for x in (*main, *aux))
    return StepCounts(tokens, squares, targets / len(steps), aux_tokens, aux_squares)


def count_lengths(lengths: list[int], mask_rate: float, steps: int) -> StepCounts:
    """Count sequences of these lengths, a share of whose tokens is masked."""
    tokens, squares = sum(lengths), sum(length**2 for length in lengths)
    return StepCounts(tokens / steps, squares / steps, mask_rate * tokens / steps)


def _lengths(rows: Rows) -> tuple[int, int]:
    """Tokens, and the sum of squared lengths of all sequences of some rows."""
    sequences = rows.sequences.numpy()
    lengths = [np.bincount(row[row >= 0]) for row in sequences if (row >= 0).any()]
    if not lengths:
        return 0, 0
    flat = np.concatenate(lengths)
    return int(flat.sum()), int((flat**2).sum())
