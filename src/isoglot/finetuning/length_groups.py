"""A batch in parts of similar lengths, whose losses add up to the loss of the whole batch.

A batch of random windows is padded to its longest. On a CPU every padding token takes the time of a
real one, so a batch is split: shortest windows first, a few hundred tokens at a time. The loss of a
batch is a mean over windows, or over labeled tokens; the loss of a part counts with its share.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from isoglot.models.length_batches import batches_by_length
from isoglot.types import IGNORE

if TYPE_CHECKING:
    from collections.abc import Mapping

    Inputs = Mapping[str, Tensor]

_MASK = "attention_mask"


class Part(NamedTuple):
    """Some windows of a batch."""

    inputs: dict[str, Tensor]
    share: float
    """Of the targets of the whole batch."""


def length_groups(batch: Inputs, max_tokens: int) -> list[Part]:
    """The parts of a padded batch, of at most `max_tokens` tokens with padding.

    A tensor has the windows in its first dimension; those as long as the attention mask have the
    tokens in their last. A part without a target is left out.
    """
    mask = batch[_MASK]
    length = mask.shape[-1]
    # windows with several sequences (multiple choice) are as long as their longest
    positions = torch.arange(1, length + 1, device=mask.device)
    ends = (mask * positions).amax(dim=-1).view(len(mask), -1).amax(dim=1)
    sequences = mask.shape[1] if mask.ndim > 2 else 1
    total = _num_targets(batch)
    parts: list[Part] = []
    for indices in batches_by_length(ends.cpu().numpy(), max(1, max_tokens // sequences)):
        chosen = torch.from_numpy(indices).to(mask.device)
        longest = int(ends[chosen].amax())
        inputs = {
            name: _shortened(tensor[chosen], length, longest) for name, tensor in batch.items()
        }
        number = _num_targets(inputs)
        if number:
            parts.append(Part(inputs, number / total))
    return parts


def _shortened(tensor: Tensor, length: int, longest: int) -> Tensor:
    is_of_tokens = tensor.ndim > 1 and tensor.shape[-1] == length
    return tensor[..., :longest].contiguous() if is_of_tokens else tensor


def _num_targets(batch: Inputs) -> int:
    """Numbers that the loss is a mean over: labeled tokens, or windows."""
    labels = batch.get("labels")
    if labels is None or labels.ndim < 2:
        return len(batch[_MASK])
    return int((labels != IGNORE).sum())
