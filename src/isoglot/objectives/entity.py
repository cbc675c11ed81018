"""Masked entity prediction: find the description of an entity whose name is masked.

Reads a draw of the stream of mentions. All tokens of the name are masked, and the state of the
first one must find the description among those of the step and of a queue. XLM-K (Jiang et
al., 2022), Masked Entity Prediction, Eq. 1, 2 and 5.

    [CLS] a b [MASK] [MASK] c [SEP]     query: the state of the first [MASK], W2·ReLU(W1·)
    [CLS] x y z [SEP]                   key: the state of [CLS], W4·ReLU(W3·), another language

`variant: released` is the authors' code: batch normalization in the heads, both directions, other
descriptions of the same entity kept as negatives, and MLM on the context.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
import torch
from typing_extensions import override

from isoglot.errors import require
from isoglot.objectives.base import ForwardResult, LossSum, ObjectiveModule
from isoglot.objectives.compared import Compared
from isoglot.objectives.contrast.descriptions import (
    DescriptionContrast,
    DescriptionObjective,
    description_sequence,
)
from isoglot.objectives.contrast.info_nce import (
    ContrastResult,
    Negatives,
    in_batch_negatives,
    info_nce,
)
from isoglot.objectives.contrast.pooling import check_layer, labels_of, pooled_states
from isoglot.objectives.masking import Masking, apply_mask, build_sequence
from isoglot.types import IntArray, Mention, Sequence

if TYPE_CHECKING:
    from torch import Tensor

    from isoglot.corpus import Corpus
    from isoglot.models.encoder import Encoder
    from isoglot.types import Example, Rng, Vocabulary

MENTION, DESCRIPTION, ENTITY = "mention", "description", "entity"
_TOKENS = "predicted tokens"


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityPrediction(DescriptionObjective):
    """Settings of masked entity prediction."""

    name: ClassVar[str] = "entity"
    summary: ClassVar[str] = "find the description of an entity whose name is masked"
    reads: ClassVar[tuple[str, ...]] = ("mentions",)
    paper: ClassVar[str] = "XLM-K"
    target_marker: ClassVar[str | None] = MENTION

    variant: Literal["paper", "released"] = "paper"
    """The paper's equations, or the released code, where the two differ."""
    masking: Masking = field(default_factory=Masking)
    """Released: which other tokens of the context are masked and predicted."""

    @override
    def __post_init__(self) -> None:
        DescriptionObjective.__post_init__(self)
        require(
            self.variant == "paper" or not self.normalize, "entity.normalize needs variant: paper"
        )

    @override
    def max_targets(self, sizes: IntArray) -> IntArray:
        if self.variant == "paper":
            return np.zeros(len(sizes), np.int32)
        return self.masking.num_masked(sizes[:, 0])

    @override
    def build(self, example: Example, vocabulary: Vocabulary, rng: Rng) -> tuple[Sequence, ...]:
        assert isinstance(example, Mention)
        ids = example.context.copy()
        ids[example.start : example.end] = vocabulary.mask
        context = build_sequence(ids, example.language, vocabulary, example.sentences)
        if self.variant == "released":
            # the name is [MASK] already, a special token, which masking does not choose
            context = apply_mask(context, self.masking, vocabulary, rng)
        return (
            replace(context, markers={MENTION: np.array([1 + example.start], np.int64)}),
            description_sequence(
                example.description,
                example.description_language,
                vocabulary,
                DESCRIPTION,
                **{ENTITY: np.array([example.entity], np.int64)},
            ),
        )

    @override
    def build_module(self, encoder: Encoder, corpus: Corpus) -> ObjectiveModule:
        check_layer(self.name, self.layer, encoder)
        return EntityContrast(self, encoder)


class EntityContrast(DescriptionContrast):
    """The model half."""

    def __init__(self, settings: EntityPrediction, encoder: Encoder) -> None:
        super().__init__(settings, encoder, batch_norm=settings.variant == "released")
        self.settings = settings

    @override
    def loss(self, result: ForwardResult) -> LossSum:
        if MENTION not in result.batch.markers.get(result.name, {}):
            return self.empty_loss(result)
        found = super().loss(result)
        if len(result.target_losses):
            # the mean over tokens counts as much as the mean over mentions
            number = len(result.batch.markers[result.name][MENTION])
            found.total = found.total + result.target_losses.mean() * number
        return found

    @override
    def compared(self, result: ForwardResult) -> Compared:
        (entities,) = labels_of(result, ENTITY)
        # with the first mention of a micro-batch, the number of its tokens that are predicted
        tokens = torch.zeros_like(entities)
        tokens[:1] = len(result.target_losses)
        return Compared(
            states={
                MENTION: pooled_states(result, MENTION)[0],
                DESCRIPTION: pooled_states(result, DESCRIPTION, how=self.settings.pooling)[0],
            },
            shared={ENTITY: entities[:, None], _TOKENS: tokens},
            token_loss=result.target_losses.sum(),
        )

    @override
    def step_loss(self, examples: Compared) -> LossSum:
        queries = self.query_head(examples.states[MENTION])
        keys = self.key_head(examples.states[DESCRIPTION])
        entities = examples.shared[ENTITY]
        if self.settings.variant == "released":
            forward = self._released(queries, keys, examples)
            found = forward.mean_with(self._released(keys, queries, examples))
        else:
            # Eq. 5, without other descriptions of the same entity as negatives
            own = examples.of_own(entities)
            negatives = self.negatives(keys, entities, examples.own).excluding_same(own)
            found = self._contrast(queries, keys, negatives, examples)
        self.hold(keys, entities, examples)
        return LossSum(total=found.losses.sum(), metrics=found.metrics())

    @override
    def token_factor(self, examples: Compared) -> Tensor:
        return len(examples) / examples.shared[_TOKENS].sum().clamp(min=1).double()

    def _released(self, queries: Tensor, keys: Tensor, examples: Compared) -> ContrastResult:
        """The released code's negatives: the other queries, the other keys and the queue."""
        entities, own = examples.shared[ENTITY], examples.own
        queries_too = in_batch_negatives(queries, entities, deduplicate=False, own=own)
        negatives = queries_too.join(self.negatives(keys, entities, own))
        return self._contrast(queries, keys, negatives, examples)

    def _contrast(
        self, queries: Tensor, keys: Tensor, negatives: Negatives, examples: Compared
    ) -> ContrastResult:
        own = examples.of_own(queries), examples.of_own(keys)
        return info_nce(*own, negatives, temperature=self.settings.temperature)
