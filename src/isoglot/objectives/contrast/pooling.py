"""One vector of each sequence in packed rows: its first token's state, or the mean over all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import torch

if TYPE_CHECKING:
    from torch import Tensor

    from isoglot.types import Rows

Pooling = Literal["cls", "mean"]


def pool(states: Tensor, rows: Rows, places: Tensor, how: Pooling) -> Tensor:
    """(B, L, D) states -> (n, D), for the sequences whose first tokens are at flat indices (n,).

    The mean is over all tokens of the sequence, special ones too, as sentence-transformers has it.
    """
    if how == "cls":
        return states.flatten(0, 1)[places]
    owners = _owners(rows.sequences, places)
    tokens = states.flatten(0, 1).to(torch.promote_types(states.dtype, torch.float32))
    # token by token: a copy of its row for each sequence would not fit beside a large step
    sums = tokens.new_zeros(len(places) + 1, tokens.shape[1]).index_add(0, owners, tokens)
    counts = tokens.new_zeros(len(places) + 1).index_add(0, owners, torch.ones_like(tokens[:, 0]))
    return sums[:-1] / counts[:-1, None]


def _owners(sequences: Tensor, places: Tensor) -> Tensor:
    """(B * L,) which of the n sequences each token belongs to; n: to none of them."""
    length, number = sequences.shape[1], len(places)
    rows = torch.arange(len(sequences), device=sequences.device)[:, None]
    # a name for each sequence of the batch, of which a row has at most as many as tokens, and one
    # more for padding, whose sequence is -1
    names = (rows * (length + 1) + sequences + 1).flatten()
    owner_of = torch.full((len(sequences) * (length + 1),), number, device=sequences.device)
    owner_of[names[places]] = torch.arange(number, device=sequences.device)
    return owner_of[names]
