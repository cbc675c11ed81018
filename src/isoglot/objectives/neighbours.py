"""The neighbours of prediction sites in packed rows: who stands within a window in the sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from isoglot.types import Batch, Rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours:
    """For each of N sites, the 2n places around it."""

    places: Tensor
    """(N, 2n) flat indices into the rows; any valid index where there is no neighbour."""
    there: Tensor
    """(N, 2n) bool: is this a token of the same sentence?"""


def original_ids(batch: Batch) -> Tensor:
    """(B * L,) the ids of the main rows before anything was hidden."""
    filled = max((stop for _, stop in batch.spans.values()), default=0)
    return batch.rows.ids.flatten().scatter(0, batch.positions[:filled], batch.targets[:filled])


def neighbours(rows: Rows, sites: Tensor, ordinary: Tensor, window: int) -> Neighbours:
    """The tokens at most `window` places from each site, on both sides.

    Args:
        rows: packed rows.
        sites: (N,) flat indices into them.
        ordinary: (B * L,) bool: is the token that stands there no special one?
        window: n, the places on each side.
    """
    steps = torch.arange(1, window + 1, device=sites.device)
    steps = torch.cat([-steps.flip(0), steps])
    asked = sites[:, None] + steps
    places = asked.clamp(0, rows.ids.numel() - 1)
    length = rows.ids.shape[1]
    there = (places == asked) & (places // length == (sites // length)[:, None]) & ordinary[places]
    for field in (rows.sequences, rows.sentences, rows.parts):
        flat = field.flatten()
        there &= flat[places] == flat[sites][:, None]
    # slots stand beside each other in a row without doing so in their sentence
    positions = rows.positions.flatten()
    there &= positions[places] == positions[sites][:, None] + steps
    return Neighbours(places=places, there=there)
