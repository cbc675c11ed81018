"""Pair counts on the training device: a sorted search of all pairs of a batch at once.

Reads a `PairTable`, whose arrays become buffers that move with the model and stay out of its
checkpoints; gives the count of each pair asked for, 0 for one that was never seen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from typing_extensions import override

if TYPE_CHECKING:
    from isoglot.corpus.cooccurrence import PairTable


class PairLookup(nn.Module):
    """Call it with two tensors of token ids, get what each pair counts."""

    keys: Tensor
    counts: Tensor

    def __init__(self, table: PairTable) -> None:
        super().__init__()
        self.size = table.size
        # on a CPU these stay maps of the file; they are of the corpus, not of the run
        self.register_buffer("keys", torch.from_numpy(table.keys), persistent=False)
        self.register_buffer("counts", torch.from_numpy(table.counts), persistent=False)

    @override
    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        """Counts of the pairs (first, second), of the shape that both broadcast to."""
        asked = torch.minimum(first, second) * self.size + torch.maximum(first, second)
        if not len(self.keys):
            return torch.zeros_like(asked, dtype=self.counts.dtype)
        places = torch.searchsorted(self.keys, asked).clamp(max=len(self.keys) - 1)
        return torch.where(self.keys[places] == asked, self.counts[places], 0.0)
