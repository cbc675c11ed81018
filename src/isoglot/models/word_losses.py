"""The last product of an LM head and its cross-entropy as one operation, for its gradient's sake.

Reads states (N, D), the word matrix (V, D) and its bias; gives a loss for each site and whether the
right word was the likeliest. Written out it would be logits, a float32 copy of them, its
log softmax, and as much again on the way back: with 250,000 words most of a step's memory, and
nearly all of it traffic. Here the logits exist once, in the arithmetic of the product, with one
number a site beside them (the logarithm of the softmax's denominator); the gradient is computed
from the two in one sweep. On a GPU the sweeps are compiled.

A GPU multiplies fastest where sizes are multiples of eight, and XLM-R has 250,002 words: there the
matrix gets a few rows more, whose words have a bias of minus infinity and so no probability.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor
from typing_extensions import override

from isoglot.types import IGNORE

if TYPE_CHECKING:
    from collections.abc import Callable

MULTIPLE = 8
"""Rows of a word matrix on a GPU are filled up to a multiple of this."""


def word_losses(
    states: Tensor, words: Tensor, bias: Tensor | None, targets: Tensor
) -> tuple[Tensor, Tensor]:
    """Cross-entropy (N,) in float32 or better, and whether the likeliest word was right.

    A site whose target is IGNORE has loss 0, is not right and gives no gradient. Where two words
    are the likeliest, none is.

    Args:
        states: (N, D) what the product meets.
        words: (V, D) a vector for each word.
        bias: (V,) or none.
        targets: (N,) right words, or IGNORE.
    """
    states, multiple = states.to(_arithmetic(states, words)), _multiple(states)
    bias = words.new_zeros(len(words)) if bias is None else bias
    losses, correct = _WordLosses.apply(states, words, bias, targets, multiple)
    return losses, correct


def word_logits(
    states: Tensor, words: Tensor, bias: Tensor | None, multiple: int | None = None
) -> Tensor:
    """The logits alone (..., V), from a matrix that is filled up like that of the losses."""
    dtype, multiple = _arithmetic(states, words), multiple or _multiple(states)
    filled = None if bias is None else _filled(bias, dtype, multiple, 0.0)
    logits = F.linear(states.to(dtype), _filled(words, dtype, multiple, 0.0), filled)
    return logits[..., : len(words)]


class _WordLosses(torch.autograd.Function):
    """Forward: logits, then one sweep over them. Backward: one sweep, then two products."""

    @staticmethod
    @override
    def forward(
        ctx: Any, states: Tensor, words: Tensor, bias: Tensor, targets: Tensor, multiple: int
    ) -> tuple[Tensor, Tensor]:
        ctx.number, ctx.dtypes = len(words), (words.dtype, bias.dtype)
        words = _filled(words, states.dtype, multiple, 0.0)
        bias = _filled(bias, states.dtype, multiple, float("-inf"))
        logits = torch.addmm(bias, states, words.T)
        losses, denominators, correct = _where(states, _compare)(logits, targets)
        ctx.save_for_backward(states, words, logits, denominators, targets)
        ctx.mark_non_differentiable(correct)
        return losses, correct

    @staticmethod
    @override
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:
        states, words, logits, denominators, targets = ctx.saved_tensors
        wanted = _where(states, _gradient)(logits, denominators, targets, slopes[0])
        n, (of_words, of_bias) = ctx.number, ctx.dtypes
        return (
            wanted @ words if ctx.needs_input_grad[0] else None,
            (wanted.T @ states)[:n].to(of_words) if ctx.needs_input_grad[1] else None,
            wanted.sum(0)[:n].to(of_bias) if ctx.needs_input_grad[2] else None,
            None,
            None,
        )


def _arithmetic(states: Tensor, words: Tensor) -> torch.dtype:
    """What the product is computed in."""
    device = states.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else words.dtype


def _multiple(states: Tensor) -> int:
    return MULTIPLE if states.is_cuda else 1


def _filled(rows: Tensor, dtype: torch.dtype, multiple: int, value: float) -> Tensor:
    """Rows in an arithmetic, filled up to a multiple: one copy, if any."""
    missing = -len(rows) % multiple
    if not missing:
        return rows.to(dtype)
    filled = rows.new_empty((len(rows) + missing, *rows.shape[1:]), dtype=dtype)
    filled[: len(rows)] = rows
    filled[len(rows) :] = value
    return filled


def _compare(logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Losses, the softmax's denominators as logarithms, and where the likeliest word is right."""
    # written as a softmax is, so that the compiler makes both sums in one reading of the logits
    highest = _wide(logits).amax(dim=-1, keepdim=True)
    total = (_wide(logits) - highest).exp_().sum(dim=-1, keepdim=True)
    denominators = (total.log() + highest)[:, 0]
    right = logits.gather(1, targets.clamp(min=0)[:, None])[:, 0]
    losses = torch.where(targets == IGNORE, 0.0, denominators - right)
    # alone at the top, rather than the first of the highest, which would take a search of its own
    rivals = (logits >= right[:, None]).sum(dim=-1, dtype=torch.int32)
    return losses, denominators, (rivals == 1) & (targets != IGNORE)


def _gradient(logits: Tensor, denominators: Tensor, targets: Tensor, slopes: Tensor) -> Tensor:
    """The gradient at the logits: what is likely, less what is right, times the loss's slope."""
    slopes = torch.where(targets == IGNORE, 0.0, slopes)[:, None]
    if torch.compiler.is_compiling():
        # asked of every word, so that all is one sweep: a scatter would be another one
        word = torch.arange(logits.shape[1], device=logits.device, dtype=torch.int32)
        right = word == targets.int()[:, None]
        likely = (_wide(logits) - denominators[:, None]).exp()
        return ((likely - right.to(likely.dtype)) * slopes).to(logits.dtype)
    gradient = (_wide(logits) - denominators[:, None]).exp_().mul_(slopes).to(logits.dtype)
    right = targets.clamp(min=0)[:, None]
    likely = (_wide(logits.gather(1, right)) - denominators[:, None]).exp()
    return gradient.scatter_(1, right, ((likely - 1) * slopes).to(logits.dtype))


def _wide(logits: Tensor) -> Tensor:
    return logits.to(torch.promote_types(logits.dtype, torch.float32))


def _where(states: Tensor, sweep: Callable[..., Any]) -> Callable[..., Any]:
    """A sweep over the logits as it runs on the states' device."""
    return _compiled(sweep) if states.is_cuda else sweep


@functools.cache
def _compiled(sweep: Callable[..., Any]) -> Callable[..., Any]:
    return torch.compile(sweep)
