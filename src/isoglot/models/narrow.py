"""Norms that hand on what they computed in the arithmetic of the products around them.

Under automatic mixed precision torch computes norms in float32, which is right, and hands float32
on, which makes the residual stream of a model that normalizes it (BERT, XLM-R) float32: twice the
memory and twice the traffic of all that is added between the products. A model that is bf16
throughout hands on bf16. So do these: the norm itself is computed in float32, its result is rounded
once. Where norms stand beside the stream and embeddings enter it as they are (EuroBERT), it stays.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from torch import nn


def narrow_norms(model: nn.Module, *, only_on_gpu: bool = False) -> None:
    """Let all norms of a model hand on the autocast's arithmetic, where there is one."""
    rounded = functools.partial(_rounded, only_on_gpu=only_on_gpu)
    for module in model.modules():
        if type(module).__name__.endswith("Norm"):
            module.register_forward_hook(rounded)


def _rounded(
    _module: nn.Module, _inputs: tuple[Tensor, ...], output: Tensor, *, only_on_gpu: bool
) -> Tensor:
    device = output.device.type
    if torch.is_autocast_enabled(device) and (output.is_cuda or not only_on_gpu):
        return output.to(torch.get_autocast_dtype(device))
    return output
