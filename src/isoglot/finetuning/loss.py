"""The loss of a batch of windows, which padding does not change.

Losses of labels are those of transformers' models. Of an answer's start and end, these take the
softmax over all positions, so that the loss of a window depends on the longest window of its batch;
here padding is left out: the loss of a batch is the mean of the losses of its windows alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor

_ENDS = {"start_logits": "start_positions", "end_logits": "end_positions"}


def batch_loss(model: Any, inputs: Mapping[str, Tensor]) -> Tensor:
    """The mean loss over the windows of a batch, or over its labeled tokens."""
    if not set(_ENDS.values()) <= inputs.keys():
        loss: Tensor = model(**inputs).loss
        return loss
    others = {name: tensor for name, tensor in inputs.items() if name not in _ENDS.values()}
    output = model(**others)
    padding = inputs["attention_mask"] == 0
    losses = []
    for name, target in _ENDS.items():
        logits = output[name].float() if output[name].dtype.itemsize < 4 else output[name]
        logits = logits.masked_fill(padding, torch.finfo(logits.dtype).min)
        losses.append(F.cross_entropy(logits, inputs[target]))
    return torch.stack(losses).mean()
