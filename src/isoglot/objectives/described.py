"""What the knowledge tasks share: finding an entity's description among thousands of others.

    loss = -log( exp(q·k⁺) / Σ exp(q·k) )              XLM-K Eq. 5

Keys are descriptions through the encoder being trained, with gradient, as the query is: the one
that belongs to the query and the others of its micro-batch. A queue holds keys of earlier steps,
without gradient. No momentum encoder, no temperature, no normalisation; query and key have a head
each, two layers without bias (Eq. 1 and 2, 3 and 4).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from torch import Tensor, nn
from typing_extensions import override

from isoglot.errors import RecipeError, require
from isoglot.objectives.base import Encoded, LossSum, ObjectiveModule
from isoglot.objectives.contrast import (
    Negatives,
    Pooling,
    Projection,
    ProjectionConfig,
    Queue,
    QueueConfig,
    in_batch,
    pool,
)
from isoglot.objectives.whole import whole

if TYPE_CHECKING:
    from isoglot.models.encoder import Encoder
    from isoglot.types import IntArray, LongArray, Sequence, Vocabulary

Heads = Literal["paper", "batch-norm"]


def description(
    ids: IntArray, language: int, vocabulary: Vocabulary, site: str, **labels: LongArray
) -> Sequence:
    """A description as a sequence whose [CLS] is wanted back."""
    sequence = whole(ids, language, np.zeros(len(ids), np.int32), vocabulary)
    return replace(sequence, sites={site: np.zeros(1, np.int64)}, labels=labels)


class BatchNormHead(nn.Module):
    """The released code's head: batch normalisation after each layer, the last without weights."""

    def __init__(self, hidden: int, size: int) -> None:
        super().__init__()
        self.size = size
        self.first = nn.Linear(hidden, hidden, bias=False)
        self.first_norm = nn.BatchNorm1d(hidden, eps=1e-12)
        self.second = nn.Linear(hidden, size, bias=False)
        self.second_norm = nn.BatchNorm1d(size, eps=1e-12, affine=False)

    @override
    def forward(self, states: Tensor) -> Tensor:
        with torch.autocast(states.device.type, enabled=False):
            vectors = states.to(torch.promote_types(states.dtype, torch.float32))
            hidden = self._normed(self.first_norm, self.first(vectors)).relu()
            return self._normed(self.second_norm, self.second(hidden))

    def _normed(self, norm: nn.BatchNorm1d, vectors: Tensor) -> Tensor:
        """One vector has no variance: it is normalised as in evaluation."""
        norm.train(self.training and len(vectors) > 1)
        found: Tensor = norm(vectors)
        return found


def make_head(
    kind: Heads, hidden: int, size: int | None, *, normalize: bool
) -> Projection | BatchNormHead:
    """W2·ReLU(W1·), with batch normalisation if asked."""
    if kind == "batch-norm":
        return BatchNormHead(hidden, size or hidden)
    where: Literal["after", "no"] = "after" if normalize else "no"
    return Projection(ProjectionConfig(layers=2, size=size, bias=False, normalize=where), hidden)


def check_queue(name: str, queue: QueueConfig) -> None:
    """A queue cannot be filled beforehand with keys of an encoder that will have moved on."""
    require(queue.start != "filled", f"{name}.queue.start must be random or empty")


def check_layer(name: str, layer: int | None, encoder: Encoder) -> None:
    """The layer whose states are read must exist."""
    layers = int(encoder.model.config.num_hidden_layers)
    if layer is not None and not 0 <= layer <= layers:
        raise RecipeError(
            f"objectives.{name}.layer: {layer} does not exist in an encoder of {layers} layers: "
            f"choose one from 0 to {layers}."
        )


class DescriptionContrast(ObjectiveModule):
    """The model half that looks for descriptions: two heads and a queue of keys."""

    def __init__(
        self,
        encoder: Encoder,
        *,
        heads: Heads,
        size: int | None,
        queue: QueueConfig,
        normalize: bool,
    ) -> None:
        super().__init__()
        self.query_head, self.key_head = (
            make_head(heads, encoder.hidden_size, size, normalize=normalize) for _ in range(2)
        )
        self.queue = Queue(queue, self.key_head.size, numbers=1) if queue.size else None

    @override
    def begin(self) -> None:
        if self.queue is not None:
            self.queue.begin()

    @override
    def after_step(self, *, taken: bool) -> None:
        if self.queue is not None:
            self.queue.settle(taken=taken)

    def candidates(self, keys: Tensor, items: Tensor) -> Negatives:
        """The other keys of the micro-batch (n, D), which are items (n, 1), and the queue."""
        found = in_batch(keys, items, once=False)
        if self.queue is None:
            return found
        return found.joined(self.queue.negatives(len(keys)))

    def hold(self, keys: Tensor, items: Tensor) -> None:
        """Keep keys for the queue until the step ends."""
        if self.queue is not None:
            self.queue.hold(keys, items)

    def nothing(self, encoded: Encoded) -> LossSum:
        """The loss of a micro-batch without draws; other processes may wait for its keys."""
        if self.queue is not None:
            self.queue.hold(self.queue.entries[:0], self.queue.items[:0])
        nothing = encoded.losses.sum() * 0.0
        return LossSum(total=nothing, metrics={"accuracy": nothing.detach()})


def states_at(encoded: Encoded, site: str, how: Pooling = "cls") -> Tensor:
    """(n, D) the states at an objective's sites of a name, or the means of their sequences."""
    places = encoded.batch.sites[encoded.name][site]
    return pool(encoded.states, encoded.batch.rows, places, how)
