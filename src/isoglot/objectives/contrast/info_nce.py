"""InfoNCE, and which candidates are negatives of a query.

    loss = -log( exp(q·k⁺/τ) / (exp(q·k⁺/τ) + Σ exp(q·k⁻/τ)) )

van den Oord et al. (2018); MoCo (He et al., 2020); PPA Eq. 3. Computed in float32 or better: in
bf16 a dot product divided by 0.05 would be off by whole units.

A candidate with the same item number as the query or its key is a false negative and can be
excluded. A translation has two item numbers, its own sentence's and its partner's, so that in texts
translated into many languages (one English sentence, ten translations) none of the ten is a
negative of the other nine.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from isoglot.types import IntArray

NO_ITEM = -1
"""The item number of a random entry of a queue: equal to no other."""


@dataclass(slots=True, kw_only=True)
class ContrastResult:
    """The result of InfoNCE for n queries."""

    losses: Tensor
    """(n,) the loss of each query."""
    correct: Tensor
    """(n,) 1 where the query's key scores higher than every candidate, 0 where one scores higher;
    1 / k where k score the same, which is what guessing among them gives."""
    chance: Tensor
    """(n,) the accuracy of guessing: 1 / (candidates + 1)."""

    def mean_with(self, other: ContrastResult) -> ContrastResult:
        """The means of two directions (a symmetric loss)."""
        return ContrastResult(
            losses=(self.losses + other.losses) / 2,
            correct=(self.correct + other.correct) / 2,
            chance=(self.chance + other.chance) / 2,
        )

    def metrics(self) -> dict[str, Tensor]:
        """The sums of accuracy and chance, for a `LossSum`."""
        return {"accuracy": self.correct.sum(), "chance": self.chance.sum()}


@dataclass(slots=True, kw_only=True)
class Negatives:
    """Candidates for n queries."""

    vectors: Tensor
    """(m, D), or (..., m, D): candidates of their own for each group of n queries."""
    items: Tensor
    """(m, S) item numbers of each candidate: first its own, then its partners'."""
    excluded: Tensor
    """(n, m) true where a candidate is no negative of a query."""

    def join(self, more: Negatives) -> Negatives:
        """These candidates and more."""
        return Negatives(
            vectors=torch.cat([self.vectors, more.vectors]),
            items=torch.cat([self.items, more.items]),
            excluded=torch.cat([self.excluded, more.excluded], dim=1),
        )

    def excluding_same(self, items: Tensor) -> Negatives:
        """Exclude candidates that share an item number with a query (n, S)."""
        same = shares_item(items, self.items)
        return Negatives(vectors=self.vectors, items=self.items, excluded=self.excluded | same)


def info_nce(
    queries: Tensor, keys: Tensor, negatives: Negatives, *, temperature: float
) -> ContrastResult:
    """The loss of each query (n, D) against its own key (n, D) and the negatives.

    Without negatives the loss is 0. With dimensions before n, each group of n queries has negatives
    of its own.
    """
    with torch.autocast(queries.device.type, enabled=False):
        queries, keys, candidates = (
            vectors.to(torch.promote_types(vectors.dtype, torch.float32))
            for vectors in (queries, keys, negatives.vectors)
        )
        own = (queries * keys).sum(dim=-1, keepdim=True) / temperature
        others = queries @ candidates.mT / temperature
        others = others.masked_fill(negatives.excluded, float("-inf"))
        scores = torch.cat([own, others], dim=-1)
        losses = scores.logsumexp(dim=-1) - own[..., 0]
    highest = (scores.detach() <= own.detach()).all(dim=-1)
    ties = (scores.detach() == own.detach()).sum(dim=-1).clamp(min=1)
    chance = 1 / (1 + (~negatives.excluded).sum(dim=-1))
    return ContrastResult(
        losses=losses,
        correct=highest.to(losses.dtype) / ties,
        chance=chance.to(losses.dtype),
    )


def in_batch_negatives(
    keys: Tensor, items: Tensor, *, deduplicate: bool, own: Tensor | None = None
) -> Negatives:
    """The keys (n, D) of all queries as candidates for each query, except its own key.

    With `deduplicate`, a key that occurs several times is a candidate once, and is excluded for
    queries that share an item number with any of its occurrences. With `own`, only of the queries
    with these indices.
    """
    places = torch.arange(len(keys), device=keys.device)
    queries = places if own is None else own
    excluded = queries[:, None] == places[None, :]
    if deduplicate:
        first = _first_occurrences(items[:, 0])
        same = shares_item(items if own is None else items[own], items)
        # a product of 0 and 1 counts the occurrences of a key that share a number with the query
        same_key = (first[:, None] == first[None, :]).to(keys.dtype)
        excluded = excluded | (same.to(keys.dtype) @ same_key > 0) | (first != places)[None, :]
    return Negatives(vectors=keys, items=items, excluded=excluded)


def _first_occurrences(items: Tensor) -> Tensor:
    """(n,) for each item number the index where it occurs first; its own index for `NO_ITEM`."""
    ordered, order = items.sort(stable=True)
    first = order[torch.searchsorted(ordered, items.contiguous())]
    return torch.where(items == NO_ITEM, torch.arange(len(items), device=items.device), first)


def shares_item(items: Tensor, others: Tensor) -> Tensor:
    """(n, S) and (m, T) item numbers -> (n, m): have two things a number in common?"""
    same = torch.zeros(len(items), len(others), dtype=torch.bool, device=items.device)
    # column by column: (n, m, S, T) would not fit into memory with a long queue
    for column in items.unbind(dim=1):
        for other in others.unbind(dim=1):
            same |= (column[:, None] == other[None, :]) & (other != NO_ITEM)[None, :]
    return same


def sentence_item(ids: IntArray) -> int:
    """The item number of a sentence: 63 bits of a hash of its ids, the same on every machine."""
    digest = hashlib.blake2b(ids.astype("<i4").tobytes(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1
