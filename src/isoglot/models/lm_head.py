"""The LM head at target positions only, its last product fused with the cross-entropy.

Reads final hidden states and flat target positions (b * L + l); gives a loss for each. With 15 % of
the tokens masked and a vocabulary of 250,000, logits at every token would take most of the time of
a step and nearly all of its memory.

The head of a `*ForMaskedLM` model is taken to be its direct children besides `base_model`, applied
in order; `packing_check` compares that with the model's own logits when a model is loaded.

`fused_linear_cross_entropy`: where the head ends with the product with the output embeddings, as
nearly always, logits exist once, in the type of the product, with the log-sum-exp of each row; the
gradient is computed from both in one pass (compiled on a GPU). More target positions than
`chunk_size` are recomputed in the backward pass. GPU products are fastest with sizes that are
multiples of eight, and XLM-R has 250,002 tokens: on a GPU the matrix is padded with rows whose bias
is minus infinity, so that their probability is zero. On a CPU both are computed by blocks of tokens
(`blocked_cross_entropy`).
"""

from __future__ import annotations

import functools
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils.checkpoint import checkpoint
from typing_extensions import override

from isoglot.models.blocked_cross_entropy import BlockedLinearCrossEntropy
from isoglot.types import IGNORE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass(slots=True, kw_only=True)
class TargetLosses:
    """Losses at N target positions; zeros where the weight is zero."""

    losses: Tensor
    """(N,) cross-entropy times weight, float32 or better."""
    correct: Tensor
    """(N,) bool: is the target the token with the highest logit?"""


def target_losses(
    head: LMHead,
    hidden: Tensor,
    positions: Tensor,
    targets: Tensor,
    weights: Tensor,
    *,
    chunk_size: int,
    label_smoothing: float = 0.0,
) -> TargetLosses:
    """Cross-entropy at target positions, in chunks.

    A position with weight 0 has loss 0 and gives exactly no gradient, whatever its target.

    Args:
        head: the model's LM head.
        hidden: (B, L, D) final hidden states.
        positions: (N,) flat indices of the target positions.
        targets: (N,) token ids.
        weights: (N,) weight of each loss.
        chunk_size: number of positions whose logits exist at a time.
        label_smoothing: share of each target that is spread over the vocabulary.
    """
    states = select_positions(hidden, positions)
    targets = torch.where(weights == 0, IGNORE, targets)
    if len(positions) <= chunk_size:
        losses, correct = head.losses(states, targets, label_smoothing)
    else:
        chunks = [
            checkpoint(head.losses, *chunk, label_smoothing, use_reentrant=False)
            for chunk in zip(states.split(chunk_size), targets.split(chunk_size), strict=True)
        ]
        losses = torch.cat([chunk[0] for chunk in chunks])
        correct = torch.cat([chunk[1] for chunk in chunks])
    return TargetLosses(losses=losses * weights, correct=correct)


def select_positions(hidden: Tensor, positions: Tensor) -> Tensor:
    """The states (N, D) at flat indices into (B, L, D) states."""
    return hidden.flatten(0, 1).index_select(0, positions)


class LMHead:
    """The head of a `*ForMaskedLM` model, from hidden states (..., D) to logits (..., V)."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._layers = [child for child in model.children() if child is not model.base_model]
        self.ends_with_output_embeddings = self._ends_with_output_embeddings()
        """Is the product with the output embeddings the last operation?"""

    def __call__(self, hidden: Tensor) -> Tensor:
        """The logits of some states."""
        if not (self.ends_with_output_embeddings and hidden.is_cuda):
            return self._run_layers(hidden)
        output = self._output_embeddings()
        return padded_logits(self.features(hidden), output.weight, output.bias)

    def losses(
        self, states: Tensor, targets: Tensor, label_smoothing: float = 0.0
    ) -> tuple[Tensor, Tensor]:
        """Cross-entropy (N,) of states (N, D), 0 for IGNORE; and where the best token is right."""
        if self.ends_with_output_embeddings and not label_smoothing:
            output = self._output_embeddings()
            return fused_linear_cross_entropy(
                self.features(states), output.weight, output.bias, targets
            )
        logits = self(states)
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        losses = F.cross_entropy(
            logits, targets, ignore_index=IGNORE, reduction="none", label_smoothing=label_smoothing
        )
        return losses, logits.detach().argmax(dim=-1) == targets

    def _output_embeddings(self) -> Any:
        # asked each time: resizing the vocabulary of a model replaces them
        return self._model.get_output_embeddings()

    def _run_layers(self, hidden: Tensor) -> Tensor:
        for layer in self._layers:
            hidden = layer(hidden)
        return hidden

    def features(self, hidden: Tensor) -> Tensor:
        """The input of the product with the output embeddings: the head's transform of states."""
        with _as_identity(self._output_embeddings()):
            return self._run_layers(hidden)

    @torch.no_grad()
    def _ends_with_output_embeddings(self) -> bool:
        """Compare the head with that product of its features, for one state."""
        output = self._output_embeddings()
        if not isinstance(output, nn.Linear):
            return False
        state = torch.linspace(
            -1,
            1,
            self._model.config.hidden_size,
            dtype=output.weight.dtype,
            device=output.weight.device,
        )
        try:
            features = self.features(state[None])
        except (RuntimeError, TypeError):  # no chain of layers, or more layers after the product
            return False
        shape_only = isinstance(output.weight, FakeTensor) or output.weight.is_meta
        if features.shape[-1] != output.in_features or shape_only:
            return features.shape[-1] == output.in_features  # without numbers nothing to compare
        return torch.equal(output(features), self._run_layers(state[None]))


@contextmanager
def _as_identity(layer: nn.Linear) -> Iterator[None]:
    """Within: the layer returns its input."""
    layer.forward = lambda input: input  # type: ignore[method-assign] # noqa: A006
    try:
        yield
    finally:
        del layer.forward


MULTIPLE = 8
"""On a GPU, output embeddings are padded to a multiple of this number of rows."""


def fused_linear_cross_entropy(
    features: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor
) -> tuple[Tensor, Tensor]:
    """Cross-entropy (N,) in float32 or better, and whether the target has the highest logit.

    A row whose target is IGNORE has loss 0, is not correct and gives no gradient. A target that
    shares the highest logit with another token is not correct.

    Args:
        features: (N, D) input of the product.
        weight: (V, D) output embeddings.
        bias: (V,) or none.
        targets: (N,) token ids, or IGNORE.
    """
    features, multiple = features.to(_product_dtype(features, weight)), _multiple(features)
    bias = weight.new_zeros(len(weight)) if bias is None else bias
    if _on_cpu(features):
        losses, correct = BlockedLinearCrossEntropy.apply(features, weight, bias, targets)
        return losses, correct
    losses, correct = _FusedLinearCrossEntropy.apply(features, weight, bias, targets, multiple)
    return losses, correct


def padded_logits(
    features: Tensor, weight: Tensor, bias: Tensor | None, multiple: int | None = None
) -> Tensor:
    """The logits alone (..., V), computed with the padded matrix."""
    dtype, multiple = _product_dtype(features, weight), multiple or _multiple(features)
    padded_bias = None if bias is None else _padded(bias, dtype, multiple, 0.0)
    logits = F.linear(features.to(dtype), _padded(weight, dtype, multiple, 0.0), padded_bias)
    return logits[..., : len(weight)]


class _FusedLinearCrossEntropy(torch.autograd.Function):
    """Forward: the product, then one pass over the logits. Backward: one pass, two products."""

    @staticmethod
    @override
    def forward(
        ctx: Any, features: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, multiple: int
    ) -> tuple[Tensor, Tensor]:
        ctx.number, ctx.dtypes = len(weight), (weight.dtype, bias.dtype)
        weight = _padded(weight, features.dtype, multiple, 0.0)
        bias = _padded(bias, features.dtype, multiple, float("-inf"))
        logits = torch.addmm(bias, features, weight.T)
        losses, log_sums, correct = _on_device(features, _losses)(logits, targets)
        ctx.save_for_backward(features, weight, logits, log_sums, targets)
        ctx.mark_non_differentiable(correct)
        return losses, correct

    @staticmethod
    @override
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        features, weight, logits, log_sums, targets = ctx.saved_tensors
        gradient = _on_device(features, _gradient)(logits, log_sums, targets, grad_outputs[0])
        n, (weight_dtype, bias_dtype) = ctx.number, ctx.dtypes
        return (
            gradient @ weight if ctx.needs_input_grad[0] else None,
            (gradient.T @ features)[:n].to(weight_dtype) if ctx.needs_input_grad[1] else None,
            gradient.sum(0)[:n].to(bias_dtype) if ctx.needs_input_grad[2] else None,
            None,
            None,
        )


def _product_dtype(features: Tensor, weight: Tensor) -> torch.dtype:
    device = features.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else weight.dtype


def _on_cpu(features: Tensor) -> bool:
    """Is it a CPU? Blocks are cut by the numbers of targets, which a fake tensor does not have."""
    on_cpu = features.device.type == "cpu" and not features.is_cuda
    return on_cpu and not isinstance(features, FakeTensor)


def _multiple(features: Tensor) -> int:
    return MULTIPLE if features.is_cuda else 1


def _padded(rows: Tensor, dtype: torch.dtype, multiple: int, value: float) -> Tensor:
    """Rows of a type, padded to a multiple; at most one copy is made."""
    missing = -len(rows) % multiple
    if not missing:
        return rows.to(dtype)
    padded = rows.new_empty((len(rows) + missing, *rows.shape[1:]), dtype=dtype)
    padded[: len(rows)] = rows
    padded[len(rows) :] = value
    return padded


def _losses(logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Losses, log-sum-exps, and where the target has the highest logit."""
    # written like a softmax, so that the compiler computes both sums in one read of the logits
    highest = _float32(logits).amax(dim=-1, keepdim=True)
    total = (_float32(logits) - highest).exp_().sum(dim=-1, keepdim=True)
    log_sums = (total.log() + highest)[:, 0]
    target_logits = logits.gather(1, targets.clamp(min=0)[:, None])[:, 0]
    losses = torch.where(targets == IGNORE, 0.0, log_sums - target_logits)
    # counted rather than an argmax, which would be another pass
    rivals = (logits >= target_logits[:, None]).sum(dim=-1, dtype=torch.int32)
    return losses, log_sums, (rivals == 1) & (targets != IGNORE)


def _gradient(logits: Tensor, log_sums: Tensor, targets: Tensor, slopes: Tensor) -> Tensor:
    """The gradient of the logits: (softmax - one-hot target) times the gradient of the loss."""
    slopes = torch.where(targets == IGNORE, 0.0, slopes)[:, None]
    if torch.compiler.is_compiling():
        # a comparison at every token, so that all is one pass: a scatter would be a second
        token = torch.arange(logits.shape[1], device=logits.device, dtype=torch.int32)
        one_hot = token == targets.int()[:, None]
        softmax = (_float32(logits) - log_sums[:, None]).exp()
        return ((softmax - one_hot.to(softmax.dtype)) * slopes).to(logits.dtype)
    gradient = (_float32(logits) - log_sums[:, None]).exp_().mul_(slopes).to(logits.dtype)
    ids = targets.clamp(min=0)[:, None]
    softmax = (_float32(logits.gather(1, ids)) - log_sums[:, None]).exp()
    return gradient.scatter_(1, ids, ((softmax - 1) * slopes).to(logits.dtype))


def _float32(logits: Tensor) -> Tensor:
    """In float32, or float64 where the logits are."""
    return logits.to(torch.promote_types(logits.dtype, torch.float32))


def _on_device(features: Tensor, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, compiled where the features are on a GPU."""
    return _compiled(function) if features.is_cuda else function


@functools.cache
def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    return torch.compile(function)
