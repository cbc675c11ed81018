"""An encoder without its upper layers: the states of a middle layer as a plain transformers model.

Middle layers of a masked language model often retrieve translations better than the last one.
Post-norm models (XLM-R, BERT, ALBERT) give the middle layer's states as they are; pre-norm models
(ModernBERT, EuroBERT) apply their final norm to them.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import torch
from transformers import AutoModel

from isoglot.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor, nn

_FINAL_NORMS = ("final_norm", "norm")
"""Names of the norm after the last layer, of the base models that have one."""


def truncated_states(base: Any, hidden_states: Sequence[Tensor], layer: int) -> Tensor:
    """(B, L, D) the last states of the model that ends after a layer (0: its embeddings).

    `hidden_states` are transformers' `output_hidden_states` of the whole model.
    """
    norm = _final_norm(base)
    if layer == len(hidden_states) - 1 or norm is None:
        return hidden_states[layer]
    states: Tensor = norm(hidden_states[layer])
    return states


@torch.no_grad()
def truncate(base: Any, num_layers: int) -> Any:
    """A copy of an encoder that ends after `num_layers`; its weights are shared, not copied.

    Raises:
        ModelError: it would not give the states of that layer.
    """
    if num_layers == base.config.num_hidden_layers:
        return base
    config = copy.deepcopy(base.config)
    config.num_hidden_layers = num_layers
    if getattr(config, "layer_types", None):
        config.layer_types = list(config.layer_types)[:num_layers]
    with torch.device("meta"):
        short = AutoModel.from_config(config, dtype=base.dtype)
    weights = base.state_dict()
    own = {name: weights[name] for name in short.state_dict() if name in weights}
    short.load_state_dict(own, assign=True)
    _copy_buffers(base, short)
    short.eval()
    ids = torch.arange(8, 16)[None] % config.vocab_size
    expected = truncated_states(
        base, base(input_ids=ids, output_hidden_states=True).hidden_states, num_layers
    )
    if not torch.allclose(short(input_ids=ids).last_hidden_state, expected, atol=1e-5, rtol=1e-4):
        raise ModelError(
            f"A {config.model_type} model cannot be cut after layer {num_layers}. Export its last "
            "layer: --layers last."
        )
    return short


def _copy_buffers(base: nn.Module, short: nn.Module) -> None:
    """Give the copy the buffers that state dicts leave out (position ids, rotary frequencies)."""
    own = dict(base.named_buffers())
    for name, _ in list(short.named_buffers()):
        parent, _, last = name.rpartition(".")
        setattr(short.get_submodule(parent), last, own[name])


def _final_norm(base: Any) -> nn.Module | None:
    found = (getattr(base, name, None) for name in _FINAL_NORMS)
    return next((norm for norm in found if norm is not None), None)
