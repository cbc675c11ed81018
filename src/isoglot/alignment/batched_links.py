"""Links between the tokens of many sentence pairs at a time, on the device of their states.

Reads padded states (P, M, D) and (P, N, D) with the number of tokens of each side; gives (P, M, N)
booleans. Each aligner is the one of `evaluation.word_alignment` with padding left out; the tests
compare the two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

from isoglot.evaluation.word_alignment import ITERMAX_DISCOUNT, ITERMAX_MIN_TOKENS

if TYPE_CHECKING:
    from isoglot.evaluation.settings import FeatureConfig

_NEVER = float("-inf")


def token_links(first: Tensor, second: Tensor, lengths: Tensor, settings: FeatureConfig) -> Tensor:
    """(P, M, N) booleans: the links of the aligner in the settings.

    Args:
        first: (P, M, D) states of the first sides.
        second: (P, N, D) states of the second sides.
        lengths: (P, 2) tokens of the two sides; the others are padding.
        settings: the aligner and what it reads.
    """
    places = [torch.arange(side.shape[1], device=side.device) for side in (first, second)]
    rows, columns = (at < lengths[:, side, None] for side, at in enumerate(places))
    valid = rows[:, :, None] & columns[:, None, :]
    first, second = first.float(), second.float()
    match settings.aligner:
        case "transport":
            similar = first @ second.transpose(1, 2)
            return _mutual(*_sinkhorn(similar, valid, settings.sinkhorn_iterations), valid)
        case "entropic":
            scaled = _cosines(first, second) / settings.regularization
            return _mutual(*_log_sinkhorn(scaled, valid, settings.sinkhorn_iterations), valid)
        case "argmax":
            cosines = _cosines(first, second)
            return _mutual(cosines, cosines, valid)
        case "itermax":
            return _itermax((_cosines(first, second) + 1) / 2, valid, lengths)
        case "softmax":
            similar = (first @ second.transpose(1, 2)).masked_fill_(~valid, _NEVER)
            limit = settings.softmax_threshold
            # rows of padding alone are NaN, which is above no limit
            return (similar.softmax(dim=2) > limit) & (similar.softmax(dim=1) > limit)


def _cosines(first: Tensor, second: Tensor) -> Tensor:
    return F.normalize(first, dim=-1) @ F.normalize(second, dim=-1).transpose(1, 2)


def _mutual(forward: Tensor, backward: Tensor, valid: Tensor) -> Tensor:
    """Links where the column is the best of its row, and the row the best of its column."""
    forward, backward = (matrix.masked_fill(~valid, _NEVER) for matrix in (forward, backward))
    rows, columns = torch.zeros_like(valid), torch.zeros_like(valid)
    rows.scatter_(2, forward.argmax(dim=2, keepdim=True), value=True)
    columns.scatter_(1, backward.argmax(dim=1, keepdim=True), value=True)
    return rows & columns & valid


def _sinkhorn(similar: Tensor, valid: Tensor, iterations: int) -> tuple[Tensor, Tensor]:
    plan = columns = similar.masked_fill(~valid, 0)
    some_row, some_column = valid.any(dim=1, keepdim=True), valid.any(dim=2, keepdim=True)
    for _ in range(iterations):
        columns = plan / plan.sum(dim=1, keepdim=True).where(some_row, 1)
        plan = columns / columns.sum(dim=2, keepdim=True).where(some_column, 1)
    return plan, columns


def _log_sinkhorn(scaled: Tensor, valid: Tensor, iterations: int) -> tuple[Tensor, Tensor]:
    plan = columns = scaled.masked_fill(~valid, _NEVER)
    some_row, some_column = valid.any(dim=1, keepdim=True), valid.any(dim=2, keepdim=True)
    for _ in range(iterations):
        columns = plan - plan.logsumexp(dim=1, keepdim=True).where(some_row, 0)
        plan = columns - columns.logsumexp(dim=2, keepdim=True).where(some_column, 0)
    return plan, columns


def _itermax(similar: Tensor, valid: Tensor, lengths: Tensor) -> Tensor:
    links = _mutual(similar, similar, valid)
    linked = [links.any(dim=dim, keepdim=True) for dim in (2, 1)]
    # tokens left on both sides, and neither side very short
    left = [int_side.sum(dim=(1, 2)) < lengths[:, side] for side, int_side in enumerate(linked)]
    again = left[0] & left[1] & (lengths.amin(dim=1) >= ITERMAX_MIN_TOKENS)
    number = linked[0].to(similar.dtype) + linked[1].to(similar.dtype)
    weights = torch.where(number == 0, 1.0, torch.where(number == 1, ITERMAX_DISCOUNT, 0.0))
    weighted = similar * weights
    more = _mutual(weighted, weighted, valid) & (weights > 0)
    return links | (more & again[:, None, None])
