"""Bitext retrieval: nearest neighbors of sentence vectors by cosine or ratio margin.

Retrieval, as Tatoeba in XTREME: the share of sentences whose nearest neighbor on the other side is
their translation (accuracy@1), in both directions. Identical sentences count as translations, as in
XTREME; where some pairs have the same text in both languages, the accuracy without them is another
metric.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from isoglot.evaluation.embed import embed, layer_groups
from isoglot.intervals import Measured, measured_mean
from isoglot.models.finite import check_vectors
from isoglot.tasks.base import accuracy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isoglot.evaluation.data import ScoringJob
    from isoglot.results import Score
    from isoglot.tasks.examples import SentencePair

_BLOCK = 1024
"""Vectors of one side that are multiplied with all of the other side at a time."""


def score_retrieval(job: ScoringJob, examples: Sequence[SentencePair] | None = None) -> list[Score]:
    """Accuracy@1 of the job's examples, or of others: both directions, and their mean.

    At every layer, of the mean state; then, without a layer, of the vectors that the model folder
    gives its users.
    """
    examples = job.examples() if examples is None else examples
    found: list[Score] = []
    values: dict[str, Measured] = {}
    for layers in layer_groups(job.encoder, 2 * len(examples)):
        for layer, neighbors in zip(layers, _pair_neighbors(job, examples, layers), strict=True):
            values = _directions(job, examples, *neighbors)
            found += job.scores(values, layer=layer)
    if not job.exported.is_plain:
        values = _directions(job, examples, *_neighbors(job, *_exported_sides(job, examples)))
    return [*found, *job.scores(values)]


@dataclass(frozen=True, slots=True)
class Choices:
    """The nearest sentence on the other side of each sentence of some pairs, in one direction."""

    indices: list[int]
    cosines: list[float]
    right_cosines: list[float]
    """Those with the translations."""


def delivered_choices(job: ScoringJob, examples: Sequence[SentencePair]) -> tuple[Choices, Choices]:
    """What the vectors that the model folder gives its users choose, in both directions."""
    sides = _exported_sides(job, examples)
    right = F.cosine_similarity(sides[0].float(), sides[1].float(), dim=-1).tolist()
    found = [
        Choices(own.indices[:, 0].tolist(), own.cosines[:, 0].tolist(), right)
        for own in nearest_neighbors(*sides)
    ]
    return found[0], found[1]


def _exported_sides(job: ScoringJob, examples: Sequence[SentencePair]) -> tuple[Tensor, Tensor]:
    first, second = (
        _exported(job, [getattr(pair, side) for pair in examples], language)
        for side, language in zip(_SIDES, job.languages, strict=True)
    )
    return first, second


_SIDES = ("first", "second")
IDENTICAL = "without identical texts"
"""Suffix of the accuracy over the pairs whose two texts differ."""


def is_identical(pair: SentencePair) -> bool:
    """Whether both languages have the same text, but for case: a name, a number, a formula."""
    return pair.first.strip().casefold() == pair.second.strip().casefold()


def _directions(
    job: ScoringJob, examples: Sequence[SentencePair], forward: Neighbors, backward: Neighbors
) -> dict[str, Measured]:
    """Metric -> score of one layer: the mean of both directions, and each of them."""
    flipped = [replace(pair, first=pair.second, second=pair.first) for pair in examples]
    codes = job.split.language.split("-")
    by_direction: dict[str, Measured] = {}
    right = []
    for direction, pairs, own, other in (
        (codes, examples, forward, backward),
        (codes[::-1], flipped, backward, forward),
    ):
        predicted = best_neighbors(own, other, margin=job.settings.margin)[0].tolist()
        hits = [pairs[n].second == pair.second for n, pair in zip(predicted, pairs, strict=True)]
        right.append(np.array(hits, float))
        for metric, score in job.task.score(pairs, predicted, job.split.language).items():
            name = f"{metric} {'→'.join(direction)}"
            by_direction[name] = measured_mean(score, right[-1])
    both = (right[0] + right[1]) / 2
    mean = sum(one.value for one in by_direction.values()) / len(by_direction)
    metric = job.task.metrics[0].name
    values = {metric: measured_mean(mean, both), **by_direction}
    different = np.array([not is_identical(pair) for pair in examples])
    if different.any() and not different.all():
        left = both[different]
        values[f"{metric} {IDENTICAL}"] = measured_mean(float(left.mean()), left)
    return values


def _pair_neighbors(
    job: ScoringJob, examples: Sequence[SentencePair], layers: Sequence[int]
) -> list[tuple[Neighbors, Neighbors]]:
    """For each layer, the neighbors in both directions; the vectors are freed here."""
    texts = [pair.first for pair in examples], [pair.second for pair in examples]
    sides = embed_sides(job, texts, layers)
    return [_neighbors(job, first, second) for first, second in zip(*sides, strict=True)]


def _neighbors(job: ScoringJob, first: Tensor, second: Tensor) -> tuple[Neighbors, Neighbors]:
    """The neighbors in both directions, as many as the settings rank by."""
    k = job.settings.num_neighbors if job.settings.margin else 1
    return nearest_neighbors(first, second, k=k)


def _exported(job: ScoringJob, texts: list[str], language: str) -> Tensor:
    """(sentences, D) vectors as the model folder gives them, centered if the settings say so."""
    last = layer_groups(job.encoder, len(texts))[-1][-1]
    is_first_token = job.exported.pooling == "cls"
    (pooled,) = embed(
        job.encoder,
        job.tokenizer,
        texts,
        first_token=is_first_token,
        layers=[last],
        language=language,
        encode_type=job.settings.encode_type,
        note=job.tell,
    )
    return _centered(job.exported(pooled)[None], job)[0]


def embed_sides(
    job: ScoringJob, texts: Sequence[list[str]], layers: Sequence[int], *, first_token: bool = False
) -> list[Tensor]:
    """(layers, sentences, D) vectors of both sides.

    With `settings.center`, the mean vector of each side is subtracted: it has what the sentences of
    a language share (Libovický et al. 2020). This needs no translations.
    """
    sides = [
        embed(
            job.encoder,
            job.tokenizer,
            side,
            first_token=first_token,
            layers=layers,
            language=language,
            encode_type=job.settings.encode_type,
            note=job.tell,
        )
        for side, language in zip(texts, job.languages, strict=True)
    ]
    return [_centered(side, job) for side in sides]


def _centered(side: Tensor, job: ScoringJob) -> Tensor:
    """(layers, sentences, D) vectors less their mean over sentences, if the settings say so."""
    return side.sub_(side.mean(dim=1, keepdim=True)) if job.settings.center else side


def retrieval_accuracy(queries: Tensor, candidates: Tensor, texts: Sequence[str]) -> float:
    """Share of queries whose nearest candidate is theirs, or has an identical text."""
    found: list[int] = nearest_neighbors(queries, candidates)[0].indices[:, 0].tolist()
    return accuracy(texts, [texts[best] for best in found])


@dataclass(frozen=True, slots=True)
class Neighbors:
    """The `k` nearest vectors of the other side, nearest first."""

    cosines: Tensor
    """(N, k)."""
    indices: Tensor
    """(N, k)."""


def nearest_neighbors(first: Tensor, second: Tensor, *, k: int = 1) -> tuple[Neighbors, Neighbors]:
    """Neighbors of each first vector among the second, and of each second among the first.

    Both directions are read from one product of a block with the other side, so 100,000 x 100,000
    vectors take one pass and a few hundred megabytes besides the vectors. Vectors that are not
    finite are refused: one NaN would be the nearest of all.
    """
    check_vectors(first, "of the first side")
    check_vectors(second, "of the second side")
    second = F.normalize(second.float(), dim=-1)
    k_forward, k_backward = min(k, len(second)), min(k, len(first))
    forward: list[tuple[Tensor, Tensor]] = []
    backward: tuple[Tensor, Tensor] | None = None
    for start in range(0, len(first), _BLOCK):
        block = F.normalize(first[start : start + _BLOCK].float(), dim=-1)
        similar = block @ second.T
        forward.append(_largest(similar, k_forward, dim=1))
        cosines, indices = _largest(similar, min(k_backward, len(block)), dim=0)
        indices = indices + start
        if backward is not None:
            cosines, places = _largest(torch.cat([backward[0], cosines]), k_backward, dim=0)
            indices = torch.cat([backward[1], indices]).gather(0, places)
        backward = cosines, indices
    assert backward is not None, "there is at least one vector"
    cosines, indices = (torch.cat(parts) for parts in zip(*forward, strict=True))
    return Neighbors(cosines, indices), Neighbors(backward[0].T, backward[1].T)


def _largest(similar: Tensor, k: int, *, dim: int) -> tuple[Tensor, Tensor]:
    """The `k` largest values and their indices along a dimension."""
    if k == 1:  # many times as fast as topk
        values, indices = similar.max(dim=dim, keepdim=True)
        return values, indices
    values, indices = similar.topk(min(k, similar.shape[dim]), dim=dim)
    return values, indices


def ratio_margins(own: Neighbors, other: Neighbors) -> Tensor:
    """(N, k) cosines over the mean cosine of both neighborhoods (Artetxe and Schwenk 2019)."""
    around_own = own.cosines.mean(dim=1, keepdim=True)
    around_other = other.cosines.mean(dim=1)[own.indices]
    return own.cosines / ((around_own + around_other) / 2)


def best_neighbors(own: Neighbors, other: Neighbors, *, margin: bool) -> tuple[Tensor, Tensor]:
    """(N,) index and score of the best neighbor: the nearest, or that with the best margin."""
    if not margin:
        return own.indices[:, 0], own.cosines[:, 0]
    values, best = ratio_margins(own, other).max(dim=1)
    return own.indices.gather(1, best[:, None])[:, 0], values
