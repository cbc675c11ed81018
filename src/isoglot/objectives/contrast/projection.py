"""The head between a sentence's pooled state and the vector that is contrasted.

Two layers with a ReLU between them (PPA Eq. 2, after SimCLR), one linear map (InfoXLM), or none;
L2-normalised before it (PPA), after it (MoCo, SimCLR), or not at all (InfoXLM). Runs in float32.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from typing_extensions import override

from isoglot.errors import require


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectionConfig:
    """The shape of the head."""

    layers: Literal[0, 1, 2] = 2
    """Two layers with a ReLU between, one linear map, or none."""
    size: int | None = 300
    """Width of the projected vectors; none means the encoder's."""
    bias: bool = False
    """Give its layers biases."""
    normalize: Literal["before", "after", "no"] = "before"
    """Where vectors are brought to length 1: before the projection, after it, or not at all."""

    def __post_init__(self) -> None:
        require(self.size is None or self.size >= 1, "projection.size must be 1 or more, or none")


class Projection(nn.Module):
    """From pooled states (n, hidden) to vectors (n, size)."""

    def __init__(self, settings: ProjectionConfig, hidden: int) -> None:
        super().__init__()
        self.normalize = settings.normalize
        self.size = hidden if settings.layers == 0 else settings.size or hidden
        widths = [hidden] * settings.layers + [self.size]
        self.layers = nn.ModuleList(
            nn.Linear(a, b, bias=settings.bias) for a, b in itertools.pairwise(widths)
        )

    def linear(self) -> tuple[nn.Linear, ...]:
        """Its layers, in order."""
        return tuple(layer for layer in self.layers if isinstance(layer, nn.Linear))

    @override
    def forward(self, states: Tensor) -> Tensor:
        with torch.autocast(states.device.type, enabled=False):
            vectors = states.to(torch.promote_types(states.dtype, torch.float32))
            if self.normalize == "before":
                vectors = F.normalize(vectors, dim=-1)
            for number, layer in enumerate(self.layers):
                vectors = layer(vectors.relu() if number else vectors)
            if self.normalize == "after":
                vectors = F.normalize(vectors, dim=-1)
            return vectors
