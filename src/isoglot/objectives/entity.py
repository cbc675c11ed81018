"""Masked entity prediction: find the description of an entity whose name is hidden.

Reads a draw of the stream of mentions. The name is hidden token by token, and the state of its
first token must find the description among those of the micro-batch and of a queue. XLM-K (Jiang
et al., 2022), Masked Entity Prediction, Eq. 1, 2 and 5.

    [CLS] a b [MASK] [MASK] c [SEP]     query: the state of the first [MASK], W2·ReLU(W1·)
    [CLS] x y z [SEP]                   key: the state of [CLS], W4·ReLU(W3·), another language

`variant: released` is the authors' code: batch normalisation in the heads, both directions, other
descriptions of the same entity kept as negatives, and MLM on the context.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from typing_extensions import override

from isoglot.errors import require
from isoglot.objectives.base import Encoded, LossSum, Objective, ObjectiveModule
from isoglot.objectives.contrast import Contrast, Pooling, QueueConfig, in_batch, info_nce
from isoglot.objectives.described import (
    DescriptionContrast,
    check_layer,
    check_queue,
    description,
    states_at,
)
from isoglot.objectives.masking import Masking
from isoglot.objectives.whole import masked, whole
from isoglot.types import IntArray, Mention, Sequence

if TYPE_CHECKING:
    from torch import Tensor

    from isoglot.corpus import Corpus
    from isoglot.models.encoder import Encoder
    from isoglot.types import Example, Vocabulary

MENTION, DESCRIPTION, ENTITY = "mention", "description", "entity"


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityPrediction(Objective):
    """Settings of masked entity prediction."""

    name: ClassVar[str] = "entity"
    line: ClassVar[str] = "find the description of an entity whose name is hidden"
    reads: ClassVar[tuple[str, ...]] = ("mentions",)
    paper: ClassVar[str] = "XLM-K"
    counts: ClassVar[str | None] = MENTION

    variant: Literal["paper", "released"] = "paper"
    """The paper's equations, or the released code, where the two differ."""
    size: int | None = None
    """Width of the contrasted vectors; none means the encoder's."""
    pooling: Pooling = "cls"
    """A description's vector: the state of its first token, or the mean over all of its tokens."""
    layer: int | None = None
    """The layer whose states are read (0: the embeddings); none means the last."""
    normalize: bool = False
    """Bring the contrasted vectors to length 1; XLM-K does not."""
    temperature: float = 1.0
    """What dot products are divided by; XLM-K has none."""
    queue: QueueConfig = field(default_factory=QueueConfig)
    """Descriptions of earlier steps to be told apart from."""
    masking: Masking = field(default_factory=Masking)
    """Released: what else of the context is hidden and predicted."""

    def __post_init__(self) -> None:
        require(self.temperature > 0, "entity.temperature must be above 0")
        require(self.size is None or self.size >= 1, "entity.size must be 1 or more, or none")
        require(
            self.variant == "paper" or not self.normalize, "entity.normalize needs variant: paper"
        )
        check_queue(self.name, self.queue)

    @override
    def lengths(self, sizes: IntArray) -> IntArray:
        return sizes + 2

    @override
    def max_targets(self, sizes: IntArray) -> IntArray:
        if self.variant == "paper":
            return np.zeros(len(sizes), np.int32)
        return self.masking.budget(sizes[:, 0])

    @override
    def build(
        self, example: Example, vocabulary: Vocabulary, rng: np.random.Generator
    ) -> tuple[Sequence, ...]:
        assert isinstance(example, Mention)
        hidden = example.context.copy()
        hidden[example.start : example.end] = vocabulary.mask
        context = whole(hidden, example.language, example.sentences, vocabulary)
        if self.variant == "released":
            # the name is [MASK] by now, a special token, and no longer chosen
            context = masked(context, self.masking, vocabulary, rng)
        return (
            replace(context, sites={MENTION: np.array([1 + example.start], np.int64)}),
            description(
                example.description,
                example.description_language,
                vocabulary,
                DESCRIPTION,
                **{ENTITY: np.array([example.entity], np.int64)},
            ),
        )

    @override
    def module(self, encoder: Encoder, corpus: Corpus) -> ObjectiveModule:
        check_layer(self.name, self.layer, encoder)
        return EntityContrast(self, encoder)


class EntityContrast(DescriptionContrast):
    """The model half."""

    def __init__(self, settings: EntityPrediction, encoder: Encoder) -> None:
        super().__init__(
            encoder,
            heads="paper" if settings.variant == "paper" else "batch-norm",
            size=settings.size,
            queue=settings.queue,
            normalize=settings.normalize,
        )
        self.settings, self.layer = settings, settings.layer

    @override
    def loss(self, encoded: Encoded) -> LossSum:
        if MENTION not in encoded.batch.sites.get(encoded.name, {}):
            return self.nothing(encoded)
        queries = self.query_head(states_at(encoded, MENTION))
        keys = self.key_head(states_at(encoded, DESCRIPTION, self.settings.pooling))
        entities = encoded.batch.labels[encoded.name][ENTITY][:, None]
        released = self.settings.variant == "released"
        found = (self._both_ways if released else self._one_way)(queries, keys, entities)
        self.hold(keys, entities)
        total = found.losses.sum()
        if len(encoded.losses):
            # the mean over tokens counts as much as the mean over mentions
            total = total + encoded.losses.mean() * len(queries)
        return LossSum(total=total, metrics={"accuracy": found.correct.sum()})

    def _one_way(self, queries: Tensor, keys: Tensor, entities: Tensor) -> Contrast:
        """Eq. 5, where no description of the same entity is a negative."""
        others = self.candidates(keys, entities).without_same(entities)
        return info_nce(
            queries,
            keys,
            others.vectors,
            temperature=self.settings.temperature,
            left_out=others.left_out,
        )

    def _both_ways(self, queries: Tensor, keys: Tensor, entities: Tensor) -> Contrast:
        """The released code's: each side meets its own side, the other side and the queue."""
        forth, back = (
            self._among_both_sides(*sides, entities) for sides in ((queries, keys), (keys, queries))
        )
        return Contrast(
            losses=(forth.losses + back.losses) / 2, correct=(forth.correct + back.correct) / 2
        )

    def _among_both_sides(self, queries: Tensor, keys: Tensor, entities: Tensor) -> Contrast:
        others = in_batch(queries, entities, once=False).joined(self.candidates(keys, entities))
        return info_nce(
            queries,
            keys,
            others.vectors,
            temperature=self.settings.temperature,
            left_out=others.left_out,
        )
