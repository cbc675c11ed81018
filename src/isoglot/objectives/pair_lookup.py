"""Pair counts on the training device: a sorted search of all pairs of a batch at once.

Reads a `PairTable`, whose arrays become buffers that move with the model and stay out of its
checkpoints; gives the log of the count of each pair asked for, and whether it was seen at all.

One sorted search over all keys it is: a batch asks for about 10,000 pairs, whose 26 probes into 50M
keys run side by side in one kernel. An index by the first id would shorten the search to 16 probes,
and take a dozen kernels to do it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from typing_extensions import override

if TYPE_CHECKING:
    from isoglot.corpus.cooccurrence import PairTable


class PairLookup(nn.Module):
    """Call it with two tensors of token ids, get the log of what each pair counts."""

    keys: Tensor
    logs: Tensor

    def __init__(self, table: PairTable) -> None:
        super().__init__()
        self.size = table.size
        # on a CPU these stay maps of the file; they are of the corpus, not of the run
        self.register_buffer("keys", torch.from_numpy(table.keys), persistent=False)
        self.register_buffer("logs", torch.from_numpy(table.logs), persistent=False)

    @override
    def forward(self, first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
        """Logs of counts of the pairs (first, second), 0 where unseen; and which were seen.

        Both have the shape that `first` and `second` broadcast to.
        """
        asked = torch.minimum(first, second) * self.size + torch.maximum(first, second)
        exact = torch.promote_types(self.logs.dtype, torch.float32)
        if not len(self.keys):
            nothing = torch.zeros_like(asked, dtype=exact)
            return nothing, nothing.bool()
        places = torch.searchsorted(self.keys, asked).clamp(max=len(self.keys) - 1)
        seen = self.keys[places] == asked
        return torch.where(seen, self.logs[places].to(exact), 0.0), seen
