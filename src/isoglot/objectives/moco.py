"""Momentum contrast of translations: find a sentence's translation among thousands of sentences.

Reads a pair of the parallel stream: the first side is the query, encoded by the encoder being
trained; the second is its key, encoded by a momentum encoder. The query is contrasted with its own
key and a queue of keys of earlier steps. PPA (Pan et al., 2021) section 2.1, after MoCo (He et al.,
2020). With other settings it is InfoXLM's cross-lingual contrast (Chi et al., 2021), or in-batch
contrast in which both sides are trained (`key_encoder: shared`).

    main rows        [CLS] a b c [SEP]   query: pooled, projected, gradient
    auxiliary rows   [CLS] x y [SEP]     key: pooled, projected by the averages, no gradient

The stream decides which side is the query (`order: shuffled`), the same for TLM.
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
from isoglot.models.sharding import placeholder_rows, runs_together
from isoglot.objectives.base import ForwardResult, Inference, LossSum, ObjectiveModule
from isoglot.objectives.compared import Compared
from isoglot.objectives.contrast.info_nce import (
    ContrastResult,
    Negatives,
    in_batch_negatives,
    info_nce,
    sentence_item,
)
from isoglot.objectives.contrast.momentum import MomentumConfig, MomentumEncoder, Queue, QueueModule
from isoglot.objectives.contrast.pooling import (
    ContrastObjective,
    Projection,
    ProjectionConfig,
    check_layer,
    labels_of,
    pool,
    pooled_states,
)
from isoglot.objectives.masking import Masking, apply_mask, build_sequence
from isoglot.types import IntArray, Pair, Sequence

if TYPE_CHECKING:
    from isoglot.corpus import Corpus
    from isoglot.models.encoder import Encoder
    from isoglot.models.sentence_export import SentenceHead
    from isoglot.types import Batch, Example, Rng, Vocabulary

QUERY, KEY = "query", "key"
_ITEMS = "items"
"""Two numbers for each key, hashes of its sentence and of that sentence's translation: candidates
that share one with the query are not negatives (`info_nce.py`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MoCo(ContrastObjective):
    """Settings of momentum contrast."""

    name: ClassVar[str] = "moco"
    summary: ClassVar[str] = "find the translation of a sentence among many other sentences"
    reads: ClassVar[tuple[str, ...]] = ("parallel",)
    paper: ClassVar[str] = "PPA 2.1; MoCo; InfoXLM"
    target_marker: ClassVar[str | None] = QUERY

    projection: ProjectionConfig = field(default_factory=ProjectionConfig)
    """The head between a pooled state and the contrasted vector."""
    key_encoder: Literal["momentum", "shared"] = "momentum"
    """Encode keys by a momentum encoder, or by the encoder itself, with gradient."""
    momentum: MomentumConfig = field(default_factory=MomentumConfig)
    """The momentum of the key encoder's moving average."""
    key_dropout: bool = True
    """Encode keys with dropout, as MoCo's own code does."""
    in_batch_negatives: bool = False
    """Use the other keys of a step (or micro-batch: `negatives`) as negatives, too."""
    symmetric: bool = False
    """With a shared key encoder and no queue: also find the query of each key."""
    allow_false_negatives: bool = False
    """Keep negatives that are the query's or its key's own sentence; else they are excluded."""
    masking: Masking | None = None
    """Mask tokens of contrasted sentences, without predicting them (InfoXLM); none: no masking."""

    @override
    def __post_init__(self) -> None:
        ContrastObjective.__post_init__(self)
        require(
            self.queue.size > 0 or self.in_batch_negatives,
            "moco needs negatives: a queue.size above 0, or in_batch_negatives: true",
        )
        require(
            not self.symmetric or (self.key_encoder == "shared" and self.queue.size == 0),
            "moco.symmetric needs key_encoder: shared, in_batch_negatives: true and queue.size: 0",
        )
        require(
            self.queue.start != "filled" or self.key_encoder == "momentum",
            "moco.queue.start: filled needs key_encoder: momentum",
        )

    @override
    def compares_examples(self) -> bool:
        return self.in_batch_negatives and self.negatives == "micro_batch"

    @property
    @override
    def num_aux_sequences(self) -> int:  # type: ignore[override]
        """Keys with a gradient are in the main rows."""
        return int(self.key_encoder == "momentum")

    @override
    def build(self, example: Example, vocabulary: Vocabulary, rng: Rng) -> tuple[Sequence, ...]:
        assert isinstance(example, Pair)
        return (
            self._sequence(QUERY, example.first, example.first_language, vocabulary, rng),
            self._sequence(KEY, example.second, example.second_language, vocabulary, rng),
        )

    def _sequence(
        self, marker: str, sentence: IntArray, language: int, vocabulary: Vocabulary, rng: Rng
    ) -> Sequence:
        sequence = build_sequence(sentence, language, vocabulary)
        ids = sequence.ids
        if self.masking is not None:
            ids = apply_mask(sequence, self.masking, vocabulary, rng).ids
        return replace(
            sequence,
            ids=ids,
            markers={marker: np.zeros(1, np.int64)},
            labels={marker: np.array([sentence_item(sentence)], np.int64)},
        )

    @override
    def build_module(self, encoder: Encoder, corpus: Corpus) -> ObjectiveModule:
        check_layer(self.name, self.layer, encoder)
        return MomentumContrast(self, encoder)


class MomentumContrast(QueueModule):
    """The model half: the projection, the momentum encoders of keys, and the queue."""

    def __init__(self, settings: MoCo, encoder: Encoder) -> None:
        super().__init__()
        self.settings, self.layer = settings, settings.layer
        self.whole_step = settings.in_batch_negatives and settings.negatives == "step"
        self.projection = Projection(settings.projection, encoder.hidden_size)
        self.key_encoder: MomentumEncoder | None = None
        self.key_projection: MomentumEncoder | None = None
        if settings.key_encoder == "momentum":
            self.key_encoder = MomentumEncoder(encoder, settings.momentum)
            self.key_projection = MomentumEncoder(self.projection, settings.momentum)
        self.queue = None
        if settings.queue.size:
            self.queue = Queue(settings.queue, self.projection.size, num_items=2)
        self._keys: Tensor | None = None
        """The keys that `before_forward` encoded, for the loss of the same micro-batch."""

    @override
    def on_stage_start(self) -> None:
        for encoder in self._momentum_encoders():
            encoder.on_stage_start()
        super().on_stage_start()

    @override
    def num_warmup_examples(self) -> int:
        return 0 if self.queue is None else self.queue.num_warmup_examples()

    @override
    def warm_up(self, name: str, batch: Batch, inference: Inference) -> None:
        assert self.queue is not None
        keys = self._encode_keys(name, batch)
        if keys is None:
            self.queue.hold_none()
        else:
            labels = batch.labels[name]
            self.queue.hold(keys, torch.stack([labels[KEY], labels[QUERY]], dim=1))
        self.queue.enqueue_held(taken=True)

    @override
    def train(self, mode: bool = True) -> MomentumContrast:
        super().train(mode)
        for encoder in self._momentum_encoders():
            encoder.train(mode and self.settings.key_dropout)
        return self

    @override
    def before_forward(self, name: str, batch: Batch, inference: Inference) -> None:
        self._keys = self._encode_keys(name, batch)

    @override
    def loss(self, result: ForwardResult) -> LossSum:
        if QUERY not in result.batch.markers.get(result.name, {}):
            return self.empty_loss(result)
        return super().loss(result)

    @override
    def compared(self, result: ForwardResult) -> Compared:
        items = torch.stack(labels_of(result, KEY, QUERY), dim=1)
        markers = (QUERY,) if self.key_encoder is not None else (QUERY, KEY)
        pooled = pooled_states(result, *markers, how=self.settings.pooling)
        states = dict(zip(markers, pooled, strict=True))
        if self.key_encoder is None:
            return Compared(states=states, shared={_ITEMS: items})
        keys, self._keys = self._keys, None
        if keys is None:  # a micro-batch without pairs
            exact = torch.promote_types(states[QUERY].dtype, torch.float32)
            keys = states[QUERY].new_zeros(0, self.projection.size, dtype=exact)
        return Compared(states=states, shared={_ITEMS: items, KEY: keys})

    @override
    def step_loss(self, examples: Compared) -> LossSum:
        queries = self.projection(examples.states[QUERY])
        keys = examples.shared.get(KEY)
        if keys is None:
            keys = self.projection(examples.states[KEY])
        items = examples.shared[_ITEMS]
        found = self._contrast(queries, keys, items, examples)
        if self.settings.symmetric:
            found = found.mean_with(self._contrast(keys, queries, items.flip(1), examples))
        self.hold(keys, items, examples)
        return LossSum(total=found.losses.sum(), metrics=found.metrics())

    @override
    def after_step(self, *, taken: bool) -> None:
        if taken:
            for encoder in self._momentum_encoders():
                encoder.update()
        super().after_step(taken=taken)

    def sentence_head(self, *, projected: bool) -> SentenceHead:
        """The layers from the encoder's final states to a sentence's vector, for export."""
        from isoglot.models.sentence_export import SentenceHead

        if self.layer is not None:
            raise RecipeError(
                f"objectives.moco reads layer {self.layer}, and a sentence-transformers folder "
                f"holds only whole encoders: remove layer, or set "
                f"export.sentence_transformers: none."
            )
        how = self.settings.pooling
        if not projected:
            return SentenceHead(pooling=how)
        head = self.projection
        return SentenceHead(pooling=how, normalize=head.normalize, layers=head.linear())

    def _encode_keys(self, name: str, batch: Batch) -> Tensor | None:
        """The keys of a micro-batch's auxiliary rows, without gradient.

        None where it has no pairs, or where keys are in the main rows (`key_encoder: shared`). A
        pass of a sharded encoder is an exchange between processes, so a process without pairs
        encodes a placeholder.
        """
        places = batch.aux_markers.get(name, {}).get(KEY)
        if self.key_encoder is None or self.key_projection is None:
            return None
        if places is None and not runs_together(self.key_encoder):
            return None
        rows = batch.aux_rows[name]
        rows = rows if len(rows.ids) else placeholder_rows(rows)
        states = self.key_encoder(rows, layers=self.layer is not None)
        if places is None:
            return None
        read = states.hidden if self.layer is None else states.layers[self.layer]
        keys: Tensor = self.key_projection(pool(read, rows, places, self.settings.pooling))
        return keys

    def _contrast(
        self, queries: Tensor, keys: Tensor, items: Tensor, examples: Compared
    ) -> ContrastResult:
        """Each own query against its key and the negatives that the settings name."""
        queries, own_keys, own_items = (examples.of_own(rows) for rows in (queries, keys, items))
        exclude = not self.settings.allow_false_negatives
        found = [] if self.queue is None else [self.queue.negatives(len(queries))]
        if self.settings.in_batch_negatives:
            found.append(in_batch_negatives(keys, items, deduplicate=exclude, own=examples.own))
        negatives = reduce(Negatives.join, found)
        if exclude:
            negatives = negatives.excluding_same(own_items)
        return info_nce(queries, own_keys, negatives, temperature=self.settings.temperature)

    def _momentum_encoders(self) -> list[MomentumEncoder]:
        return [one for one in (self.key_encoder, self.key_projection) if one is not None]
