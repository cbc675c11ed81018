"""Sequences of token ids, one after the other in one array, as padded rows of similar lengths.

    ids --IdArrays.of--> flat array and lengths --batches_by_length--> indices --padded_rows--> Rows

A batch whose sequences all have one length has no padding and needs no attention mask. Sorting by
length makes such batches where many sequences have the same length.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import torch

from isoglot.types import LongArray, MaskRule, Rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_CPU_TOKENS_PER_THREAD = 512
"""With 4,096 BERT base takes twice the time for a token: states leave the processor's cache."""
_MIN_SHARE_OF_ONE_LENGTH = 0.25
"""Share of a batch's tokens from which on sequences of one length are a batch by themselves."""


@dataclass(frozen=True, slots=True)
class IdArrays:
    """Token ids of many sequences, one sequence after the other."""

    ids: LongArray
    lengths: LongArray
    """Tokens of each sequence."""
    starts: LongArray
    """Place in `ids` of each sequence's first token."""

    @classmethod
    def of(cls, sequences: Sequence[Sequence[int]]) -> IdArrays:
        """The sequences of a list."""
        lengths = np.fromiter(map(len, sequences), np.int64, len(sequences))
        ids = np.fromiter(chain.from_iterable(sequences), np.int64, int(lengths.sum()))
        return cls(ids, lengths, np.cumsum(lengths) - lengths)

    def tokens_of(self, chosen: LongArray) -> LongArray:
        """Places in `ids` of the tokens of some sequences, in their order."""
        lengths = self.lengths[chosen]
        before = np.cumsum(lengths) - lengths
        return np.repeat(self.starts[chosen] - before, lengths) + np.arange(lengths.sum())


def cpu_batch_tokens() -> int:
    """Tokens of a batch with which a CPU is fastest."""
    return _CPU_TOKENS_PER_THREAD * torch.get_num_threads()


def batches_by_length(lengths: LongArray, max_tokens: int) -> Iterator[LongArray]:
    """Indices of the sequences of each batch, shortest first; at most `max_tokens` with padding.

    Sequences of one length are a batch of their own where they have a quarter of `max_tokens`.
    """
    order = np.argsort(lengths, kind="stable")
    in_order = lengths[order]
    start = 0
    while start < len(order):
        # no batch has more sequences than tokens
        ahead = in_order[start : start + max_tokens]
        tokens = ahead * np.arange(1, len(ahead) + 1)
        number = max(1, int(np.searchsorted(tokens, max_tokens, side="right")))
        same = int(np.searchsorted(ahead[:number], ahead[0], side="right"))
        if same * ahead[0] >= _MIN_SHARE_OF_ONE_LENGTH * max_tokens:
            number = same
        yield order[start : start + number]
        start += number


def padded_rows(
    ids: LongArray, lengths: LongArray, pad: int, languages: LongArray | None = None
) -> Rows:
    """One sequence in each row, padded to the longest.

    Args:
        ids: tokens of the sequences, one sequence after the other.
        lengths: tokens of each sequence.
        pad: id of the padding.
        languages: row of each token's language embedding; none: tokens have none.
    """
    longest, is_full = int(lengths.max()), bool((lengths == lengths[0]).all())
    shape = len(lengths), longest
    if is_full:
        real, row_ids = np.ones(shape, np.bool_), ids.reshape(shape)
    else:
        real = np.arange(longest) < lengths[:, None]
        row_ids = np.full(shape, pad, np.int64)
        row_ids[real] = ids
    row_languages = np.full(shape, -1, np.int64)
    if languages is not None:
        row_languages[real] = languages
    zeros = torch.zeros(shape, dtype=torch.int64)
    rows = Rows(
        ids=torch.from_numpy(row_ids),
        positions=torch.from_numpy(np.where(real, np.arange(longest), 0)),
        languages=torch.from_numpy(row_languages),
        sentences=zeros,
        roles=zeros,
        rules=zeros + int(MaskRule.FULL),
        sequences=torch.from_numpy(np.where(real, 0, -1)),
    )
    rows.unmasked = is_full
    return rows
