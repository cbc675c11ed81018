"""Contrast of entity descriptions: the settings and the model half of XLM-K's two tasks.

    loss = -log( exp(q·k⁺) / Σ exp(q·k) )              XLM-K Eq. 5

Keys are descriptions, encoded with gradient by the encoder being trained, as queries are: the
query's own and the others of its step. A queue holds keys of earlier steps, without
gradient. No momentum encoder, no temperature, no normalization; query and key have a head each, two
layers without bias (Eq. 1 and 2, 3 and 4).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor, nn
from typing_extensions import override

from isoglot.errors import ModelError, require
from isoglot.models.objective_heads import FILE as HEADS_FILE
from isoglot.models.objective_heads import ObjectiveHead
from isoglot.objectives.contrast.info_nce import Negatives, in_batch_negatives
from isoglot.objectives.contrast.momentum import Queue, QueueModule
from isoglot.objectives.contrast.pooling import (
    ContrastObjective,
    Pooling,
    Projection,
    ProjectionConfig,
)
from isoglot.objectives.masking import build_sequence
from isoglot.ranges import Range, Temperature

if TYPE_CHECKING:
    from isoglot.models.encoder import Encoder
    from isoglot.types import IntArray, LongArray, Sequence, Vocabulary


@dataclass(frozen=True, slots=True, kw_only=True)
class DescriptionObjective(ContrastObjective):
    """The settings of objectives that find descriptions."""

    exports_head: ClassVar[bool] = True

    temperature: Temperature = 1.0
    """Dot products are divided by it; XLM-K has none."""
    projection_size: Annotated[int | None, Range(1, 2**17)] = None
    """Width of the contrasted vectors; none means the encoder's."""
    normalize: bool = False
    """L2-normalize the contrasted vectors; XLM-K does not."""

    @override
    def __post_init__(self) -> None:
        ContrastObjective.__post_init__(self)
        # filled beforehand, it would hold keys of an encoder that has since been trained
        require(self.queue.start != "filled", f"{self.name}.queue.start must be random or empty")

    @override
    def compares_examples(self) -> bool:
        return self.negatives == "micro_batch"


class DescriptionContrast(QueueModule):
    """The model half of objectives that find descriptions: two heads and a queue of keys."""

    def __init__(
        self, settings: DescriptionObjective, encoder: Encoder, *, batch_norm: bool = False
    ) -> None:
        super().__init__()
        self.layer, self.whole_step = settings.layer, settings.negatives == "step"
        self._head_settings: dict[str, Any] = {
            "layer": settings.layer,
            "pooling": settings.pooling,
            "projection_size": settings.projection_size or encoder.hidden_size,
            "normalize": settings.normalize,
            "temperature": settings.temperature,
            "batch_norm": batch_norm,
        }
        self.query_head, self.key_head = (
            build_head(
                settings.projection_size,
                encoder.hidden_size,
                normalize=settings.normalize,
                batch_norm=batch_norm,
            )
            for _ in range(2)
        )
        self.queue = None
        if settings.queue.size:
            self.queue = Queue(settings.queue, self.key_head.size, num_items=1)

    def negatives(self, keys: Tensor, items: Tensor, own: Tensor | None) -> Negatives:
        """For `own` queries, the other keys (n, D), with item numbers (n, 1), and the queue."""
        found = in_batch_negatives(keys, items, deduplicate=False, own=own)
        if self.queue is None:
            return found
        return found.join(self.queue.negatives(len(found.excluded)))

    @override
    def exported_head(self) -> ObjectiveHead:
        weights = self.state_dict()
        kept = {name: weights[name] for name in weights if not name.startswith("queue.")}
        return ObjectiveHead(self._head_settings, kept)


class BatchNormHead(nn.Module):
    """The released code's head: batch normalization after each layer, the last without weights."""

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
        """A single vector has no variance: it is normalized as in evaluation."""
        norm.train(self.training and len(vectors) > 1)
        found: Tensor = norm(vectors)
        return found


def build_head(
    size: int | None, hidden: int, *, normalize: bool, batch_norm: bool
) -> Projection | BatchNormHead:
    """W2·ReLU(W1·), with batch normalization if asked."""
    if batch_norm:
        return BatchNormHead(hidden, size or hidden)
    where: Literal["after", "none"] = "after" if normalize else "none"
    return Projection(ProjectionConfig(layers=2, size=size, bias=False, normalize=where), hidden)


class TrainedHeads(nn.Module):
    """The exported heads of one objective, to score with: `query`, `key` and, maybe, relations."""

    relations: Tensor | None
    """(relations, D) the embeddings of the relations; none for masked entity prediction."""

    def __init__(self, head: ObjectiveHead, hidden: int) -> None:
        """`hidden` is the width of the encoder; a `ModelError` if the weights do not fit it."""
        super().__init__()
        told = head.settings
        try:
            self.layer: int | None = told["layer"]
            self.pooling: Pooling = told["pooling"]
            self.relation_numbers: tuple[int, ...] = tuple(told.get("relations", ()))
            for name in ("query_head", "key_head"):
                own = build_head(
                    told["projection_size"],
                    hidden,
                    normalize=told["normalize"],
                    batch_norm=told["batch_norm"],
                )
                weights = {
                    key.removeprefix(f"{name}."): tensor
                    for key, tensor in head.tensors.items()
                    if key.startswith(f"{name}.")
                }
                own.load_state_dict(weights)
                self.add_module(name, own)
        except (KeyError, TypeError, RuntimeError) as error:
            raise ModelError(
                f"{HEADS_FILE} does not fit its encoder of width {hidden} ({error}). Export the "
                "model again."
            ) from error
        self.register_buffer("relations", head.tensors.get("relations.weight"))
        self.eval()

    def query(self, states: Tensor, relations: Tensor | None = None) -> Tensor:
        """Queries of states (n, D); with rows of `relations` (n,), those of subjects."""
        if relations is not None:
            assert self.relations is not None, "the heads of object entailment"
            states = states + self.relations[relations]
        vectors: Tensor = self.get_submodule("query_head")(states)
        return vectors

    def key(self, states: Tensor) -> Tensor:
        """Keys of descriptions' states (n, D)."""
        vectors: Tensor = self.get_submodule("key_head")(states)
        return vectors


def description_sequence(
    ids: IntArray, language: int, vocabulary: Vocabulary, marker: str, **labels: LongArray
) -> Sequence:
    """A description as a sequence with a marker on its [CLS]."""
    sequence = build_sequence(ids, language, vocabulary)
    return replace(sequence, markers={marker: np.zeros(1, np.int64)}, labels=labels)
