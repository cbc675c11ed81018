"""InfoNCE: which of many candidates belongs to a query?

    loss = -log( exp(q·k⁺/τ) / (exp(q·k⁺/τ) + Σ exp(q·k⁻/τ)) )

Reads vectors of queries, of their own keys, and of candidates that are not theirs; gives a loss for
each query. Always computed in float32 or better: under bf16 a dot product divided by 0.05 would be
off by whole units. van den Oord et al. (2018); MoCo (He et al., 2020); PPA Eq. 3.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from isoglot.objectives.contrast.items import NO_ITEM


@dataclass(slots=True, kw_only=True)
class Contrast:
    """What contrasting n queries gave."""

    losses: Tensor
    """(n,) the loss of each query."""
    correct: Tensor
    """(n,) 1 where its own key is nearer to the query than every candidate, else 0."""


def info_nce(
    queries: Tensor,
    keys: Tensor,
    candidates: Tensor,
    *,
    temperature: float,
    left_out: Tensor | None = None,
) -> Contrast:
    """The loss of each query against its own key and the candidates.

    Args:
        queries: (n, D) vectors.
        keys: (n, D) the key that belongs to each query.
        candidates: (m, D) keys that do not; none at all gives a loss of 0.
        temperature: what dot products are divided by.
        left_out: (n, m) true where a query must not meet a candidate.
    """
    with torch.autocast(queries.device.type, enabled=False):
        queries, keys, candidates = (_exact(v) for v in (queries, keys, candidates))
        own = (queries * keys).sum(dim=1, keepdim=True) / temperature
        others = queries @ candidates.T / temperature
        if left_out is not None:
            others = others.masked_fill(left_out, float("-inf"))
        scores = torch.cat([own, others], dim=1)
        losses = scores.logsumexp(dim=1) - own[:, 0]
    correct = (scores.detach() <= own.detach()).all(dim=1)
    return Contrast(losses=losses, correct=correct.to(losses.dtype))


def same_item(items: Tensor, others: Tensor) -> Tensor:
    """(n, S) and (m, T) numbers -> (n, m): do two things have a number in common?"""
    same = torch.zeros(len(items), len(others), dtype=torch.bool, device=items.device)
    # column by column: (n, m, S, T) would not fit beside a long queue
    for column in items.unbind(dim=1):
        for other in others.unbind(dim=1):
            same |= (column[:, None] == other[None, :]) & (other != NO_ITEM)[None, :]
    return same


def _exact(vectors: Tensor) -> Tensor:
    return vectors.to(torch.promote_types(vectors.dtype, torch.float32))
