"""Forward and backward passes of a training step as CUDA graphs, one for each shape of a batch.

A base model on 32 sentences has about a thousand kernels a step, each of some microseconds, and a
GPU waits for the host to start them. A graph starts them all at once. The passes of a shape are
run as usual when it comes first, recorded when it comes again, and replayed from then on, with the
same loss and gradients. Lengths are rounded up to a multiple of 16, so that there are few shapes;
padding is masked. Dropout draws new numbers at each replay.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

from isoglot.types import IGNORE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from torch import nn

    Inputs = dict[str, Tensor]
    Passes = Callable[[Inputs], Tensor]

_MULTIPLE = 16
_MASK = "attention_mask"


@dataclass(slots=True)
class _Recorded:
    """A graph, the tensors that it reads, and the loss that it writes."""

    graph: torch.cuda.CUDAGraph
    inputs: Inputs
    loss: Tensor


class GraphedStep:
    """Runs the passes of batches; gradients are added to those of the weights."""

    def __init__(self, passes: Passes, weights: Sequence[nn.Parameter], pad: int) -> None:
        """Keep what is needed for recording.

        Args:
            passes: forward and backward pass of a batch; gives its loss without a gradient.
            weights: those that are trained.
            pad: the token id of padding.
        """
        self._passes, self._weights, self._pad = passes, list(weights), pad
        self._gradients: list[Tensor] = []
        self._recorded: dict[tuple[object, ...], _Recorded | None] = {}
        self._pool = torch.cuda.graph_pool_handle()
        self.is_usable = True
        """False after a recording failed: all batches then run as usual."""

    def __call__(self, inputs: Inputs, variant: int = 0) -> Tensor:
        """The loss of a batch; its gradients are added to the weights'.

        `variant` numbers what `passes` reads besides the batch: each number has its own graphs.
        """
        if not self.is_usable:
            return self._passes(inputs)
        if not self._gradients:
            return self._first(inputs)
        self._restore_gradients()
        inputs = rounded_lengths(inputs, self._pad)
        shapes = ((name, *tensor.shape) for name, tensor in sorted(inputs.items()))
        shape = variant, *shapes
        if shape not in self._recorded:
            self._recorded[shape] = None
            return self._passes(inputs)
        recorded = self._recorded[shape] or self._record(inputs)
        if recorded is None:
            return self._passes(inputs)
        self._recorded[shape] = recorded
        for name, tensor in inputs.items():
            recorded.inputs[name].copy_(tensor, non_blocking=True)
        recorded.graph.replay()
        return recorded.loss.clone()

    def _first(self, inputs: Inputs) -> Tensor:
        """Run a batch as usual; its gradients have the places that later ones are written to."""
        loss = self._passes(inputs)
        self._weights = [weight for weight in self._weights if weight.grad is not None]
        self._gradients = [weight.grad for weight in self._weights if weight.grad is not None]
        return loss

    def _restore_gradients(self) -> None:
        """Give weights whose gradient was removed the fixed one, with zeros."""
        if self._weights[0].grad is None:
            torch._foreach_zero_(self._gradients)
            for weight, gradient in zip(self._weights, self._gradients, strict=True):
                weight.grad = gradient

    def _record(self, inputs: Inputs) -> _Recorded | None:
        kept = [gradient.clone() for gradient in self._gradients]
        fixed = {name: tensor.clone() for name, tensor in inputs.items()}
        graph = torch.cuda.CUDAGraph()
        try:
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                self._passes(fixed)
            torch.cuda.current_stream().wait_stream(side)
            with torch.cuda.graph(graph, pool=self._pool):
                loss = self._passes(fixed)
        except RuntimeError:  # an operation of this model cannot be recorded
            self.is_usable = False
            return None
        finally:
            torch._foreach_copy_(self._gradients, kept)
        return _Recorded(graph, fixed, loss)


def rounded_lengths(batch: Mapping[str, Tensor], pad: int) -> Inputs:
    """A batch whose windows are padded to a multiple of 16 tokens."""
    length = batch[_MASK].shape[-1]
    more = -length % _MULTIPLE
    if not more:
        return dict(batch)
    padding = {"input_ids": pad, "labels": IGNORE, "language_ids": -1}
    return {
        name: F.pad(tensor, (0, more), value=padding.get(name, 0))
        if tensor.ndim > 1 and tensor.shape[-1] == length
        else tensor
        for name, tensor in batch.items()
    }
