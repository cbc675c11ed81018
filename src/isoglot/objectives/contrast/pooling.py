"""From hidden states to contrasted vectors: pooling, projection, and the shared settings.

Pooling takes a sequence's first state ([CLS]) or the mean of its states. The projection is two
layers with a ReLU between them (PPA Eq. 2, after SimCLR), one linear map (InfoXLM), or none, with
L2 normalization before it (PPA), after it (MoCo, SimCLR), or not at all (InfoXLM); in float32.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from typing_extensions import override

from isoglot.errors import RecipeError
from isoglot.objectives.base import Objective
from isoglot.objectives.contrast.momentum import QueueConfig
from isoglot.ranges import Range, Temperature, check_ranges

if TYPE_CHECKING:
    from isoglot.models.encoder import Encoder
    from isoglot.objectives.base import ForwardResult
    from isoglot.types import IntArray, Rows

Pooling = Literal["cls", "mean"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContrastObjective(Objective):
    """The settings that contrastive objectives share."""

    pooling: Pooling = "cls"
    """A sentence's vector: the state of its first token, or the mean over all of its tokens."""
    layer: Annotated[int | None, Range(-1000, 1000)] = None
    """The layer whose hidden states are read (0: the embeddings); none means the last."""
    temperature: Temperature = 0.05
    """Dot products are divided by it."""
    queue: QueueConfig = field(default_factory=QueueConfig)
    """Keys of earlier steps as negatives."""
    negatives: Literal["step", "micro_batch"] = "step"
    """In-batch negatives (and batch normalization): over the whole step, whatever its split, at the
    cost of a second forward pass where a process has several micro-batches; or each micro-batch by
    itself."""

    @override
    def lengths(self, sizes: IntArray) -> IntArray:
        return sizes + 2


def check_layer(name: str, layer: int | None, encoder: Encoder) -> None:
    """The layer whose hidden states an objective reads must exist."""
    layers = int(encoder.model.config.num_hidden_layers)
    if layer is not None and not 0 <= layer <= layers:
        raise RecipeError(
            f"objectives.{name}.layer: {layer} does not exist in an encoder of {layers} layers: "
            f"choose one from 0 to {layers}."
        )


def pool(states: Tensor, rows: Rows, places: Tensor, how: Pooling) -> Tensor:
    """(B, L, D) states -> (n, D), for the sequences whose first tokens are at flat indices (n,).

    The mean includes special tokens, as in sentence-transformers.
    """
    if how == "cls":
        return states.flatten(0, 1)[places]
    owners, number = _owners(rows.sequences, places), len(places)
    tokens = states.flatten(0, 1).to(torch.promote_types(states.dtype, torch.float32))
    # ones beside each state count the tokens; four, as kernels read four numbers at a time
    tokens = F.pad(tokens, (0, 4), value=1.0)
    # token by token: a copy of its row for each sequence would not fit into memory
    sums = torch.zeros_like(tokens).index_add(0, owners, tokens)[:number]
    return sums[:, :-4] / sums[:, -1:]


def pooled_states(result: ForwardResult, *markers: str, how: Pooling = "cls") -> tuple[Tensor, ...]:
    """(n, D) for each marker: the states there, or the means of their sequences; n may be 0.

    Several markers of different sequences are pooled in one pass over the tokens.
    """
    own, nothing = result.batch.markers.get(result.name, {}), _no_numbers(result)
    places = [own.get(marker, nothing) for marker in markers]
    pooled = pool(result.hidden_states, result.batch.rows, torch.cat(places), how)
    return torch.split(pooled, [len(one) for one in places])


def labels_of(result: ForwardResult, *names: str) -> tuple[Tensor, ...]:
    """Labels of an objective's sequences in a micro-batch; of none, tensors without numbers."""
    labels = result.batch.labels.get(result.name, {})
    nothing = _no_numbers(result)
    return tuple(labels.get(name, nothing) for name in names)


def _no_numbers(result: ForwardResult) -> Tensor:
    return result.hidden_states.new_zeros(0, dtype=torch.int64)


def _owners(sequences: Tensor, places: Tensor) -> Tensor:
    """(B * L,) which of the n sequences each token belongs to; other tokens get n, n + 1, ....

    Numbers of their own: with deterministic algorithms a GPU adds the values of one number one
    after the other, and the other tokens (text beside pairs, padding) may be half of a step.
    """
    length, number = sequences.shape[1], len(places)
    rows = torch.arange(len(sequences), device=sequences.device)[:, None]
    # a number for each sequence of the batch: a row has at most as many as tokens, and one more
    # for padding, whose sequence is -1
    numbers = (rows * (length + 1) + sequences + 1).flatten()
    owner_of = torch.full((len(sequences) * (length + 1),), number, device=sequences.device)
    owner_of[numbers[places]] = torch.arange(number, device=sequences.device)
    owners = owner_of[numbers]
    is_other = owners == number
    return torch.where(is_other, number - 1 + is_other.cumsum(0), owners)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectionConfig:
    """The shape of the projection head."""

    layers: Literal[0, 1, 2] = 2
    """Two layers with a ReLU between, one linear map, or none."""
    size: Annotated[int | None, Range(1, 2**17)] = 300
    """Width of the projected vectors; none means the encoder's."""
    bias: bool = False
    """Give its layers biases."""
    normalize: Literal["before", "after", "none"] = "before"
    """L2 normalization before the projection, after it, or none."""

    def __post_init__(self) -> None:
        check_ranges(self)


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
