"""Token contrast: find the translation of a token among the tokens of other sentences.

Reads a pair of the parallel stream; both sides are sequences of their own, encoded with gradient.
Tokens are aligned by their states alone, without gradient: two tokens of a pair are linked if each
is the most similar one to the other in that pair. A linked token must then find its partner among
the tokens of the other side, in both directions (InfoNCE over cosines).

    [CLS] a b c [SEP]      cosine  x   y        link: b-y, as each is the other's most similar token
    [CLS] x y [SEP]          a    .2  .3              (a and c find y as well, but y finds b)
                             b    .4  .8        b must find y among all second tokens of the
                             c    .1  .7        micro-batch, y must find b among all first ones

Links are the intersection of both directions, as in SimAlign (Jalili Sabet et al., 2020; `argmax`)
and awesome-align (Dou and Neubig, 2021). Training on them is related to the self-training of
awesome-align, to XLM-Align (Chi et al., 2021), and to the word-level contrast of HiCTL (Wei et al.,
2021); Cao et al. (2020) minimize the distance of words that fast_align links. Where we differ:
links are hard and change with the encoder in each step, tokens and not words are linked, there is
no projection, and a token with the vocabulary id of the query or of its partner is no negative.

Which tokens are linked is known only after the forward pass, so the loss is a mean over pairs: that
of a pair is the mean over its links, 0 without any. Special tokens take no part. Beside sentence
contrast (`sequences_of: moco`) it reads the sequences of that objective and encodes nothing itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from typing_extensions import override

from isoglot.errors import RecipeError
from isoglot.models.lm_head import select_positions
from isoglot.objectives.base import ForwardResult, LossSum, Objective, ObjectiveModule
from isoglot.objectives.contrast.info_nce import ContrastResult, Negatives, info_nce
from isoglot.objectives.contrast.pooling import check_layer
from isoglot.objectives.contrast.token_links import (
    NUM_TOKENS,
    PRIORITY,
    Links,
    Tokens,
    align,
    both_sides,
    choose,
    padded_pairs,
    width_label,
)
from isoglot.objectives.masking import build_sequence
from isoglot.objectives.moco import MoCo
from isoglot.ranges import Range, Temperature
from isoglot.types import IntArray, Pair, Sequence

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isoglot.corpus import Corpus
    from isoglot.models.encoder import Encoder
    from isoglot.types import Example, Rng, Vocabulary

PAIR, FIRST, SECOND = "pair", "first tokens", "second tokens"
"""Markers: the first token of a pair; the ordinary tokens of its two sides."""
ALIGNED, ACCURACY, CHANCE = "aligned", "accuracy", "chance"


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenContrast(Objective):
    """Settings of token contrast."""

    name: ClassVar[str] = "token_contrast"
    summary: ClassVar[str] = "find the translation of a token among the tokens of other sentences"
    reads: ClassVar[tuple[str, ...]] = ("parallel",)
    paper: ClassVar[str] = "ours, after SimAlign, awesome-align"
    target_marker: ClassVar[str | None] = PAIR

    layer: Annotated[int | None, Range(-1000, 1000)] = None
    """The layer whose hidden states are read (0: the embeddings); none means the last."""
    temperature: Temperature = 0.1
    """Cosines are divided by it."""
    min_similarity: Annotated[float, Range(-1, 1)] = 0.0
    """Least cosine of two aligned tokens."""
    negatives: Literal["micro_batch", "pair"] = "micro_batch"
    """Negatives of a token: all tokens of the other side in the micro-batch, so that another split
    of a step is another loss; or those of the pair's other sentence."""
    max_tokens: Annotated[int, Range(1, 2**20)] = 4096
    """Most aligned tokens of a micro-batch that are contrasted, chosen at random, as each needs
    its similarity to all tokens of the other side; with `negatives: pair`, all are."""

    sequences_of: str | None = None
    """The objective whose sequences it reads, `moco` with `key_encoder: shared`: a pair is encoded
    once for both; none: it builds sequences of its own."""

    @override
    def depends_on(self) -> tuple[str, ...]:
        return () if self.sequences_of is None else (self.sequences_of,)

    @override
    def marks_bases(self) -> bool:
        return self.sequences_of is not None

    @override
    def check_together(self, objectives: Mapping[str, Objective]) -> None:
        if self.sequences_of is None:
            return
        base = objectives.get(self.sequences_of)
        if not isinstance(base, MoCo) or base.key_encoder != "shared":
            raise RecipeError(
                f"token_contrast.sequences_of: {self.sequences_of!r} must be a moco objective with "
                "key_encoder: shared, which has both sides of a pair in the main rows. Set that, "
                "or leave sequences_of out."
            )
        if any(one.uses_decoder for one in objectives.values()):
            raise RecipeError(
                "token_contrast.sequences_of reads packed rows, which a model with a decoder does "
                "not have. Leave it out."
            )

    @override
    def compares_examples(self) -> bool:
        return self.negatives == "micro_batch"

    @override
    def lengths(self, sizes: IntArray) -> IntArray:
        return sizes + 2 if self.sequences_of is None else np.zeros((len(sizes), 0), np.int32)

    @override
    def num_positions(self, sizes: IntArray) -> IntArray:
        return np.asarray(sizes.max(axis=1) + 2, np.int32)

    @override
    def build(self, example: Example, vocabulary: Vocabulary, rng: Rng) -> tuple[Sequence, ...]:
        assert isinstance(example, Pair)
        first = build_sequence(example.first, example.first_language, vocabulary)
        second = build_sequence(example.second, example.second_language, vocabulary)
        return self.build_from((first, second), vocabulary, rng)

    @override
    def build_from(
        self, bases: tuple[Sequence, ...], vocabulary: Vocabulary, rng: Rng
    ) -> tuple[Sequence, ...]:
        first, second = (replace(one, markers={}, labels={}) for one in bases)
        tokens, others = (
            np.flatnonzero(~vocabulary.is_special[one.ids]) for one in (first, second)
        )
        pair = {PAIR: np.zeros(1, np.int64)}
        if not (len(tokens) and len(others)):
            return replace(first, markers=pair), second
        labels = {
            NUM_TOKENS: np.array([len(tokens), len(others)], np.int64),
            PRIORITY: rng.integers(2**63 - 1, size=len(tokens)),
            **width_label(len(tokens), len(others)),
        }
        return (
            replace(first, markers={**pair, FIRST: tokens}, labels=labels),
            replace(second, markers={SECOND: others}),
        )

    @override
    def build_module(self, encoder: Encoder, corpus: Corpus) -> ObjectiveModule:
        check_layer(self.name, self.layer, encoder)
        return AlignedTokens(self)


class AlignedTokens(ObjectiveModule):
    """The model half; it has no weights."""

    def __init__(self, settings: TokenContrast) -> None:
        super().__init__()
        self.settings, self.layer = settings, settings.layer

    @override
    def loss(self, result: ForwardResult) -> LossSum:
        labels = result.batch.labels.get(result.name, {})
        if NUM_TOKENS not in labels:
            return result.empty_loss(ratios=(ALIGNED, ACCURACY, CHANCE))
        with torch.autocast(result.hidden_states.device.type, enabled=False):
            sides = _tokens(result, FIRST), _tokens(result, SECOND)
            groups = list(padded_pairs(labels))
            found = [align(sides, pairs, self.settings.min_similarity) for pairs in groups]
            num_links = torch.stack([links.aligned.sum() for links in found]).sum()
            if self.settings.negatives == "pair":
                parts = [
                    self._contrast(sides, links, both_sides(sides, pairs))
                    for pairs, links in zip(groups, found, strict=True)
                ]
            else:
                most = min(self.settings.max_tokens, *(len(side.ids) for side in sides))
                links = choose(found, labels[PRIORITY], most)
                parts = [self._contrast(sides, links, sides)]
            total, correct, chance, contrasted = torch.stack(parts).sum(dim=0).unbind()
        tokens = torch.full_like(num_links, sum(len(side.ids) for side in sides))
        return LossSum(
            total=total,
            ratios={
                ALIGNED: (2 * num_links, tokens),
                ACCURACY: (correct.detach(), contrasted.detach()),
                CHANCE: (chance.detach(), contrasted.detach()),
            },
        )

    def _contrast(
        self, sides: tuple[Tokens, Tokens], links: Links, candidates: tuple[Tokens, Tokens]
    ) -> Tensor:
        """(4,) the sums of losses of pairs, of accuracy and chance of links; how many links."""
        first, second = (side.at(at) for side, at in zip(sides, links.places, strict=True))
        found = self._find(first, second, candidates[1])
        found = found.mean_with(self._find(second, first, candidates[0]))
        aligned, pairs = links.aligned.to(found.losses.dtype).flatten(), links.pairs.flatten()
        # as many numbers as first tokens are enough for all pairs
        per_pair = aligned.new_zeros(len(sides[0].ids)).index_add(0, pairs, aligned)
        losses = found.losses.flatten() * aligned / per_pair[pairs].clamp(min=1)
        correct, chance = (one.flatten() * aligned for one in (found.correct, found.chance))
        return torch.stack([one.sum() for one in (losses, correct, chance, aligned)])

    def _find(self, queries: Tokens, keys: Tokens, candidates: Tokens) -> ContrastResult:
        """Each query's key among the candidates, without those of the same vocabulary ids."""
        ids = candidates.ids[..., None, :]
        excluded = (ids == queries.ids[..., None]) | (ids == keys.ids[..., None])
        if candidates.is_token is not None:
            excluded = excluded | ~candidates.is_token[..., None, :]
        negatives = Negatives(vectors=candidates.vectors, items=candidates.ids, excluded=excluded)
        return info_nce(
            queries.vectors, keys.vectors, negatives, temperature=self.settings.temperature
        )


def _tokens(result: ForwardResult, marker: str) -> Tokens:
    places = result.batch.markers[result.name][marker]
    states = select_positions(result.hidden_states, places)
    exact = states.to(torch.promote_types(states.dtype, torch.float32))
    ids = result.batch.rows.ids.flatten()[places]
    return Tokens(vectors=F.normalize(exact, dim=-1), ids=ids)
