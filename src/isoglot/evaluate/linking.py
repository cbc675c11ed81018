"""Links from similarities: four ways to say which pieces of two sentences belong together.

Each reads the vectors of m and n pieces and gives an (m, n) matrix of links. All keep the links
that both directions choose; they differ in what is compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F

if TYPE_CHECKING:
    from torch import Tensor

    from isoglot.evaluate.settings import FeatureSettings

_DISCOUNT = 0.9
_ROUNDS = 2
_LONG = 2


def link(first: Tensor, second: Tensor, settings: FeatureSettings) -> Tensor:
    """(m, n) booleans: the links of the aligner that the settings name."""
    match settings.aligner:
        case "transport":
            return mutual(*transport(first @ second.T, settings.sinkhorn))
        case "entropic":
            scaled = _cosines(first, second) / settings.regularization
            return mutual(*entropic(scaled, settings.sinkhorn))
        case "argmax":
            return mutual(*[_cosines(first, second)] * 2)
        case "itermax":
            return itermax((_cosines(first, second) + 1) / 2)


def mutual(forward: Tensor, backward: Tensor) -> Tensor:
    """Links (i, j) where j is the best of row i of one matrix and i of column j of the other."""
    rows = torch.zeros_like(forward, dtype=torch.bool)
    columns = torch.zeros_like(rows)
    rows.scatter_(1, forward.argmax(dim=1, keepdim=True), value=True)
    columns.scatter_(0, backward.argmax(dim=0, keepdim=True), value=True)
    return rows & columns


def transport(similar: Tensor, iterations: int) -> tuple[Tensor, Tensor]:
    """XLM-Align's aligner as it was released: Sinkhorn on the dot products themselves.

    The plan after its rows, and after its columns, were last made to sum to 1.
    """
    plan = columns = similar
    for _ in range(iterations):
        columns = plan / plan.sum(dim=0, keepdim=True)
        plan = columns / columns.sum(dim=1, keepdim=True)
    return plan, columns


def entropic(scaled: Tensor, iterations: int) -> tuple[Tensor, Tensor]:
    """The same on exp(similarity / regularization), XLM-Align's paper's form, in logarithms."""
    plan = columns = scaled
    for _ in range(iterations):
        columns = plan - plan.logsumexp(dim=0, keepdim=True)
        plan = columns - columns.logsumexp(dim=1, keepdim=True)
    return plan, columns


def itermax(similar: Tensor) -> Tensor:
    """SimAlign's itermax (Jalili Sabet et al. 2020): mutual links, then more for the pieces left.

    In the second round a pair counts in full where neither side has a link, with a discount where
    one has, and not at all where both have.
    """
    links = mutual(similar, similar)
    if min(similar.shape) <= _LONG:
        return links
    for _ in range(_ROUNDS - 1):
        first = links.any(dim=1, keepdim=True).float()
        second = links.any(dim=0, keepdim=True).float()
        if bool(first.all()) or bool(second.all()):
            break
        linked = first + second
        weights = torch.where(linked == 0, 1.0, torch.where(linked == 1, _DISCOUNT, 0.0))
        weighted = similar * weights
        links = links | (mutual(weighted, weighted) & (weights > 0))
    return links


def _cosines(first: Tensor, second: Tensor) -> Tensor:
    return F.normalize(first, dim=-1) @ F.normalize(second, dim=-1).T
