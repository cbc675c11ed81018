"""Which candidates a query meets, and which of them it must not be told apart from.

A candidate that is the same item as the query, or as its key, is no negative: it says the same
thing. A translation carries two numbers, its own sentence's and its partner's, so that in texts
translated into many languages (one English sentence, ten translations) none of the ten is held
against the other nine.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from isoglot.objectives.contrast.info_nce import same_item


@dataclass(slots=True, kw_only=True)
class Negatives:
    """Candidates for n queries."""

    vectors: Tensor
    """(m, D)"""
    items: Tensor
    """(m, S) what each candidate is; the first number is its own, others are its partners'."""
    left_out: Tensor
    """(n, m) true where a query must not meet a candidate, whatever it is."""

    def joined(self, more: Negatives) -> Negatives:
        """These and more."""
        return Negatives(
            vectors=torch.cat([self.vectors, more.vectors]),
            items=torch.cat([self.items, more.items]),
            left_out=torch.cat([self.left_out, more.left_out], dim=1),
        )

    def without_same(self, items: Tensor) -> Negatives:
        """The same, where no query (n, S) meets its own item."""
        same = same_item(items, self.items)
        return Negatives(vectors=self.vectors, items=self.items, left_out=self.left_out | same)


def in_batch(vectors: Tensor, items: Tensor, *, once: bool) -> Negatives:
    """The keys of a micro-batch as candidates for its queries, each but its own.

    With `once`, a key that occurs several times is met once, and by no query that is the same as
    any of its occurrences: which of them stands for all changes nothing.
    """
    number = len(vectors)
    left_out = torch.eye(number, dtype=torch.bool, device=vectors.device)
    if once:
        own = items[:, :1]
        same_key = same_item(own, own)
        doubles = same_key.tril(diagonal=-1).any(dim=1)
        # counted, as there is no product of truths: occurrences that the query is the same as
        same = same_item(items, items).float() @ same_key.float() > 0
        left_out = left_out | same | doubles[None, :]
    return Negatives(vectors=vectors, items=items, left_out=left_out)
