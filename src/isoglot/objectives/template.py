"""Replaced-token detection on translation pairs: an objective with a head of its own, to copy.

`isoglot show template` prints this file. Some tokens of a pair are replaced by random ones, and a
linear head says of every token whether it is the original. ELECTRA (Clark et al., 2020) section 3
on TLM's input, with random tokens in the place of a generator's.

    [CLS] a b c [SEP] [SEP] x y z [SEP]      judged: a b c x y z
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from typing_extensions import override

from isoglot import ForwardResult, LossSum, Objective, ObjectiveModule
from isoglot.objectives.masking import new_sequence, rounded_share
from isoglot.ranges import Range
from isoglot.types import IntArray, Pair, Sequence

if TYPE_CHECKING:
    from isoglot.corpus import Corpus
    from isoglot.models.encoder import Encoder
    from isoglot.types import Example, Rng, Vocabulary

JUDGED = "judged"
"""The marker of tokens that the head judges."""
REPLACED = "replaced"
"""The label of each judged token: 1 if it was replaced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplacedTokenDetection(Objective):
    """The data half: settings, and sequences from examples. It runs in loader workers."""

    name: ClassVar[str] = "replaced"
    summary: ClassVar[str] = "tell the tokens of a pair that were replaced by random ones"
    reads: ClassVar[tuple[str, ...]] = ("parallel",)
    paper: ClassVar[str] = "ELECTRA"
    target_marker: ClassVar[str | None] = JUDGED  # the loss is a mean over judged tokens

    rate: Annotated[float, Range(0, 1, above=True)] = 0.15
    """Share of the tokens to replace."""

    @override
    def lengths(self, sizes: IntArray) -> IntArray:
        """(n, 2) tokens of both sides -> (n, 1): one sequence with four special tokens."""
        return np.asarray(sizes.sum(axis=1, keepdims=True) + 4, np.int32)

    @override
    def build(self, example: Example, vocabulary: Vocabulary, rng: Rng) -> tuple[Sequence, ...]:
        assert isinstance(example, Pair)
        first = np.concatenate([[vocabulary.cls], example.first, [vocabulary.sep]])
        second = np.concatenate([[vocabulary.sep], example.second, [vocabulary.sep]])
        original = np.concatenate([first, second])
        judged = np.flatnonzero(~vocabulary.is_special[original])
        number = int(rounded_share(self.rate, np.array(len(judged))))
        chosen = rng.permutation(judged)[:number]
        ids = original.copy()
        ids[chosen] = rng.choice(vocabulary.ordinary, size=len(chosen))
        sides = [len(first), len(second)]
        languages = np.repeat([example.first_language, example.second_language], sides)
        sequence = new_sequence(
            ids,
            languages.astype(np.int32),
            sentences=np.repeat([0, 1], sides).astype(np.int32),
        )
        # a random token may be the original: then nothing was replaced
        replaced = (ids != original)[judged].astype(np.int64)
        return (replace(sequence, markers={JUDGED: judged}, labels={REPLACED: replaced}),)

    @override
    def build_module(self, encoder: Encoder, corpus: Corpus) -> ObjectiveModule:
        return DetectionHead(encoder.hidden_size)


class DetectionHead(ObjectiveModule):
    """The model half: a linear head. Its weights are trained and stored in checkpoints."""

    def __init__(self, hidden_size: int) -> None:
        super().__init__()
        self.head = nn.Linear(hidden_size, 1)

    @override
    def loss(self, result: ForwardResult) -> LossSum:
        """The sum over the judged tokens of a micro-batch; the training step divides."""
        places = result.batch.markers.get(result.name, {}).get(JUDGED)
        if places is None:  # the micro-batch has no pair of this objective
            return result.empty_loss("accuracy", ratios=("recall",))
        states = result.hidden_states.flatten(0, 1)[places]
        replaced = result.batch.labels[result.name][REPLACED]
        with torch.autocast(states.device.type, enabled=False):  # losses in float32, or better
            exact = torch.promote_types(states.dtype, torch.float32)
            scores = self.head(states.to(exact))[:, 0]
            wanted = replaced.to(scores.dtype)
            total = F.binary_cross_entropy_with_logits(scores, wanted, reduction="sum")
        said = scores.detach() > 0
        right = said == (replaced == 1)
        return LossSum(
            total=total,
            metrics={"accuracy": right.sum()},  # a sum, divided like the loss
            ratios={"recall": ((said & right).sum(), replaced.sum())},  # a sum and its own count
        )
