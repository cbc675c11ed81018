"""Objectives that compare the examples of a step: in-batch negatives, batch normalization.

The loss of such an objective is no sum over micro-batches. It has two parts instead:

    compared     an encoded micro-batch -> the pooled states by which its examples are compared
    step_loss    the states of all micro-batches and processes -> heads, loss

so that the training step can cache the gradient at the states between them (GradCache: Gao et al.,
2021; `pretraining/accumulation.py`). A step's gradient is then that of one process with one
micro-batch. `loss`, as of any objective, compares the examples of one micro-batch.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.utils import _pytree
from typing_extensions import override

from isoglot.objectives.base import ForwardResult, LossSum, ObjectiveModule
from isoglot.objectives.gathering import StepLayout, sum_over_processes

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What n examples are compared by: pooled states, and numbers that say which are the same."""

    states: Mapping[str, Tensor]
    """(n, D) pooled states of the encoder, by marker."""
    shared: Mapping[str, Tensor] = field(default_factory=dict)
    """(n, ...) what else all processes need of an example, without gradient: item numbers, ..."""
    local: Mapping[str, Tensor] = field(default_factory=dict)
    """What only the process that computes an example's loss needs of it; of any length."""
    own: Tensor | None = None
    """Indices of the examples whose loss this process computes; none: all."""
    token_loss: Tensor | None = None
    """The sum of the LM head's losses that belong to these examples, if there are any."""
    whole_step: bool = False
    """Are these the examples of a whole step, of all processes?"""

    def __len__(self) -> int:
        return len(next(iter(self.states.values())))

    def detach(self) -> Compared:
        """The same without a graph."""
        states = {name: one.detach() for name, one in self.states.items()}
        return replace(self, states=states, token_loss=None)

    def without_examples(self) -> Compared:
        """The same tensors without rows."""
        kinds = (self.states, self.shared, self.local)
        states, shared, local = ({name: one[:0] for name, one in of.items()} for of in kinds)
        return Compared(states=states, shared=shared, local=local)

    def of_own(self, rows: Tensor) -> Tensor:
        """Of rows (n, ...) those of the examples whose loss this process computes."""
        return rows if self.own is None else rows[self.own]


# FSDP looks for tensors with a gradient in what a module gives
_pytree.register_dataclass(
    Compared, field_names=["states", "shared", "local", "own", "token_loss", "whole_step"]
)


class StepModule(ObjectiveModule):
    """The model half of an objective that compares examples."""

    whole_step: bool = True
    """Compare the examples of a whole step, not those of each micro-batch?"""

    @abstractmethod
    def compared(self, result: ForwardResult) -> Compared:
        """What the examples of a micro-batch are compared by.

        A micro-batch without examples gives the same names, with tensors of no rows.
        """

    @abstractmethod
    def step_loss(self, examples: Compared) -> LossSum:
        """The loss of `examples.own` among all `examples`.

        It reads these tensors, its own weights and its buffers, not the encoder.
        """

    def token_factor(self, examples: Compared) -> Tensor | None:  # noqa: ARG002
        """The factor of `token_loss` in the sum of losses, given the examples of a step."""
        return None

    @override
    def loss(self, result: ForwardResult) -> LossSum:
        """The loss of a micro-batch's examples among themselves."""
        return self.step_loss(self.compared(result))


@dataclass(frozen=True, slots=True, kw_only=True)
class GatheredStep:
    """The examples of a whole step, and where those of this process's micro-batches are."""

    examples: Compared
    """Their states are in float32 or better: gradients of all processes add up there."""
    dtypes: Mapping[str, torch.dtype]
    """Of the states, by marker, in which the heads read them."""
    layout: StepLayout

    @classmethod
    def gather(cls, micro: Sequence[Compared]) -> GatheredStep:
        """From what this process's micro-batches compare; all processes call it together."""
        first = micro[0]
        device = next(iter(first.states.values())).device
        layout = StepLayout.exchange([len(one) for one in micro], device)
        states = {
            name: layout.gather(_exact(torch.cat([one.states[name].detach() for one in micro])))
            for name in first.states
        }
        shared = {
            name: layout.gather(torch.cat([one.shared[name] for one in micro]))
            for name in first.shared
        }
        local = {name: torch.cat([one.local[name] for one in micro]) for name in first.local}
        own = None
        if len(layout.lengths) > 1:
            places = torch.arange(layout.num_rows, device=device)
            own = torch.cat([places[part] for part in layout.own_slices()])
        return cls(
            examples=Compared(states=states, shared=shared, local=local, own=own, whole_step=True),
            dtypes={name: one.dtype for name, one in first.states.items()},
            layout=layout,
        )

    def loss(self, module: StepModule) -> StepLoss:
        """The loss of this process's examples and, unless gradients are off, its gradient.

        The gradient of the module's weights is given as a loss, so that it is added together with
        the other gradients of the step: DDP and FSDP then exchange it once, with them.
        """
        leaves, weights = dict(self.examples.states), []
        if torch.is_grad_enabled():
            leaves = {name: states.requires_grad_() for name, states in leaves.items()}
            weights = [weight for weight in module.parameters() if weight.requires_grad]
        read = {name: leaf.to(self.dtypes[name]) for name, leaf in leaves.items()}
        found = module.step_loss(replace(self.examples, states=read))
        gradients: Sequence[Tensor] = ()
        if torch.is_grad_enabled():
            gradients = torch.autograd.grad(
                found.total, [*leaves.values(), *weights], allow_unused=True, materialize_grads=True
            )
        return StepLoss(
            loss=replace(found, total=found.total.detach()),
            gradients=dict(zip(leaves, gradients, strict=False)),
            weights_loss=zero_with_gradient(weights, gradients[len(leaves) :]),
            token_factor=module.token_factor(self.examples),
        )


@dataclass(slots=True, kw_only=True)
class StepLoss:
    """The loss of a step's examples, and its gradient."""

    loss: LossSum
    """This process's part, without a graph and without token losses."""
    gradients: dict[str, Tensor]
    """(n, D) with respect to the states of all examples: of this process's part, then of all."""
    weights_loss: Tensor
    """0, with the gradient of this process's part with respect to the objective's own weights."""
    token_factor: Tensor | None
    """The factor of the token losses of all micro-batches."""

    def sum_gradients(self) -> None:
        """Add up the gradients of all processes' parts; all call it together."""
        for gradient in self.gradients.values():
            sum_over_processes(gradient)

    def loss_at(self, micro: Compared, rows: slice) -> Tensor:
        """A micro-batch's token losses, and 0 with the gradient at its states.

        `rows` are those of its examples among all.
        """
        gradients = [self.gradients[name][rows] for name in micro.states]
        total = zero_with_gradient(list(micro.states.values()), gradients)
        return total + self.token_part(micro)

    def token_part(self, micro: Compared) -> Tensor | float:
        """What the token losses of a micro-batch add to the loss."""
        if self.token_factor is None or micro.token_loss is None:
            return 0.0
        return self.token_factor.to(micro.token_loss.dtype) * micro.token_loss


_pytree.register_dataclass(
    StepLoss, field_names=["loss", "gradients", "weights_loss", "token_factor"]
)


def zero_with_gradient(tensors: Sequence[Tensor], gradients: Sequence[Tensor]) -> Tensor:
    """0, whose gradient with respect to the tensors is the given one."""
    total = torch.zeros((), device=tensors[0].device if tensors else None)
    for tensor, gradient in zip(tensors, gradients, strict=True):
        total = total + (tensor * gradient).sum()
    return total - total.detach()


def _exact(states: Tensor) -> Tensor:
    return states.to(torch.promote_types(states.dtype, torch.float32))
