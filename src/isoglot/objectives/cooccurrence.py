"""Global co-occurrence: regress products of neighboring states on counts of their token pairs.

Builds no sequences: it reads the target positions of other objectives (`target_objectives`). MLM-GC
(Ai and Fang, 2023) section 3.2, Eq. 3: at a masked token w_t with neighbors w_k within n places,

    1/2n · sum over k of  f(X_tk) · (H_t · H_k / sqrt(d) - log X_tk)^2
    f(x) = min(1, (x / 100)^0.75)

with X counted over the whole corpus (`corpus/cooccurrence`), original ids on both sides, and hidden
states of the forward pass, of masked and unmasked neighbors (`neighbors`). Pairs that never occur
have weight 0.

`neighbor_vectors: output_embeddings` is Eq. 6, with O_k in place of H_k. H_t · O_k is what the MLM
softmax reads (Eq. 5), so H_t goes through the LM head's transform first, which XLM's head does not
have and BERT's and XLM-R's do; `lm_head_transform: false` multiplies H_t itself.

In MASS the decoder predicts: `states: decoder` reads its states where it predicts w_t and w_k.

Where the paper is silent: gradients flow into both sides (`detach`), a token near its sentence's
edge has fewer neighbors and divides by their number (`normalize_by`), alpha is GloVe's.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from typing_extensions import override

from isoglot.corpus.cooccurrence.pair_table import PairConfig
from isoglot.errors import ModelError, RecipeError, require
from isoglot.objectives.base import ForwardResult, LossSum, Objective, ObjectiveModule
from isoglot.objectives.neighbors import (
    TokenLayout,
    find_neighbors,
    layout_of_rows,
    original_ids,
    predicted_ids,
)
from isoglot.ranges import Range
from isoglot.types import Seq2SeqBatch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Self

    from isoglot.corpus import Corpus
    from isoglot.corpus.cooccurrence.pair_table import PairTable
    from isoglot.corpus.engine.runner import Progress
    from isoglot.models.encoder import Encoder
    from isoglot.objectives.neighbors import Neighbors
    from isoglot.types import IntArray, Vocabulary


@dataclass(frozen=True, slots=True, kw_only=True)
class Cooccurrence(Objective):
    """Settings of the regression on co-occurrence; the paper's lambda is `weight`."""

    name: ClassVar[str] = "cooccurrence"
    summary: ClassVar[str] = "predict from the states of neighboring tokens how often they co-occur"
    reads: ClassVar[tuple[str, ...]] = ("text", "parallel")
    paper: ClassVar[str] = "MLM-GC 3.2"

    target_objectives: tuple[str, ...] = ("mlm", "tlm")
    """The objectives at whose masked tokens it is computed, as the recipe names them."""
    pairs: PairConfig = field(default_factory=PairConfig)
    """Which pairs are counted; its window is also that of the loss."""
    neighbors: Literal["all", "shown", "masked"] = "all"
    """All neighbors, those whose input is not the mask token (XLM), or those whose is (MASS)."""
    states: Literal["encoder", "decoder"] = "encoder"
    """The half whose hidden states are multiplied; the decoder's with `mass`."""
    neighbor_vectors: Literal["hidden_states", "output_embeddings"] = "hidden_states"
    """Multiply with the neighbors' hidden states (Eq. 3) or output embeddings (Eq. 6)."""
    lm_head_transform: bool = True
    """Eq. 6: apply the LM head's transform to the masked token's state first, as MLM does."""
    log_plus_one: bool = False
    """Regress on log(X + 1), as the released code does."""
    x_max: Annotated[float, Range(0, 1e12, above=True)] = 100.0
    """Counts from here on have full weight."""
    alpha: Annotated[float, Range(0, 10)] = 0.75
    """The exponent of the weight below x_max."""
    scale: bool = True
    """Divide dot products by the square root of the width."""
    normalize_by: Literal["neighbors", "window", "none"] = "neighbors"
    """Divide by a token's neighbors in its sentence, by 2n even at its edges, or not at all."""
    detach: Literal["none", "target", "neighbor"] = "none"
    """The side without gradient: none, the masked token's, or its neighbors'."""

    @override
    def __post_init__(self) -> None:
        require(
            len(self.target_objectives) > 0, "cooccurrence.target_objectives must name an objective"
        )
        require(
            self.states == "encoder"
            or (self.neighbors != "shown" and self.neighbor_vectors == "hidden_states"),
            "cooccurrence.states: decoder needs neighbor_vectors: hidden_states and neighbors: "
            "all or masked, as the decoder has states of masked tokens only",
        )
        Objective.__post_init__(self)

    @override
    def depends_on(self) -> tuple[str, ...]:
        return self.target_objectives

    @override
    def check_together(self, objectives: Mapping[str, Objective]) -> None:
        for name in self.target_objectives:
            if (
                self.states == "decoder"
                and name in objectives
                and not objectives[name].uses_decoder
            ):
                raise RecipeError(
                    f"cooccurrence.states: decoder reads the decoder's states, and {name!r} has "
                    "no decoder. Set states: encoder."
                )

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
        return CooccurrenceRegression(self, table, corpus.vocabulary, encoder)

    def _pair_table(self, corpus: Corpus, progress: Progress | None = None) -> PairTable:
        from isoglot.corpus.cooccurrence.count import count_pairs

        return count_pairs(corpus, self.pairs, workers=os.cpu_count() or 1, progress=progress)


class CooccurrenceRegression(ObjectiveModule):
    """The model half: no weights, only the counts."""

    special: Tensor

    def __init__(
        self, settings: Cooccurrence, table: PairTable, vocabulary: Vocabulary, encoder: Encoder
    ) -> None:
        super().__init__()
        self.settings, self._vocabulary = settings, vocabulary
        self.lookup = PairLookup(table)
        # ids of the model beyond the tokenizer's (language tokens) are special, too
        more = max(0, encoder.vocabulary_size - len(vocabulary.is_special))
        special = np.pad(vocabulary.is_special, (0, more), constant_values=True)
        self.register_buffer("special", torch.from_numpy(special), persistent=False)
        # no modules of this one: the weights stay the encoder's own
        self._output: Callable[[], nn.Linear] = encoder.model.get_output_embeddings
        self._lm_head = encoder.lm_head
        if settings.neighbor_vectors == "output_embeddings":
            _check_output_embeddings(settings, encoder)

    @override
    def loss(self, result: ForwardResult) -> LossSum:
        batch = result.batch
        if self.settings.states == "decoder":
            return self._decoder_loss(result)
        targets = self._targets(batch.target_slices, batch.target_positions)
        ids = original_ids(batch)
        candidates = ~self.special[ids]
        if self.settings.neighbors != "all":
            masked = batch.rows.ids.flatten() == self._vocabulary.mask
            candidates &= masked if self.settings.neighbors == "masked" else ~masked
        states, layout = result.hidden_states.flatten(0, 1), layout_of_rows(batch.rows)
        return self.regress(states, targets, ids, layout, candidates)

    def _decoder_loss(self, result: ForwardResult) -> LossSum:
        """The loss at the decoder's predictions; each row of the decoder is a sentence."""
        if result.decoder_states is None:
            return result.empty_loss(ratios=("seen", "error"))
        assert isinstance(result.batch, Seq2SeqBatch)
        decoding = result.batch.decoding
        ids = predicted_ids(decoding, nothing=self._vocabulary.pad)
        targets = self._targets(decoding.target_slices, decoding.target_positions)
        rows = torch.arange(len(decoding.rows.ids), device=ids.device)
        layout = TokenLayout(
            sentences=rows.repeat_interleave(decoding.rows.ids.shape[1]),
            positions=decoding.rows.positions.flatten(),
        )
        states = result.decoder_states.flatten(0, 1)
        return self.regress(states, targets, ids, layout, ~self.special[ids])

    def _targets(self, slices: dict[str, tuple[int, int]], positions: Tensor) -> Tensor:
        """The flat indices of the masked tokens of the objectives that it reads."""
        names = [name for name in self.settings.target_objectives if name in slices]
        return torch.cat([positions[slice(*slices[name])] for name in names])

    def regress(
        self, states: Tensor, targets: Tensor, ids: Tensor, layout: TokenLayout, candidates: Tensor
    ) -> LossSum:
        """The loss at masked tokens, flat indices (N,) into the T tokens of any batch.

        Reads the hidden states (T, D), the ids before masking (T,), and which tokens may be
        neighbors (T,).
        """
        settings = self.settings
        near = find_neighbors(layout, targets, candidates, settings.pairs.window)
        logs, seen = self.lookup(ids[targets][:, None], ids[near.places])
        seen &= near.exists
        # f(x) = min(1, (x / x_max)^alpha), of logs
        weights = (settings.alpha * (logs - math.log(settings.x_max))).clamp(max=0).exp() * seen
        wanted = logs.exp().log1p() if settings.log_plus_one else logs
        errors = self._products(states, targets, near, ids) - wanted
        losses = (weights * errors.square()).sum(dim=1) / self._divisors(near)
        return LossSum(
            total=losses.sum(),
            ratios={
                "seen": (seen.sum(), near.exists.sum()),
                "error": ((weights * errors.abs()).sum(), weights.sum()),
            },
        )

    def _products(self, states: Tensor, targets: Tensor, near: Neighbors, ids: Tensor) -> Tensor:
        """(N, 2n) scaled dot products of each masked token with its neighbors."""
        exact = torch.promote_types(states.dtype, torch.float32)
        mine = states.index_select(0, targets)
        if self.settings.neighbor_vectors == "hidden_states":
            theirs = states.index_select(0, near.places.flatten())
        else:
            theirs = F.embedding(ids[near.places].flatten(), self._output().weight)
            if self.settings.lm_head_transform:
                mine = self._lm_head.features(mine)
        if self.settings.detach == "target":
            mine = mine.detach()
        if self.settings.detach == "neighbor":
            theirs = theirs.detach()
        theirs = theirs.to(exact).unflatten(0, near.places.shape)
        # no matrix product: autocast would round it
        products: Tensor = (mine.to(exact)[:, None] * theirs).sum(dim=-1)
        return products / math.sqrt(mine.shape[1]) if self.settings.scale else products

    def _divisors(self, near: Neighbors) -> Tensor | int:
        if self.settings.normalize_by == "none":
            return 1
        if self.settings.normalize_by == "window":
            return near.exists.shape[1]
        return near.exists.sum(dim=1).clamp(min=1)


def _check_output_embeddings(settings: Cooccurrence, encoder: Encoder) -> None:
    """Refuse an encoder whose states cannot be multiplied with its output embeddings."""
    width = encoder.model.get_output_embeddings().weight.shape[1]
    if settings.lm_head_transform and not encoder.lm_head.ends_with_output_embeddings:
        raise ModelError(
            "cooccurrence.neighbor_vectors: output_embeddings reads the input of the product with "
            "them, and this model's LM head does not end with that product. Use hidden_states, or "
            "lm_head_transform: false."
        )
    if not settings.lm_head_transform and width != encoder.hidden_size:
        raise ModelError(
            "cooccurrence.lm_head_transform: false multiplies states of width "
            f"{encoder.hidden_size} with output embeddings of width {width}. Set it to true, or "
            "use hidden_states."
        )


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
