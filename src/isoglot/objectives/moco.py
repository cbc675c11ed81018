"""Momentum contrast of translations: find a sentence's translation among thousands of sentences.

Reads a pair of the parallel stream: the first side is the query, through the encoder being trained;
the second is its key, through a slow average of that encoder. The query is contrasted with its own
key and a queue of keys of earlier steps. PPA (Pan et al., 2021) section 2.1, after MoCo (He et al.,
2020). With other settings it is InfoXLM's cross-lingual contrast (Chi et al., 2021), or in-batch
contrast in which both sides are trained (`keys: trained`).

    main rows   [CLS] a b c [SEP]   query: pooled, projected, gradient
    side rows   [CLS] x y [SEP]     key: pooled, projected by the averages, no gradient

Which side is the query is the stream's choice (`order: shuffled`), and so is shared with TLM.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from isoglot.errors import RecipeError, require
from isoglot.models.sentence_export import SentenceHead
from isoglot.objectives.base import Encoded, Inference, LossSum, Objective, ObjectiveModule
from isoglot.objectives.contrast import (
    Contrast,
    Follower,
    MomentumConfig,
    Negatives,
    Pooling,
    Projection,
    ProjectionConfig,
    Queue,
    QueueConfig,
    fingerprint,
    in_batch,
    info_nce,
    pool,
)
from isoglot.objectives.masking import Masking
from isoglot.objectives.whole import masked, whole
from isoglot.types import IntArray, Pair, Sequence

if TYPE_CHECKING:
    from isoglot.corpus import Corpus
    from isoglot.models.encoder import Encoder
    from isoglot.types import Batch, Example, Vocabulary

QUERY, KEY = "query", "key"


@dataclass(frozen=True, slots=True, kw_only=True)
class MoCo(Objective):
    """Settings of momentum contrast."""

    name: ClassVar[str] = "moco"
    line: ClassVar[str] = "find the translation of a sentence among many other sentences"
    reads: ClassVar[tuple[str, ...]] = ("parallel",)
    paper: ClassVar[str] = "PPA 2.1; MoCo; InfoXLM"
    counts: ClassVar[str | None] = QUERY

    pooling: Pooling = "cls"
    """A sentence's vector: the state of its first token, or the mean over all of its tokens."""
    layer: int | None = None
    """The layer whose states are pooled (0: the embeddings); none means the last."""
    projection: ProjectionConfig = field(default_factory=ProjectionConfig)
    """The head between a pooled state and the contrasted vector."""
    temperature: float = 0.05
    """What dot products are divided by."""
    keys: Literal["momentum", "trained"] = "momentum"
    """Keys come from a slow average of the encoder, or from the encoder itself, with gradient."""
    momentum: MomentumConfig = field(default_factory=MomentumConfig)
    """How slowly the average follows."""
    key_dropout: bool = True
    """Encode keys with dropout, as MoCo's own code does."""
    queue: QueueConfig = field(default_factory=QueueConfig)
    """Keys of earlier steps to be told apart from."""
    in_batch: bool = False
    """Let the other keys of a micro-batch be negatives too."""
    both_directions: bool = False
    """With trained keys and no queue: also find the query of each key."""
    same_are_negatives: bool = False
    """Meet candidates that are the query's or its key's own sentence; else they are left out."""
    masking: Masking | None = None
    """Hide tokens of contrasted sentences, which nothing predicts (InfoXLM); none shows all."""

    def __post_init__(self) -> None:
        require(self.temperature > 0, "moco.temperature must be above 0")
        require(
            self.queue.size > 0 or self.in_batch,
            "moco needs negatives: a queue.size above 0, or in_batch: true",
        )
        require(
            not self.both_directions or (self.keys == "trained" and self.queue.size == 0),
            "moco.both_directions needs keys: trained, in_batch: true and queue.size: 0",
        )
        require(
            self.queue.start != "filled" or self.keys == "momentum",
            "moco.queue.start: filled needs keys: momentum",
        )

    @property
    @override
    def num_side(self) -> int:  # type: ignore[override]
        """Keys that are trained go through the one pass that has a gradient."""
        return int(self.keys == "momentum")

    @override
    def lengths(self, sizes: IntArray) -> IntArray:
        return sizes + 2

    @override
    def max_targets(self, sizes: IntArray) -> IntArray:
        return np.zeros(len(sizes), np.int32)

    @override
    def build(
        self, example: Example, vocabulary: Vocabulary, rng: np.random.Generator
    ) -> tuple[Sequence, ...]:
        assert isinstance(example, Pair)
        return (
            self._sequence(QUERY, example.first, example.first_language, vocabulary, rng),
            self._sequence(KEY, example.second, example.second_language, vocabulary, rng),
        )

    def _sequence(
        self,
        role: str,
        sentence: IntArray,
        language: int,
        vocabulary: Vocabulary,
        rng: np.random.Generator,
    ) -> Sequence:
        sequence = whole(sentence, language, np.zeros(len(sentence), np.int32), vocabulary)
        shown = sequence.ids
        if self.masking is not None:
            shown = masked(sequence, self.masking, vocabulary, rng).ids
        return replace(
            sequence,
            ids=shown,
            sites={role: np.zeros(1, np.int64)},
            labels={role: np.array([fingerprint(sentence)], np.int64)},
        )

    @override
    def module(self, encoder: Encoder, corpus: Corpus) -> ObjectiveModule:
        layers = int(encoder.model.config.num_hidden_layers)
        if self.layer is not None and not 0 <= self.layer <= layers:
            raise RecipeError(
                f"objectives.moco.layer: {self.layer} does not exist in an encoder of {layers} "
                f"layers: choose one from 0 to {layers}."
            )
        return MomentumContrast(self, encoder)


class MomentumContrast(ObjectiveModule):
    """The model half: the projection, the averages that make keys, and the queue."""

    def __init__(self, settings: MoCo, encoder: Encoder) -> None:
        super().__init__()
        self.settings, self.layer = settings, settings.layer
        self.projection = Projection(settings.projection, encoder.hidden_size)
        self.key_encoder: Follower | None = None
        self.key_projection: Follower | None = None
        if settings.keys == "momentum":
            self.key_encoder = Follower(encoder, settings.momentum)
            self.key_projection = Follower(self.projection, settings.momentum)
        self.queue: Queue | None = None
        if settings.queue.size:
            self.queue = Queue(settings.queue, self.projection.size, numbers=2)
        self._keys: Tensor | None = None
        """Those that `before_pass` encoded, for the loss of the same micro-batch."""

    @override
    def begin(self) -> None:
        for follower in self._followers():
            follower.begin()
        if self.queue is not None:
            self.queue.begin()

    @override
    def wanting(self) -> int:
        return 0 if self.queue is None else self.queue.wanting()

    @override
    def fill(self, name: str, batch: Batch, inference: Inference) -> None:
        assert self.queue is not None
        keys = self._encoded_keys(name, batch)
        if keys is None:
            self._hold_none()
        else:
            self.queue.hold(keys, _items(batch.labels[name]))
        self.queue.settle(taken=True)

    @override
    def train(self, mode: bool = True) -> MomentumContrast:
        super().train(mode)
        for follower in self._followers():
            follower.train(mode and self.settings.key_dropout)
        return self

    @override
    def before_pass(self, name: str, batch: Batch, inference: Inference) -> None:
        self._keys = self._encoded_keys(name, batch)

    @override
    def loss(self, encoded: Encoded) -> LossSum:
        if QUERY not in encoded.batch.sites.get(encoded.name, {}):
            return self._nothing(encoded)
        queries = self._vectors(encoded, QUERY)
        keys, self._keys = self._keys, None
        if keys is None:
            keys = self._vectors(encoded, KEY)
        items = _items(encoded.batch.labels[encoded.name])
        found = self._contrast(queries, keys, items)
        if self.settings.both_directions:
            back = self._contrast(keys, queries, items.flip(1))
            found.losses = (found.losses + back.losses) / 2
            found.correct = (found.correct + back.correct) / 2
        if self.queue is not None:
            self.queue.hold(keys, items)
        return LossSum(total=found.losses.sum(), metrics={"accuracy": found.correct.sum()})

    @override
    def after_step(self, *, taken: bool) -> None:
        if taken:
            for follower in self._followers():
                follower.move()
        if self.queue is not None:
            self.queue.settle(taken=taken)

    def sentence_head(self, *, projected: bool) -> SentenceHead:
        """What makes a sentence's vector of the encoder's final states, for export."""
        if self.layer is not None:
            raise RecipeError(
                f"objectives.moco reads layer {self.layer}, and a sentence-transformers folder "
                f"holds only whole encoders: leave layer out, or set "
                f"export.sentence_transformers: no."
            )
        how = self.settings.pooling
        if not projected:
            return SentenceHead(pooling=how)
        head = self.projection
        return SentenceHead(pooling=how, normalize=head.normalize, layers=head.linear())

    def _encoded_keys(self, name: str, batch: Batch) -> Tensor | None:
        """The keys of a micro-batch's side rows; none without pairs, or where keys are trained."""
        places = batch.side_sites.get(name, {}).get(KEY)
        if self.key_encoder is None or self.key_projection is None or places is None:
            return None
        rows = batch.side[name]
        states = self.key_encoder(rows, layers=self.layer is not None)
        read = states.hidden if self.layer is None else states.layers[self.layer]
        keys: Tensor = self.key_projection(pool(read, rows, places, self.settings.pooling))
        return keys

    def _contrast(self, queries: Tensor, keys: Tensor, items: Tensor) -> Contrast:
        """Each query against its key, and against the candidates that the settings name."""
        apart = not self.settings.same_are_negatives
        parts = [] if self.queue is None else [self.queue.negatives(len(queries))]
        if self.settings.in_batch:
            parts.append(in_batch(keys, items, once=apart))
        negatives = reduce(Negatives.joined, parts)
        if apart:
            negatives = negatives.without_same(items)
        return info_nce(
            queries,
            keys,
            negatives.vectors,
            temperature=self.settings.temperature,
            left_out=negatives.left_out,
        )

    def _vectors(self, encoded: Encoded, site: str) -> Tensor:
        """The projected vectors of the sentences with a role in the main rows."""
        batch, how = encoded.batch, self.settings.pooling
        places = batch.sites[encoded.name][site]
        vectors: Tensor = self.projection(pool(encoded.states, batch.rows, places, how))
        return vectors

    def _nothing(self, encoded: Encoded) -> LossSum:
        """The loss of a micro-batch without pairs."""
        self._hold_none()
        nothing = encoded.losses.sum() * 0.0
        return LossSum(total=nothing, metrics={"accuracy": nothing.detach()})

    def _hold_none(self) -> None:
        """Other processes may have pairs, and wait for the keys of this one."""
        if self.queue is not None:
            self.queue.hold(self.queue.entries[:0], self.queue.items[:0])

    def _followers(self) -> list[Follower]:
        return [one for one in (self.key_encoder, self.key_projection) if one is not None]


def _items(labels: dict[str, Tensor]) -> Tensor:
    """(n, 2) what keys are known by: their own sentence, and the one it was paired with."""
    return torch.stack([labels[KEY], labels[QUERY]], dim=1)
