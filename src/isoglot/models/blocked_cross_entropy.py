"""The product with the output embeddings and the cross-entropy on a CPU, by blocks of tokens.

    forward    block: product, highest logit and log-sum-exp of the tokens that are no target
    backward   block: softmax from the kept logits, two products

A CPU waits for memory in every pass over logits at 250,000 tokens. Here each pass over a block of
the vocabulary follows while the block is in the cache: the cast of its embeddings under autocast,
the product, the sums, and in the backward pass the rows of the embeddings' gradient. A product of
154 target positions with a block of 3,392 tokens is also faster than one with all tokens (float32,
MKL on an EPYC: 78 to 85 against 59 GFLOP/s).

In the kept logits a target's own logit is minus infinity, so that a sum is one of the other tokens;
the target is then added to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from typing_extensions import override

from isoglot.types import IGNORE

_BLOCK_LOGITS = 2**19
"""Logits of a block: 2 MiB in float32."""
_MIN_BLOCK_TOKENS, _MAX_BLOCK_TOKENS = 512, 8192
_MULTIPLE = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    """Tokens from `start` to `stop`, and the target positions whose target is one of them."""

    start: int
    stop: int
    rows: Tensor
    columns: Tensor
    """Of these targets in the block."""

    @property
    def tokens(self) -> slice:
        return slice(self.start, self.stop)

    def of(self, logits: Tensor, number: int) -> Tensor:
        """The block (number, tokens) of the logits, which are kept block after block."""
        part = logits[number * self.start : number * self.stop]
        return part.view(number, self.stop - self.start)


class BlockedLinearCrossEntropy(torch.autograd.Function):
    """Losses (N,) and whether the target has the highest logit: `fused_linear_cross_entropy`."""

    @staticmethod
    @override
    def forward(
        ctx: Any, features: Tensor, weight: Tensor, bias: Tensor, targets: Tensor
    ) -> tuple[Tensor, Tensor]:
        number, dtype = len(features), features.dtype
        wide = torch.promote_types(dtype, torch.float32)
        blocks = _blocks(targets, len(weight))
        logits = features.new_empty(number * len(weight))
        target_logits = features.new_zeros(number, dtype=wide)
        highest, log_sums = [], []
        for block in blocks:
            part, own = block.of(logits, number), weight[block.tokens].to(dtype)
            torch.addmm(bias[block.tokens].to(dtype), features, own.T, out=part)
            target_logits[block.rows] = part[block.rows, block.columns].to(wide)
            part[block.rows, block.columns] = float("-inf")
            others = part.to(wide)
            highest.append(others.amax(dim=1))
            log_sums.append(others.logsumexp(dim=1))
        log_sum = torch.logaddexp(torch.stack(log_sums).logsumexp(dim=0), target_logits)
        real = targets != IGNORE
        losses = torch.where(real, log_sum - target_logits, 0.0)
        correct = (target_logits > torch.stack(highest).amax(dim=0)) & real
        ctx.blocks, ctx.bias_dtype = blocks, bias.dtype
        ctx.save_for_backward(features, weight, logits, log_sum, targets, target_logits)
        ctx.mark_non_differentiable(correct)
        return losses, correct

    @staticmethod
    @override
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        features, weight, logits, log_sum, targets, target_logits = ctx.saved_tensors
        dtype, log_sums = features.dtype, log_sum[:, None]
        slopes = torch.where(targets == IGNORE, 0.0, grad_outputs[0])
        at_targets = ((target_logits - log_sum).exp() - 1) * slopes
        of_features, of_weight, of_bias = _empty_gradients(ctx, features, weight)
        for block in ctx.blocks:
            part = block.of(logits, len(features))
            others = part.to(log_sum.dtype)
            # the kept logits stay, for a graph that is retained
            gradient = others.sub_(log_sums) if others is not part else others - log_sums
            gradient.exp_().mul_(slopes[:, None])
            gradient[block.rows, block.columns] = at_targets[block.rows]
            if of_bias is not None:
                of_bias[block.tokens] = gradient.sum(dim=0)
            gradient = gradient.to(dtype)
            if of_features is not None:
                _add_product(of_features, gradient, weight[block.tokens].to(dtype))
            if of_weight is not None:
                _set_product(of_weight[block.tokens], gradient.T, features)
        return None if of_features is None else of_features.to(dtype), of_weight, of_bias, None


def _blocks(targets: Tensor, number: int) -> list[_Block]:
    """The blocks of a vocabulary of `number` tokens, for these targets."""
    if len(targets) and int(targets.max()) >= number:
        raise IndexError(f"target {int(targets.max())} of a vocabulary of {number} tokens")
    tokens = _BLOCK_LOGITS // max(len(targets), 1) // _MULTIPLE * _MULTIPLE
    tokens = min(max(tokens, _MIN_BLOCK_TOKENS), _MAX_BLOCK_TOKENS)
    starts = list(range(0, number, tokens))
    ordered, order = targets.sort(stable=True)
    bounds = torch.searchsorted(ordered, torch.tensor([*starts, number])).tolist()
    return [
        _Block(
            start=start,
            stop=min(start + tokens, number),
            rows=order[first:last],
            columns=ordered[first:last] - start,
        )
        for start, first, last in zip(starts, bounds, bounds[1:], strict=False)
    ]


def _empty_gradients(
    ctx: Any, features: Tensor, weight: Tensor
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Of features in float32 or better (zeros, to be added to), of weight and of bias."""
    of_features, of_weight, of_bias = ctx.needs_input_grad[:3]
    wide = torch.promote_types(features.dtype, torch.float32)
    return (
        torch.zeros_like(features, dtype=wide) if of_features else None,
        torch.empty_like(weight) if of_weight else None,
        weight.new_empty(len(weight), dtype=ctx.bias_dtype) if of_bias else None,
    )


def _add_product(total: Tensor, left: Tensor, right: Tensor) -> None:
    if total.dtype == left.dtype:
        total.addmm_(left, right)
    else:
        total.add_(left @ right)


def _set_product(rows: Tensor, left: Tensor, right: Tensor) -> None:
    if rows.dtype == left.dtype:
        torch.mm(left, right, out=rows)
    else:
        rows.copy_(left @ right)
