"""Global co-occurrence: regress products of neighbouring states on counts of their token pairs.

Builds no sequences: it reads the target positions of other objectives (`target_objectives`). MLM-GC
(Ai and Fang, 2023) section 3.2, Eq. 3: at a masked token w_t with neighbours w_k within n places,

    1/2n · sum over k of  f(X_tk) · (H_t · H_k / sqrt(d) - log X_tk)^2
    f(x) = min(1, (x / 100)^0.75)

with X counted over the whole corpus (`corpus/cooccurrence`), original ids on both sides, and hidden
states of the forward pass, of masked and unmasked neighbours. `neighbour_vectors:
output_embeddings` is Eq. 6, with O_k in place of H_k. Pairs that never occur have weight 0.

Where the paper is silent: gradients flow into both sides (`detach`), a token near its sentence's
edge has fewer neighbours and divides by their number (`normalize_by`), alpha is GloVe's.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from typing_extensions import override

from isoglot.corpus.cooccurrence.pair_table import PairConfig
from isoglot.errors import ModelError, require
from isoglot.objectives.base import ForwardResult, LossSum, Objective, ObjectiveModule

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from isoglot.corpus import Corpus
    from isoglot.corpus.cooccurrence.pair_table import PairTable
    from isoglot.corpus.engine.runner import Progress
    from isoglot.models.encoder import Encoder
    from isoglot.types import Batch, BoolArray, IntArray, Rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Cooccurrence(Objective):
    """Settings of the regression on co-occurrence; the paper's lambda is `weight`."""

    name: ClassVar[str] = "cooccurrence"
    summary: ClassVar[str] = (
        "predict from the states of neighbouring tokens how often they co-occur"
    )
    reads: ClassVar[tuple[str, ...]] = ("text", "parallel")
    paper: ClassVar[str] = "MLM-GC 3.2"

    target_objectives: tuple[str, ...] = ("mlm", "tlm")
    """The objectives at whose masked tokens it is computed, as the recipe names them."""
    pairs: PairConfig = field(default_factory=PairConfig)
    """Which pairs are counted; its window is also that of the loss."""
    neighbour_vectors: Literal["hidden_states", "output_embeddings"] = "hidden_states"
    """Multiply with the neighbours' hidden states (Eq. 3) or output embeddings (Eq. 6)."""
    x_max: float = 100.0
    """Counts from here on have full weight."""
    alpha: float = 0.75
    """The exponent of the weight below x_max."""
    scale: bool = True
    """Divide dot products by the square root of the width."""
    normalize_by: Literal["neighbours", "window", "none"] = "neighbours"
    """Divide by a token's neighbours in its sentence, by 2n even at its edges, or not at all."""
    detach: Literal["none", "target", "neighbour"] = "none"
    """The side without gradient: none, the masked token's, or its neighbours'."""

    def __post_init__(self) -> None:
        require(
            len(self.target_objectives) > 0, "cooccurrence.target_objectives must name an objective"
        )
        require(self.x_max > 0, "cooccurrence.x_max must be above 0")
        require(self.alpha >= 0, "cooccurrence.alpha must not be negative")

    @override
    def depends_on(self) -> tuple[str, ...]:
        return self.target_objectives

    @override
    def prepare(self, corpus: Corpus, progress: Progress | None = None) -> Self:
        self._pair_table(corpus, progress)
        return self

    @override
    def lengths(self, sizes: IntArray) -> IntArray:
        return np.zeros((len(sizes), 0), np.int32)

    @override
    def num_positions(self, sizes: IntArray) -> IntArray:
        return np.zeros(len(sizes), np.int32)

    @override
    def build_module(self, encoder: Encoder, corpus: Corpus) -> ObjectiveModule:
        table = self._pair_table(corpus)
        return CooccurrenceRegression(self, table, corpus.vocabulary.is_special, encoder)

    def _pair_table(self, corpus: Corpus, progress: Progress | None = None) -> PairTable:
        from isoglot.corpus.cooccurrence.count import count_pairs

        return count_pairs(corpus, self.pairs, workers=os.cpu_count() or 1, progress=progress)


class CooccurrenceRegression(ObjectiveModule):
    """The model half: no weights, only the counts."""

    special: Tensor

    def __init__(
        self, settings: Cooccurrence, table: PairTable, is_special: BoolArray, encoder: Encoder
    ) -> None:
        super().__init__()
        self.settings = settings
        self.lookup = PairLookup(table)
        # ids of the model beyond the tokenizer's (language tokens) are special, too
        more = max(0, encoder.vocabulary_size - len(is_special))
        special = np.pad(is_special, (0, more), constant_values=True)
        self.register_buffer("special", torch.from_numpy(special), persistent=False)
        # the method, not the module: the weights stay the encoder's own
        self._output: Callable[[], nn.Linear] = encoder.model.get_output_embeddings
        width = self._output().weight.shape[1]
        embeddings = settings.neighbour_vectors == "output_embeddings"
        if embeddings and width != encoder.hidden_size:
            raise ModelError(
                "cooccurrence.neighbour_vectors: output_embeddings multiplies states of width "
                f"{encoder.hidden_size} with output embeddings of width {width}. Use "
                "hidden_states with this model."
            )

    @override
    def loss(self, result: ForwardResult) -> LossSum:
        batch = result.batch
        slices = [
            batch.target_slices[name]
            for name in self.settings.target_objectives
            if name in batch.target_slices
        ]
        targets = torch.cat([batch.target_positions[start:stop] for start, stop in slices])
        states = result.hidden_states.flatten(0, 1)
        return self.regress(states, targets, original_ids(batch), layout_of_rows(batch.rows))

    def regress(self, states: Tensor, targets: Tensor, ids: Tensor, layout: TokenLayout) -> LossSum:
        """The loss at masked tokens, flat indices (N,) into the T tokens of any batch.

        Reads the hidden states (T, D) and the ids before masking (T,).
        """
        settings = self.settings
        near = find_neighbours(layout, targets, ~self.special[ids], settings.pairs.window)
        logs, seen = self.lookup(ids[targets][:, None], ids[near.places])
        seen &= near.exists
        # f(x) = min(1, (x / x_max)^alpha), of logs
        weights = (settings.alpha * (logs - math.log(settings.x_max))).clamp(max=0).exp() * seen
        errors = self._products(states, targets, near, ids) - logs
        losses = (weights * errors.square()).sum(dim=1) / self._divisors(near)
        return LossSum(
            total=losses.sum(),
            ratios={
                "seen": (seen.sum(), near.exists.sum()),
                "error": ((weights * errors.abs()).sum(), weights.sum()),
            },
        )

    def _products(self, states: Tensor, targets: Tensor, near: Neighbours, ids: Tensor) -> Tensor:
        """(N, 2n) scaled dot products of each masked token with its neighbours."""
        exact = torch.promote_types(states.dtype, torch.float32)
        mine = states.index_select(0, targets)
        if self.settings.neighbour_vectors == "hidden_states":
            theirs = states.index_select(0, near.places.flatten())
        else:
            theirs = F.embedding(ids[near.places].flatten(), self._output().weight)
        if self.settings.detach == "target":
            mine = mine.detach()
        if self.settings.detach == "neighbour":
            theirs = theirs.detach()
        theirs = theirs.to(exact).unflatten(0, near.places.shape)
        # no matrix product: autocast would round it
        products: Tensor = (mine.to(exact)[:, None] * theirs).sum(dim=-1)
        return products / math.sqrt(states.shape[1]) if self.settings.scale else products

    def _divisors(self, near: Neighbours) -> Tensor | int:
        if self.settings.normalize_by == "none":
            return 1
        if self.settings.normalize_by == "window":
            return near.exists.shape[1]
        return near.exists.sum(dim=1).clamp(min=1)


class PairLookup(nn.Module):
    """Maps two tensors of token ids to the log counts of their pairs, on the training device.

    The arrays of a `PairTable` are buffers that move with the model and are not in its checkpoints.
    A batch looks up about 10,000 pairs in one sorted search over all keys: 26 probes into 50M keys,
    side by side in one kernel. An index by the first id would need 16 probes and a dozen kernels.
    """

    keys: Tensor
    logs: Tensor

    def __init__(self, table: PairTable) -> None:
        super().__init__()
        self.size = table.vocabulary_size
        # on a CPU these stay memory maps of the file
        self.register_buffer("keys", torch.from_numpy(table.keys), persistent=False)
        self.register_buffer("logs", torch.from_numpy(table.log_counts), persistent=False)

    @override
    def forward(self, first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
        """Log counts of the pairs (first, second), 0 where unseen; and which pairs were seen.

        Both have the shape that `first` and `second` broadcast to.
        """
        wanted = torch.minimum(first, second) * self.size + torch.maximum(first, second)
        exact = torch.promote_types(self.logs.dtype, torch.float32)
        if not len(self.keys):
            nothing = torch.zeros_like(wanted, dtype=exact)
            return nothing, nothing.bool()
        places = torch.searchsorted(self.keys, wanted).clamp(max=len(self.keys) - 1)
        seen = self.keys[places] == wanted
        return torch.where(seen, self.logs[places].to(exact), 0.0), seen


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenLayout:
    """The sentence and position of each token: flat tensors over T tokens of any batch."""

    sentences: Tensor
    """(T,) the same number for the tokens of a sentence, and for no others."""
    positions: Tensor
    """(T,) the position in the sequence; adjacent tokens have adjacent positions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours:
    """For each of N positions, the 2n places around it."""

    places: Tensor
    """(N, 2n) flat indices; any valid index where there is no neighbour."""
    exists: Tensor
    """(N, 2n) bool: is this a token of the same sentence?"""


def find_neighbours(
    layout: TokenLayout, targets: Tensor, ordinary: Tensor, window: int
) -> Neighbours:
    """The tokens at most `window` places from each target (N,), on both sides.

    `ordinary` (T,) says which tokens are not special.
    """
    steps = torch.arange(1, window + 1, device=targets.device)
    steps = torch.cat([-steps.flip(0), steps])
    wanted = targets[:, None] + steps
    places = wanted.clamp(0, len(ordinary) - 1)
    exists = (places == wanted) & ordinary[places]
    exists &= layout.sentences[places] == layout.sentences[targets][:, None]
    # slots are adjacent in a row, but not in their sentence
    exists &= layout.positions[places] == layout.positions[targets][:, None] + steps
    return Neighbours(places=places, exists=exists)


def layout_of_rows(rows: Rows) -> TokenLayout:
    """The layout of packed rows: a sentence is one of a row, a sequence and a role."""
    number, length = rows.ids.shape
    sentences = torch.arange(number, device=rows.ids.device)[:, None]
    for column in (rows.sequences, rows.sentences, rows.roles):
        # none has more values in a row than the row has tokens; padding has sequence -1
        sentences = sentences * (length + 1) + column + 1
    return TokenLayout(sentences=sentences.flatten(), positions=rows.positions.flatten())


def original_ids(batch: Batch) -> Tensor:
    """(B * L,) the ids of the main rows before masking."""
    filled = max((stop for _, stop in batch.target_slices.values()), default=0)
    return batch.rows.ids.flatten().scatter(
        0, batch.target_positions[:filled], batch.targets[:filled]
    )
