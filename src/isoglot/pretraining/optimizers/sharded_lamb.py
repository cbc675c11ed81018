"""LAMB for weights that are split over processes (FSDP): pytorch_optimizer's, with whole norms.

LAMB (You et al., 2020) scales the update of each weight by the ratio of two norms, that of the
weight and that of the update. Of both a process holds a part, so squared norms of parts are added
up over processes, all weights at once. All else is the same for each element.
"""

# ruff: noqa: SLF001 (torch's operations on lists of tensors, as `Lamb` has them)

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from pytorch_optimizer import Lamb
from torch.distributed.tensor import DTensor
from typing_extensions import override

from isoglot.models.sharding import local_part

if TYPE_CHECKING:
    from torch import Tensor


class ShardedLamb(Lamb):
    """LAMB with the norms of whole weights."""

    @override
    def _step_foreach(
        self,
        group: dict[str, Any],
        params: list[Tensor],
        grads: list[Tensor],
        grad_norm: Tensor | float,
        exp_avgs: list[Tensor],
        exp_avg_sqs: list[Tensor],
        step_size: float | Tensor,
    ) -> None:
        """One update of some weights; the operations are those of `Lamb`, in its order."""
        assert not self.pre_norm
        assert not self.maximize
        beta1, beta2 = group["betas"]
        weights, gradients = list(map(local_part, params)), list(map(local_part, grads))
        first, second = list(map(local_part, exp_avgs)), list(map(local_part, exp_avg_sqs))
        decay = group["weight_decay"]
        if group["weight_decouple"]:
            self.apply_weight_decay_foreach(
                params=weights,
                grads=gradients,
                lr=group["lr"],
                weight_decay=decay,
                weight_decouple=True,
                fixed_decay=group["fixed_decay"],
            )
        torch._foreach_mul_(first, beta1)
        torch._foreach_add_(first, gradients, alpha=1 - beta1 if group["grad_averaging"] else 1.0)
        torch._foreach_mul_(second, beta2)
        torch._foreach_addcmul_(second, gradients, gradients, value=1.0 - beta2)
        updates = torch._foreach_sqrt(second)
        torch._foreach_add_(updates, group["eps"])
        torch._foreach_reciprocal_(updates)
        torch._foreach_mul_(updates, first)
        if not group["weight_decouple"] and decay > 0:
            torch._foreach_add_(updates, weights, alpha=decay)
        weight_norms, update_norms = _whole_norms(params, weights, list(updates))
        weight_norms.clamp_(max=self.clamp)
        ratios = torch.where(
            (weight_norms != 0) & (update_norms != 0),
            weight_norms / (update_norms + group["eps"]),
            1.0,
        )
        for number, weight in enumerate(params):
            self.state[weight]["weight_norm"] = weight_norms[number]
            self.state[weight]["adam_norm"] = update_norms[number]
            self.state[weight]["trust_ratio"] = ratios[number]
        torch._foreach_mul_(updates, list(ratios.unbind()))
        torch._foreach_mul_(updates, -step_size)
        torch._foreach_add_(weights, updates)


def _whole_norms(
    params: list[Tensor], weights: list[Tensor], updates: list[Tensor]
) -> tuple[Tensor, Tensor]:
    """(n,) norms of whole weights and of their whole updates, from the parts of this process."""
    parts = torch.stack([*torch._foreach_norm(weights), *torch._foreach_norm(updates)])
    squared = parts.double().square()
    assert isinstance(params[0], DTensor)
    dist.all_reduce(squared, group=params[0].device_mesh.get_group("shard"))
    return tuple(squared.sqrt().to(parts.dtype).chunk(2))  # type: ignore[return-value]
