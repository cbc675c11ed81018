"""The neighbors of masked tokens, in packed rows or in the decoder's rows.

`TokenLayout` says of each token, in flat tensors, which sentence it is in and at which position;
`find_neighbors` then finds the tokens within n places, whatever batch they come from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from isoglot.types import Batch, Decoding, Rows


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenLayout:
    """The sentence and position of each token: flat tensors over T tokens of any batch."""

    sentences: Tensor
    """(T,) the same number for the tokens of a sentence, and for no others."""
    positions: Tensor
    """(T,) the position in the sequence; adjacent tokens have adjacent positions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbors:
    """For each of N positions, the 2n places around it."""

    places: Tensor
    """(N, 2n) flat indices; any valid index where there is no neighbor."""
    exists: Tensor
    """(N, 2n) bool: is this a token of the same sentence, and a candidate?"""


def find_neighbors(
    layout: TokenLayout, targets: Tensor, candidates: Tensor, window: int
) -> Neighbors:
    """The tokens at most `window` places from each target (N,), on both sides.

    `candidates` (T,) says which tokens may be neighbors.
    """
    steps = torch.arange(1, window + 1, device=targets.device)
    steps = torch.cat([-steps.flip(0), steps])
    wanted = targets[:, None] + steps
    places = wanted.clamp(0, len(candidates) - 1)
    exists = (places == wanted) & candidates[places]
    exists &= layout.sentences[places] == layout.sentences[targets][:, None]
    # slots are adjacent in a row, but not in their sentence
    exists &= layout.positions[places] == layout.positions[targets][:, None] + steps
    return Neighbors(places=places, exists=exists)


def layout_of_rows(rows: Rows) -> TokenLayout:
    """The layout of packed rows: a sentence is one of a row, a sequence and a role."""
    number, length = rows.ids.shape
    sentences = torch.arange(number, device=rows.ids.device)[:, None]
    for column in (rows.sequences, rows.sentences, rows.roles):
        # none has more values in a row than the row has tokens; padding has sequence -1
        sentences = sentences * (length + 1) + column + 1
    return TokenLayout(sentences=sentences.flatten(), positions=rows.positions.flatten())


def original_ids(batch: Batch) -> Tensor:
    """(B * L,) the ids of the main rows before masking."""
    filled = max((stop for _, stop in batch.target_slices.values()), default=0)
    return batch.rows.ids.flatten().scatter(
        0, batch.target_positions[:filled], batch.targets[:filled]
    )


def predicted_ids(decoding: Decoding, nothing: int) -> Tensor:
    """(B' * T,) the id that each place of the decoder predicts; `nothing` where it predicts none.

    A place predicts the token after it, so neighbors among predictions are adjacent places.
    """
    ids = torch.full_like(decoding.rows.ids.flatten(), nothing)
    return ids.scatter(0, decoding.target_positions, decoding.targets)
