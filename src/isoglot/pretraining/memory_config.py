"""Settings that trade speed or precision for memory, and which of them go together.

    activation_checkpointing   activations of a layer: recomputed in the backward pass
    weights, gradients         4 + 4 bytes a weight (float32), or 2 + 2 (bf16)
    moments                    8 bytes a weight (float32), 4 (bf16), about 2 (int8)
    offload_optimizer          moments, and float32 weights behind bf16 ones, in the host's memory

With `weights: bf16` an update is rounded stochastically (torchao), as most updates are smaller than
the distance between two neighboring bf16 numbers and would be lost by rounding to the nearest.
With `offload_optimizer` the host keeps the weights in float32 instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from isoglot.errors import require

if TYPE_CHECKING:
    from isoglot.pretraining.optimizers.optimizer import OptimizerConfig

MAX_BF16_BETA2 = 1 - 2**-7
"""A bf16 number that decays by less than 2^-7 of itself may be rounded back to where it was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryConfig:
    """How a run saves memory."""

    activation_checkpointing: Literal["none", "blocks"] = "none"
    """`blocks`: keep only the input of each layer and compute the layer again in the backward
    pass; a third more computation, the same gradient."""
    weights: Literal["float32", "bf16"] = "float32"
    """Type of the model's weights and gradients; bf16 ones are updated with stochastic rounding,
    or with `offload_optimizer` from float32 weights on the host."""
    moments: Literal["float32", "bf16", "int8"] = "float32"
    """Type of AdamW's two moments; int8: with a float32 scale for each 256 values (torchao)."""
    offload_optimizer: bool = False
    """Keep AdamW's moments in the host's memory and update there; slower, for one process or
    DDP."""

    @property
    def needs_torchao(self) -> bool:
        """Is torchao's optimizer used?"""
        low_bit = self.weights != "float32" or self.moments != "float32"
        return low_bit and not self.offload_optimizer

    def check(self, optimizers: tuple[OptimizerConfig, ...], precision: str, strategy: str) -> None:
        """Refuse settings that do not go together, each with a sentence.

        Args:
            optimizers: those of all stages.
            precision: of the recipe.
            strategy: how processes share the model (`distributed.strategy`).
        """
        require(
            self.weights == "float32" or precision != "float32",
            "memory.weights: bf16 needs mixed precision: leave precision at auto, or set bf16.",
        )
        require(
            not self.offload_optimizer or self.moments == "float32",
            f"memory.offload_optimizer keeps moments in float32 on the host: leave memory.moments: "
            f"{self.moments} out.",
        )
        require(
            not self.offload_optimizer or strategy == "ddp",
            f"memory.offload_optimizer is for one process or distributed.strategy: ddp, and "
            f"{strategy} shards the moments: leave it out, or use memory.moments: int8.",
        )
        require(
            self.weights == "float32" or strategy == "ddp",
            f"memory.weights: bf16 is for one GPU or distributed.strategy: ddp: {strategy} splits "
            "float32 weights over processes and computes with bf16 copies, so leave it out.",
        )
        for optimizer in optimizers:
            require(
                optimizer.name == "adamw" or not (self.needs_torchao or self.offload_optimizer),
                f"memory.weights, memory.moments and memory.offload_optimizer are for AdamW: set "
                f"optimizer.name: adamw instead of {optimizer.name}, or leave them out.",
            )
            require(
                optimizer.name != "muon" or strategy == "ddp",
                f"optimizer.name: muon needs whole matrices, and distributed.strategy: {strategy} "
                "splits them: set distributed.strategy: ddp, or optimizer.name: adamw.",
            )
            require(
                self.moments != "bf16" or optimizer.betas[1] <= MAX_BF16_BETA2,
                f"memory.moments: bf16 would round away the decay of the second moment with "
                f"optimizer.betas: [{optimizer.betas[0]}, {optimizer.betas[1]}]: set "
                "memory.moments: int8, or a second beta of at most 0.99.",
            )

    def deciding(self) -> tuple[object, ...]:
        """The settings that change the numbers of a run; nothing where all are the default.

        Activation checkpointing computes the same, and so does a float32 update on the host.
        """
        numbers = (self.weights, self.moments, self.weights == "bf16" and self.offload_optimizer)
        return () if numbers == ("float32", "float32", False) else ("memory", *numbers)
