"""The optimizer's groups: learning rates by layer, and weight decay for matrices alone."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import nn

    from isoglot.finetuning.settings import FinetuneConfig

_LAYER = re.compile(r"\b(?:layers?|attentions|ffns|layer_norm[12])\.(\d+)\.")
"""Parameter names have `layer.N.`; XLM's have `attentions.N.`, `ffns.N.` and so on."""


def parameter_groups(model: Any, settings: FinetuneConfig) -> list[dict[str, Any]]:
    """The optimizer's groups: by depth, and matrices (with weight decay) apart from vectors.

    The head has the full learning rate, the top layer the rate times the decay, the layer below it
    the decay squared, the embeddings the lowest.
    """
    num_layers = int(model.config.num_hidden_layers)
    prefix = f"{model.base_model_prefix}."
    groups: dict[tuple[int, bool], list[nn.Parameter]] = defaultdict(list)
    for name, weight in model.named_parameters():
        if weight.requires_grad:
            groups[layer_depth(name, prefix, num_layers), weight.ndim >= 2].append(weight)
    return [
        {
            "params": weights,
            "lr": settings.learning_rate * settings.layerwise_lr_decay**depth,
            "weight_decay": settings.weight_decay if is_matrix else 0.0,
        }
        for (depth, is_matrix), weights in sorted(groups.items(), key=lambda item: item[0])
    ]


def layer_depth(name: str, prefix: str, num_layers: int) -> int:
    """0 for the head, 1 for the top layer, `num_layers` + 1 for the embeddings."""
    if not name.startswith(prefix):
        return 0
    inside = name.removeprefix(prefix)
    numbered = _LAYER.search(inside)
    if numbered is not None:
        return num_layers - int(numbered[1])
    # poolers and final norms are above the layers
    return num_layers + 1 if "emb" in inside else 0
