"""Embeddings whose gradient is summed in a fixed order, and yet quickly, on a GPU.

Where the same bits are asked for twice, a compiled model adds up the gradient of a table key by
key, one token after the other. That is slow where many tokens share a key: all of them share
XLM-R's one token type, and one of eight is a mask. On an H200 it took 30 % of a step. Here the
tokens of a key are summed in parts of at most `DEPTH`, then its parts, both in a fixed order.

Only a compiled model that is asked for the same bits does so: what torch does elsewhere is fast.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from typing_extensions import override

DEPTH = 128
"""Tokens that are added one after the other, at most."""


class ExactEmbedding(nn.Embedding):
    """As torch's, but for the way its gradient is summed."""

    @override
    def forward(self, input: Tensor) -> Tensor:
        exact = torch.compiler.is_compiling() and torch.are_deterministic_algorithms_enabled()
        if exact and input.is_cuda:
            return look_up(self.weight, input, self.padding_idx)
        return super().forward(input)


def sum_embeddings_exactly(model: nn.Module) -> None:
    """Let all plain tables of a model be of this kind."""
    for module in model.modules():
        special = isinstance(module, nn.Embedding) and (
            module.max_norm is not None or module.sparse or module.scale_grad_by_freq
        )
        if type(module) is nn.Embedding and not special:
            # in place: heads and other layers hold the table itself, or its weights
            module.__class__ = ExactEmbedding


def look_up(table: Tensor, keys: Tensor, padding: int | None) -> Tensor:
    """Rows of a table (V, D) by keys of any shape; the row of `padding` gets no gradient."""
    found: Tensor = _LookUp.apply(table, keys, padding)
    return found


class _LookUp(torch.autograd.Function):
    @staticmethod
    @override
    def forward(ctx: Any, table: Tensor, keys: Tensor, padding: int | None) -> Tensor:
        ctx.save_for_backward(keys)
        ctx.number, ctx.padding = len(table), padding
        return F.embedding(keys, table)

    @staticmethod
    @override
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:
        (keys,), (slope,) = ctx.saved_tensors, slopes
        gradient = sums_by_key(slope.reshape(-1, slope.shape[-1]), keys.flatten(), ctx.number)
        if ctx.padding is not None:
            gradient[ctx.padding] = 0
        return gradient, None, None


def sums_by_key(values: Tensor, keys: Tensor, number: int, depth: int = DEPTH) -> Tensor:
    """The sum (V, D) of all values (N, D) of each key, in the order of the values.

    Args:
        values: (N, D) what is summed; the sums themselves are made in float32 or better.
        keys: (N,) numbers below V.
        number: V.
        depth: values that are added one after the other, at most.
    """
    wide = torch.promote_types(values.dtype, torch.float32)
    keys, order = keys.sort(stable=True)
    place = torch.arange(len(keys), device=keys.device)
    # a part begins with each key, and again wherever it could become too deep
    begins = (place % depth == 0) | (keys != keys.roll(1))
    part = begins.cumsum(0) - 1
    most = min(number, len(keys)) + -(-len(keys) // depth)
    # parts that are left over add nothing to keys that are all different, so that none is deep
    key_of_part = torch.arange(most, device=keys.device, dtype=keys.dtype) % number
    key_of_part = key_of_part.index_put((part,), keys)
    parts = values.new_zeros((most, values.shape[1]), dtype=wide)
    parts = parts.index_put((part,), values[order].to(wide), accumulate=True)
    sums = values.new_zeros((number, values.shape[1]), dtype=wide)
    return sums.index_put((key_of_part,), parts, accumulate=True).to(values.dtype)
