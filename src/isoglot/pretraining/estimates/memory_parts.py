"""Bytes of the parts of a run on one GPU: weights, gradients, moments, logits.

All are calculated from shapes and settings (`memory_estimate.py` adds activations).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from isoglot.models.lm_head import MULTIPLE
from isoglot.models.sharding import transformer_layers
from isoglot.pretraining.memory_saving import bf16_weights
from isoglot.pretraining.optimizers.low_bit import moment_bytes, part_values
from isoglot.pretraining.optimizers.muon import layer_matrices

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torch import nn

    from isoglot.models.config import ModelConfig
    from isoglot.pretraining.config import PretrainConfig
    from isoglot.pretraining.estimates.activations import Passes
    from isoglot.pretraining.train_module import TrainModule

_UPDATE_BYTES = 24
"""Temporary bytes a value while torchao updates a part of a weight: its gradient, moments and new
value in float32, and random bits."""


class ModelBytes:
    """Bytes that do not depend on the batch."""

    def __init__(
        self, config: PretrainConfig, module: TrainModule, stage: int, processes: int
    ) -> None:
        self._low = set(bf16_weights(module)) if config.memory.weights == "bf16" else set()
        parts = config.distributed.num_parts(processes)
        trained = module.weights_of(config.objectives_in(stage))
        trained = [weight for weight in dict.fromkeys(trained) if weight.requires_grad]
        of_objectives = module.objectives.parameters()
        frozen = {weight for weight in of_objectives if not weight.requires_grad}
        own = [weight for weight in module.parameters() if weight not in frozen]
        self.num_parameters = sum(weight.numel() for weight in own)
        self.weights = self._bytes(own, parts)
        self.gradients = self._bytes(trained, parts)
        if parts > 1 and config.distributed.accumulate == "whole":
            self.gradients = self._bytes(trained, 1)
        self.momentum_encoders = self._bytes(frozen, parts) + sum(
            buffer.nbytes for buffer in module.objectives.buffers()
        )
        if config.averaging is not None:
            averaged = [weight for weight in module.parameters() if weight.requires_grad]
            self.momentum_encoders += self._bytes(averaged, 1)
        self.host = self.update_bytes = 0
        if config.memory.offload_optimizer:
            self.moments, self.host = 0, 12 * sum(weight.numel() for weight in trained)
        elif config.memory.needs_torchao:
            shapes = [_part(weight.shape, parts) for weight in trained]
            self.moments = sum(moment_bytes(shape, config.memory) for shape in shapes)
            self.update_bytes = _UPDATE_BYTES * max(map(part_values, shapes))
        else:
            by_muon = config.optimizer_in(stage).name == "muon"
            matrices = layer_matrices(module) if by_muon else set()
            self.moments = sum(
                (4 if weight in matrices else 8) * _part(weight.shape, parts).numel()
                for weight in trained
            )
        self.exchange = self.host_first = 0
        if parts > 1:
            self.exchange = self._gathered(module)
            self.host_first = self._bytes(module.parameters(), 1) + sum(
                buffer.nbytes for buffer in module.buffers()
            )
        if processes > 1 and parts == 1:
            self.exchange = self.gradients  # DDP's buckets

    def _bytes(self, weights: Iterable[nn.Parameter], parts: int) -> int:
        return sum(
            _part(weight.shape, parts).numel() * (2 if weight in self._low else 4)
            for weight in weights
        )

    def _gathered(self, module: TrainModule) -> int:
        """Whole weights of the root and of two layers, and the gradient of one layer."""
        layers = transformer_layers(module)
        inside = {weight for layer in layers for weight in layer.parameters()}
        root = [weight for weight in module.parameters() if weight not in inside]
        largest = max((self._bytes(layer.parameters(), 1) for layer in layers), default=0)
        return self._bytes(root, 1) + 3 * largest


def _part(shape: torch.Size, parts: int) -> torch.Size:
    """The rows of a weight that one of several processes has."""
    if parts == 1 or not shape:
        return shape
    return torch.Size((-(-shape[0] // parts), *shape[1:]))


class LogitBytes:
    """The LM head in the backward pass: what is alive while the output embeddings' gradient is."""

    def __init__(
        self, settings: ModelConfig, module: TrainModule, passes: Passes, num_targets: int
    ) -> None:
        output = module.encoder.model.get_output_embeddings()
        vocabulary, width = output.weight.shape
        padded = vocabulary + (-vocabulary % MULTIPLE if passes.on_gpu else 0)
        size, own = (2 if passes.bf16 else 4), (2 if passes.bf16_weights else 4)
        at_once = min(num_targets, settings.lm_head.chunk_size)
        copies = padded != vocabulary or size != own
        self.gradient = vocabulary * width * own
        """Of the output embeddings, kept until that of the input embeddings is added."""
        product = padded * width * size if copies else 0
        self.bytes = (
            2 * at_once * padded * size  # logits, and their gradient
            + num_targets * width * 16  # the states at target positions and their transform
            + product  # the padded copy, or that in another type
            + product  # its gradient, before it is cut to size
            + self.gradient
        )
