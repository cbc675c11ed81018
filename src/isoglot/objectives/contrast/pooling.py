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
    of_row = places // states.shape[1]
    sequence = rows.sequences.flatten()[places]
    inside = rows.sequences[of_row] == sequence[:, None]
    with torch.autocast(states.device.type, enabled=False):
        tokens = states[of_row].to(torch.promote_types(states.dtype, torch.float32))
        weights = inside.to(tokens.dtype) / inside.sum(dim=1, keepdim=True)
        return (weights[:, None, :] @ tokens)[:, 0]
