"""Nearest neighbours by cosine, in both directions, without ever holding all similarities.

Reads two sets of vectors; gives each one's best `k` of the other set. A block of one set is
multiplied with the whole of the other, and both directions are read from the product, so that
100,000 x 100,000 takes one pass and a few hundred megabytes beside the vectors.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

_BLOCK = 1024


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The best `k` of the other set, best first."""

    cosines: Tensor
    """(N, k)."""
    indices: Tensor
    """(N, k)."""


def nearest(first: Tensor, second: Tensor, *, k: int = 1) -> tuple[Neighbours, Neighbours]:
    """Neighbours of each first vector among the second, and of each second among the first."""
    second = F.normalize(second.float(), dim=-1)
    k_there, k_back = min(k, len(second)), min(k, len(first))
    there: list[tuple[Tensor, Tensor]] = []
    back: tuple[Tensor, Tensor] | None = None
    for start in range(0, len(first), _BLOCK):
        block = F.normalize(first[start : start + _BLOCK].float(), dim=-1)
        similar = block @ second.T
        there.append(_best(similar, k_there, dim=1))
        cosines, indices = _best(similar, min(k_back, len(block)), dim=0)
        indices = indices + start
        if back is not None:
            cosines, chosen = _best(torch.cat([back[0], cosines]), k_back, dim=0)
            indices = torch.cat([back[1], indices]).gather(0, chosen)
        back = cosines, indices
    assert back is not None, "there is at least one vector"
    forward = Neighbours(
        torch.cat([pair[0] for pair in there]), torch.cat([pair[1] for pair in there])
    )
    return forward, Neighbours(back[0].T, back[1].T)


def _best(similar: Tensor, k: int, *, dim: int) -> tuple[Tensor, Tensor]:
    """The largest `k` along a dimension."""
    if k == 1:  # many times as fast as topk
        values, indices = similar.max(dim=dim, keepdim=True)
        return values, indices
    values, indices = similar.topk(min(k, similar.shape[dim]), dim=dim)
    return values, indices


def margins(mine: Neighbours, others: Neighbours) -> Tensor:
    """(N, k) ratio margins: the cosine over the mean cosine of both sides' neighbourhoods.

    Artetxe and Schwenk 2019, the ratio form.
    """
    around_mine = mine.cosines.mean(dim=1, keepdim=True)
    around_others = others.cosines.mean(dim=1)[mine.indices]
    return mine.cosines / ((around_mine + around_others) / 2)


def chosen(mine: Neighbours, others: Neighbours, *, margin: bool) -> tuple[Tensor, Tensor]:
    """(N,) the neighbour chosen and its score: the nearest, or the one with the best margin."""
    if not margin:
        return mine.indices[:, 0], mine.cosines[:, 0]
    values, best = margins(mine, others).max(dim=1)
    return mine.indices.gather(1, best[:, None])[:, 0], values
