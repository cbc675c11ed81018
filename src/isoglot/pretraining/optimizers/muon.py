"""Muon for the matrices of transformer layers, AdamW for all other weights.

Muon (Jordan et al., 2024) orthogonalizes the momentum of a weight matrix before it is applied. It
is meant for matrices between two hidden states: projections of attention and feed-forward layers.
Embeddings, LM head, objectives' heads, norms and biases have AdamW:

    encoder.layer.0.attention.self.query.weight   (D, D)   Muon
    embeddings.word_embeddings.weight             (V, D)   AdamW
    encoder.layer.0.output.LayerNorm.weight       (D,)     AdamW

Both optimizers are torch's. Muon's updates are scaled to the root mean square of AdamW's (Liu et
al., 2025), so that one learning rate, one schedule and one weight decay serve both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from typing_extensions import override

from isoglot.models.sharding import transformer_layers

if TYPE_CHECKING:
    from collections.abc import Callable

    from isoglot.pretraining.optimizers.optimizer import OptimizerConfig


def layer_matrices(module: nn.Module) -> set[Tensor]:
    """The weights of the linear layers inside of transformer layers."""
    return {
        part.weight
        for layer in transformer_layers(module)
        for part in layer.modules()
        if isinstance(part, nn.Linear)
    }


class MuonWithAdamW(torch.optim.Optimizer):
    """Two optimizers that step together; groups and state are those of both."""

    def __init__(
        self,
        matrices: list[nn.Parameter],
        groups: list[dict[str, Any]],
        config: OptimizerConfig,
    ) -> None:
        """Make an optimizer of the matrices, and of groups of the other weights.

        Args:
            matrices: weights that Muon trains, at least one.
            groups: groups of the other weights (`params`, `weight_decay`), which AdamW trains.
            config: learning rate, weight decay, and the moments of each.
        """
        muon = torch.optim.Muon(
            matrices,
            lr=config.learning_rate,
            weight_decay=config.weight_decay,
            momentum=config.muon_momentum,
            adjust_lr_fn="match_rms_adamw",
        )
        adamw = torch.optim.AdamW(
            groups, lr=config.learning_rate, betas=config.betas, eps=config.eps, fused=True
        )
        super().__init__([{"params": matrices}, *({**group} for group in groups)], {})
        self.param_groups = [*muon.param_groups, *adamw.param_groups]
        muon.state = adamw.state = self.state
        self._optimizers = (muon, adamw)

    @override
    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        assert closure is None
        for optimizer in self._optimizers:
            optimizer.step()
        return None
