"""Regression of states on global co-occurrence: near states tell how often their tokens are near.

Builds no sequences: it reads the prediction sites of the objectives it rides on (`on`). MLM-GC (Ai
and Fang, 2023) section 3.2, Eq. 3: at a hidden token w_t with neighbours w_k at most n places away,

    1/2n · sum over k of  f(X_tk) · (H_t · H_k / sqrt(d) - log X_tk)^2
    f(x) = min(1, (x / 100)^0.75)

with X counted over the whole corpus (`corpus/cooccurrence`), original ids on both sides, and states
as the pass gives them, of hidden and of shown neighbours alike. `against: output` is Eq. 6, with
the output embeddings O_k in place of H_k. Pairs that were never seen weigh nothing.

Where the paper is silent: gradients flow into both sides (`detach`), a token near its sentence's
edge has fewer neighbours and divides by their number (`factor`), alpha is GloVe's.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from typing_extensions import override

from isoglot.corpus.cooccurrence import PairConfig, PairTable, count_pairs
from isoglot.errors import ModelError, require
from isoglot.objectives.base import Encoded, LossSum, Objective, ObjectiveModule
from isoglot.objectives.neighbours import Neighbours, neighbours, original_ids
from isoglot.objectives.pair_lookup import PairLookup

if TYPE_CHECKING:
    from collections.abc import Callable

    from isoglot.corpus import Corpus
    from isoglot.models.encoder import Encoder
    from isoglot.types import BoolArray, Example, IntArray, Sequence, Vocabulary


@dataclass(frozen=True, slots=True, kw_only=True)
class Cooccurrence(Objective):
    """Settings of the regression on co-occurrence; lambda is its weight."""

    name: ClassVar[str] = "cooccurrence"
    line: ClassVar[str] = "tell from neighbouring states how often their tokens are neighbours"
    reads: ClassVar[tuple[str, ...]] = ("text", "parallel")
    paper: ClassVar[str] = "MLM-GC 3.2"

    on: tuple[str, ...] = ("mlm", "tlm")
    """The objectives at whose hidden tokens it is computed, as the recipe names them."""
    pairs: PairConfig = field(default_factory=PairConfig)
    """What is counted; its window is that of the loss as well."""
    against: Literal["states", "output"] = "states"
    """Regress on the neighbours' states (Eq. 3) or on their output embeddings (Eq. 6)."""
    x_max: float = 100.0
    """Counts from here on have full weight."""
    alpha: float = 0.75
    """How fast the weight falls below x_max."""
    scale: bool = True
    """Divide dot products by the square root of the width."""
    factor: Literal["neighbours", "window", "none"] = "neighbours"
    """Divide by a token's neighbours in its sentence, by 2n even at its edges, or not at all."""
    detach: Literal["none", "site", "neighbour"] = "none"
    """The side that gets no gradient: neither, the hidden token's, or its neighbours'."""

    def __post_init__(self) -> None:
        require(len(self.on) > 0, "cooccurrence.on must name an objective")
        require(self.x_max > 0, "cooccurrence.x_max must be above 0")
        require(self.alpha >= 0, "cooccurrence.alpha must not be negative")

    @override
    def hosts(self) -> tuple[str, ...]:
        return self.on

    @override
    def lengths(self, sizes: IntArray) -> IntArray:
        return np.zeros((len(sizes), 0), np.int32)

    @override
    def reach(self, sizes: IntArray) -> IntArray:
        return np.zeros(len(sizes), np.int32)

    @override
    def max_targets(self, sizes: IntArray) -> IntArray:
        return np.zeros(len(sizes), np.int32)

    @override
    def build(
        self, example: Example, vocabulary: Vocabulary, rng: np.random.Generator
    ) -> tuple[Sequence, ...]:
        return ()

    @override
    def module(self, encoder: Encoder, corpus: Corpus) -> ObjectiveModule:
        table = count_pairs(corpus, self.pairs, workers=os.cpu_count() or 1)
        return Regression(self, table, corpus.vocabulary.is_special, encoder)


class Regression(ObjectiveModule):
    """The model half: no weights of its own, only the counts."""

    special: Tensor

    def __init__(
        self, settings: Cooccurrence, table: PairTable, is_special: BoolArray, encoder: Encoder
    ) -> None:
        super().__init__()
        self.settings = settings
        self.lookup = PairLookup(table)
        # what a model has beyond the tokenizer's words (tokens of languages) is special too
        more = max(0, encoder.vocabulary_size - len(is_special))
        special = np.pad(is_special, (0, more), constant_values=True)
        self.register_buffer("special", torch.from_numpy(special), persistent=False)
        # the method and not the module: the weights stay the encoder's own
        self._output: Callable[[], torch.nn.Linear] = encoder.model.get_output_embeddings
        width = self._output().weight.shape[1]
        if settings.against == "output" and width != encoder.hidden_size:
            raise ModelError(
                f"cooccurrence.against: output multiplies states of width {encoder.hidden_size} "
                f"with output embeddings of width {width}. Use against: states with this model."
            )

    @override
    def loss(self, encoded: Encoded) -> LossSum:
        batch, settings = encoded.batch, self.settings
        spans = [batch.spans[host] for host in settings.on if host in batch.spans]
        sites = torch.cat([batch.positions[start:stop] for start, stop in spans])
        ids = original_ids(batch)
        near = neighbours(batch.rows, sites, ~self.special[ids], settings.pairs.window)
        counts = self.lookup(ids[sites][:, None], ids[near.places]) * near.there
        products = self._products(encoded.states.flatten(0, 1), sites, near, ids)
        seen = counts > 0
        trust = torch.where(seen, (counts / settings.x_max).clamp(max=1) ** settings.alpha, 0.0)
        errors = products - torch.where(seen, counts, 1.0).log()
        losses = (trust * errors.square()).sum(dim=1) / self._divisors(near)
        return LossSum(
            total=losses.sum(),
            ratios={
                "seen": (seen.sum(), near.there.sum()),
                "error": ((trust * errors.abs()).sum(), trust.sum()),
            },
        )

    def _products(self, states: Tensor, sites: Tensor, near: Neighbours, ids: Tensor) -> Tensor:
        """(N, 2n) scaled dot products of each site with its neighbours."""
        exact = torch.promote_types(states.dtype, torch.float32)
        mine = states.index_select(0, sites)
        if self.settings.against == "states":
            theirs = states.index_select(0, near.places.flatten())
        else:
            theirs = F.embedding(ids[near.places].flatten(), self._output().weight)
        if self.settings.detach == "site":
            mine = mine.detach()
        if self.settings.detach == "neighbour":
            theirs = theirs.detach()
        theirs = theirs.to(exact).unflatten(0, near.places.shape)
        # no matrix product: autocast would round it
        products: Tensor = (mine.to(exact)[:, None] * theirs).sum(dim=-1)
        return products / math.sqrt(states.shape[1]) if self.settings.scale else products

    def _divisors(self, near: Neighbours) -> Tensor | int:
        if self.settings.factor == "none":
            return 1
        if self.settings.factor == "window":
            return near.there.shape[1]
        return near.there.sum(dim=1).clamp(min=1)
