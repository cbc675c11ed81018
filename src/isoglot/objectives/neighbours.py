"""The neighbours of prediction sites: who stands within a window in the same sentence.

Works on flat tensors of T tokens, so that it serves packed rows (`layout_of_rows`) as well as any
other batch that can tell which sentence each of its tokens belongs to, and where it stands there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from isoglot.types import Batch, Rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where tokens stand: flat tensors, one entry a token, in the order in which they lie."""

    groups: Tensor
    """(T,) the same number for the tokens of a sentence, and for no others."""
    positions: Tensor
    """(T,) the place in the sequence; neighbours in a sentence have neighbouring ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours:
    """For each of N sites, the 2n places around it."""

    places: Tensor
    """(N, 2n) flat indices; any valid index where there is no neighbour."""
    there: Tensor
    """(N, 2n) bool: is this a token of the same sentence?"""


def neighbours(layout: Layout, sites: Tensor, ordinary: Tensor, window: int) -> Neighbours:
    """The tokens at most `window` places from each site, on both sides.

    Args:
        layout: where the tokens stand.
        sites: (N,) flat indices.
        ordinary: (T,) bool: is the token that stands there no special one?
        window: n, the places on each side.
    """
    steps = torch.arange(1, window + 1, device=sites.device)
    steps = torch.cat([-steps.flip(0), steps])
    asked = sites[:, None] + steps
    places = asked.clamp(0, len(ordinary) - 1)
    there = (places == asked) & ordinary[places]
    there &= layout.groups[places] == layout.groups[sites][:, None]
    # slots stand beside each other in a row without doing so in their sentence
    there &= layout.positions[places] == layout.positions[sites][:, None] + steps
    return Neighbours(places=places, there=there)


def layout_of_rows(rows: Rows) -> Layout:
    """Where the tokens of packed rows stand: a sentence is one of a row, a sequence and a part."""
    number, length = rows.ids.shape
    groups = torch.arange(number, device=rows.ids.device)[:, None]
    for field in (rows.sequences, rows.sentences, rows.parts):
        # none has more values in a row than the row has tokens; padding has sequence -1
        groups = groups * (length + 1) + field + 1
    return Layout(groups=groups.flatten(), positions=rows.positions.flatten())


def original_ids(batch: Batch) -> Tensor:
    """(B * L,) the ids of the main rows before anything was hidden."""
    filled = max((stop for _, stop in batch.spans.values()), default=0)
    return batch.rows.ids.flatten().scatter(0, batch.positions[:filled], batch.targets[:filled])
