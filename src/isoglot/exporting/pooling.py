"""The pooling of a sentence-transformers folder, chosen on held-out translations.

Tried are the mean of the states and the first token, of every layer: accuracy@1 by cosine, the mean
of both directions and of all pairs of languages. A lower layer is chosen only where it is better
than the last one by more than two standard errors of the paired difference, on 100 pairs or more;
the folder then holds the encoder up to that layer. The pairs are development data: scores on them
are not to be reported.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch

from isoglot.evaluation.embed import pad_rows
from isoglot.evaluation.retrieval import nearest_neighbors
from isoglot.models.finite import check_states
from isoglot.models.model_card import table
from isoglot.models.truncate import truncated_states

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from torch import Tensor

    TokenizedPairs = Mapping[str, tuple[Sequence[list[int]], Sequence[list[int]]]]
    """Pair of languages -> ids of the sentences of both sides, with special tokens."""

    from isoglot.types import FloatArray

Progress = Callable[[str, int, int | None], None]
Pooling = Literal["mean", "cls"]
Layers = Literal["all", "last"]
_POOLINGS: tuple[Pooling, ...] = ("mean", "cls")
_STANDARD_ERRORS = 2.0
"""How clearly a lower layer must be better than the last."""
_MIN_PAIRS = 100
"""With fewer pairs only the poolings of the last layer are compared."""
_MAX_BATCH_TOKENS = 8192


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolingScore:
    """What one way of pooling reaches on the held-out pairs."""

    pooling: Pooling
    layer: int
    """0 for the embeddings."""
    accuracy: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolingChoice:
    """The pooling of a sentence-transformers folder, and what else was tried."""

    pooling: Pooling
    layer: int
    num_layers: int
    """Layers of the encoder."""
    reason: str
    """A sentence: how it was chosen, and on what."""
    tried: tuple[PoolingScore, ...] = ()

    @classmethod
    def of_last(cls, base: Any, pooling: Pooling, reason: str) -> PoolingChoice:
        """A pooling of the last layer that was not compared with others."""
        last = int(base.config.num_hidden_layers)
        return cls(pooling=pooling, layer=last, num_layers=last, reason=reason)

    def describe(self) -> str:
        """The sentence vector, in words."""
        what = "the state of the first token" if self.pooling == "cls" else "the mean state"
        if self.layer == self.num_layers:
            return f"{what} of the last layer"
        return f"{what} of layer {self.layer} of {self.num_layers}"

    def rows(self) -> list[list[str]]:
        """The table of what was tried: a line for each layer, a column for each pooling."""
        found = {(one.layer, one.pooling): one.accuracy for one in self.tried}
        rows = []
        for layer in sorted({layer for layer, _ in found}):
            cells = [f"{100 * found[layer, how]:.1f}" for how in _POOLINGS]
            if layer == self.layer:
                cells[_POOLINGS.index(self.pooling)] += " (chosen)"
            rows.append([str(layer), *cells])
        return rows

    def card(self) -> str:
        """The section of a model card that says how the pooling was chosen."""
        parts = ["## Sentence vectors", f"A vector is {self.describe()}. {self.reason}"]
        if self.tried:
            parts.append(table(("layer", "mean", "first token"), self.rows()))
        return "\n\n".join(parts) + "\n"


@torch.no_grad()
def choose_pooling(
    base: Any,
    pad: int,
    pairs: TokenizedPairs,
    *,
    source: str,
    layers: Layers = "all",
    progress: Progress | None = None,
) -> PoolingChoice:
    """The best pooling and layer of an encoder on held-out pairs.

    Args:
        base: a transformers encoder (`AutoModel`).
        pad: the id of its padding token.
        pairs: at least two pairs of sentences of one pair of languages.
        source: names the pairs on the card.
        layers: try every layer, or only the last.
        progress: called with (stage, done, total).
    """
    last = int(base.config.num_hidden_layers)
    number = sum(len(first) for first, _ in pairs.values())
    tried = range(1, last + 1) if layers == "all" and number >= _MIN_PAIRS else [last]
    hits = _hits(base, pad, pairs, tried, progress)
    # pairs of languages count alike, whatever their number of sentences
    means = {key: float(np.mean([one.mean() for one in found])) for key, found in hits.items()}
    at_last: Pooling = max(_POOLINGS, key=lambda how: means[how, last])
    best = max(means, key=lambda key: (means[key], key == (at_last, last), key[1]))
    gain, error = _difference(hits[best], hits[at_last, last])
    is_clear = gain > _STANDARD_ERRORS * error
    pooling, layer = best if is_clear else (at_last, last)
    reason = (
        f"It was chosen by retrieval on {number:,} held-out pairs ({source}; "
        f"{', '.join(pairs)}): accuracy@1 in percent, the mean of both directions. These are "
        "development data, not a test."
    )
    if is_clear:
        reason += f" This layer is better than the last by {100 * gain:.1f} points, more than "
        reason += "two standard errors."
    elif best[1] != last:
        reason += " No lower layer is better than the last by more than two standard errors."
    scores = tuple(
        PoolingScore(pooling=how, layer=number, accuracy=means[how, number])
        for number in tried
        for how in _POOLINGS
    )
    return PoolingChoice(pooling=pooling, layer=layer, num_layers=last, reason=reason, tried=scores)


def _difference(one: list[FloatArray], other: list[FloatArray]) -> tuple[float, float]:
    """The mean difference over pairs of languages, and its standard error over sentences."""
    gaps = [a - b for a, b in zip(one, other, strict=True)]
    variances = [gap.var() / len(gap) for gap in gaps]
    return float(np.mean([gap.mean() for gap in gaps])), float(np.sqrt(sum(variances)) / len(gaps))


def _hits(
    base: Any,
    pad: int,
    pairs: TokenizedPairs,
    layers: Sequence[int],
    progress: Progress | None,
) -> dict[tuple[Pooling, int], list[FloatArray]]:
    """(pooling, layer) -> for each pair of languages, the share of directions that are right."""
    found: dict[tuple[Pooling, int], list[FloatArray]] = {}
    total, done = sum(2 * len(first) for first, _ in pairs.values()), 0
    for first, second in pairs.values():
        sides = []
        for side in (first, second):
            vectors = _vectors(base, pad, side, layers)
            sides.append(vectors)
            done += len(side)
            if progress is not None:
                progress("choosing the pooling", done, total)
        for key in sides[0]:
            there, back = nearest_neighbors(sides[0][key], sides[1][key])
            right = _right(second, there.indices) + _right(first, back.indices)
            found.setdefault(key, []).append(right / 2)
    return found


def _right(texts: Sequence[list[int]], nearest: Tensor) -> FloatArray:
    """1 where the nearest text is the translation, or has the same tokens."""
    best = nearest[:, 0].tolist()
    return np.array([float(texts[n] == texts[i]) for i, n in enumerate(best)])


def _vectors(
    base: Any, pad: int, texts: Sequence[list[int]], layers: Sequence[int]
) -> dict[tuple[Pooling, int], Tensor]:
    """(pooling, layer) -> (N, D) vectors on the CPU."""
    device, width = next(base.parameters()).device, int(base.config.hidden_size)
    keys: list[tuple[Pooling, int]] = [(how, layer) for layer in layers for how in _POOLINGS]
    found = {key: torch.zeros(len(texts), width) for key in keys}
    for indices in _batches(texts):
        rows = pad_rows([list(texts[i]) for i in indices], pad)
        mask = (rows.sequences >= 0).to(device)
        output = base(
            input_ids=rows.ids.to(device),
            attention_mask=mask.long(),
            output_hidden_states=True,
        )
        check_states((output.last_hidden_state,), rows.sequences >= 0, indices)
        weights = mask.float() / mask.sum(dim=1, keepdim=True)
        for layer in layers:
            states = truncated_states(base, output.hidden_states, layer).float()
            found["mean", layer][indices] = torch.einsum("bl,bld->bd", weights, states).cpu()
            found["cls", layer][indices] = states[:, 0].cpu()
    return found


def _batches(texts: Sequence[list[int]]) -> Iterator[list[int]]:
    """Indices of texts, shortest first, in batches of at most `_MAX_BATCH_TOKENS`."""
    batch: list[int] = []
    for index in sorted(range(len(texts)), key=lambda i: len(texts[i])):
        if batch and (len(batch) + 1) * len(texts[index]) > _MAX_BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch
