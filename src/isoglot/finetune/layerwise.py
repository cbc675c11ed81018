"""Layer-wise decay of the learning rate: the lower a layer, the less it is changed.

The head has the full rate, the top layer the rate times the decay, the one below it the decay
squared, the embeddings the least (as in ERNIE-M's fine-tuning, which follows ELECTRA's).
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import nn

    from isoglot.finetune.settings import FinetuneConfig

_LAYER = re.compile(r"\b(?:layers?|attentions|ffns|layer_norm[12])\.(\d+)\.")
"""The parts of a layer lie together, or, in XLM, in a list of each kind."""


def parameter_groups(model: Any, settings: FinetuneConfig) -> list[dict[str, Any]]:
    """The optimizer's groups: by depth, and matrices (decayed) apart from biases and norms."""
    layers = int(model.config.num_hidden_layers)
    prefix = f"{model.base_model_prefix}."
    groups: dict[tuple[int, bool], list[nn.Parameter]] = defaultdict(list)
    for name, weight in model.named_parameters():
        if weight.requires_grad:
            groups[depth(name, prefix, layers), weight.ndim >= 2].append(weight)
    return [
        {
            "params": weights,
            "lr": settings.learning_rate * settings.layer_decay**steps_down,
            "weight_decay": settings.weight_decay if is_matrix else 0.0,
        }
        for (steps_down, is_matrix), weights in sorted(groups.items(), key=lambda item: item[0])
    ]


def depth(name: str, prefix: str, layers: int) -> int:
    """Steps down from the head (0): 1 for the top layer, layers + 1 for the embeddings."""
    if not name.startswith(prefix):
        return 0
    inside = name.removeprefix(prefix)
    numbered = _LAYER.search(inside)
    if numbered is not None:
        return layers - int(numbered[1])
    # poolers and final norms stand above the layers
    return layers + 1 if "emb" in inside else 0
