"""The settings of `MemoryConfig` that change a model: recomputed layers, bf16 weights.

Matrices of the model (embeddings, projections) are what becomes bf16; biases and norms, objectives'
heads and momentum encoders, whose moving averages change by less than bf16 can hold, stay float32.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

import torch

from isoglot.errors import RecipeError
from isoglot.models.recompute import checkpoint_activations
from isoglot.pretraining.train_module import Seq2SeqTrainModule

if TYPE_CHECKING:
    from torch import nn

    from isoglot.models.config import ModelConfig
    from isoglot.pretraining.memory_config import MemoryConfig
    from isoglot.pretraining.train_module import TrainModule


def build_device(
    model: ModelConfig, memory: MemoryConfig, device: torch.device
) -> AbstractContextManager[object]:
    """Within: where a model is built.

    One from scratch with bf16 weights is made on its device: random weights of billions take
    minutes on a CPU. Others are made on the CPU, so that their weights are the same on any device.
    """
    if memory.weights == "bf16" and model.init_from is None:
        found: AbstractContextManager[object] = torch.device(device)
        return found
    return nullcontext()


def save_memory(module: TrainModule, memory: MemoryConfig, *, mixed_precision: str) -> None:
    """Apply the settings to the models that are trained.

    Args:
        module: as it was built, in float32.
        memory: the settings.
        mixed_precision: accelerate's word for what the run computes in: bf16 or no.

    Raises:
        RecipeError: bf16 weights without bf16 computation.
    """
    if memory.weights == "bf16":
        if mixed_precision != "bf16":
            raise RecipeError(
                "memory.weights: bf16 needs mixed precision, which precision: auto has only on a "
                "GPU: set precision: bf16, or leave memory.weights out."
            )
        for weight in bf16_weights(module):
            weight.data = weight.data.to(torch.bfloat16)
    if memory.activation_checkpointing == "blocks":
        checkpoint_activations(module.encoder.model.base_model)
        if isinstance(module, Seq2SeqTrainModule):
            checkpoint_activations(module.seq2seq.model.decoder)


def bf16_weights(module: TrainModule) -> list[nn.Parameter]:
    """The weights that `memory.weights: bf16` is about."""
    models = [module.encoder.model]
    if isinstance(module, Seq2SeqTrainModule):
        models.append(module.seq2seq.model)
    found = dict.fromkeys(weight for model in models for weight in model.parameters())
    return [weight for weight in found if weight.ndim >= 2]
