"""What comes out of a pass there and back, to compare two ways of doing it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from tests.models.worked_rows import mixed_rows

if TYPE_CHECKING:
    from torch import Tensor

    from isoglot.models.encoder import Encoder
    from isoglot.types import Rows


def states_and_gradients(
    encoder: Encoder, rows: Rows | None = None, *, bf16: bool = False
) -> tuple[Tensor, Tensor]:
    """The states of all real tokens and the gradients of all weights, as two vectors."""
    device = next(encoder.parameters()).device.type
    rows = (rows or mixed_rows()[1]).to(device)
    with torch.autocast(device, dtype=torch.bfloat16, enabled=bf16):
        hidden = encoder(rows).hidden[rows.sequences >= 0]
    assert hidden.dtype == next(encoder.parameters()).dtype
    (hidden * torch.linspace(-1, 1, hidden.shape[1], device=device)).sum().backward()
    found = [weight.grad.flatten() for weight in encoder.parameters() if weight.grad is not None]
    return hidden.detach().flatten(), torch.cat(found)


def relative(left: Tensor, right: Tensor) -> float:
    """How far one is from the other, in lengths of the other."""
    return ((left - right).norm() / right.norm()).item()
