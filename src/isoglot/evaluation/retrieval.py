"""Bitext retrieval and mining: nearest neighbors of sentence vectors by cosine or ratio margin.

Retrieval, as Tatoeba in XTREME: the share of sentences whose nearest neighbor on the other side is
their translation (accuracy@1), in both directions. Identical sentences count as translations.

Mining, as LASER (Artetxe and Schwenk 2019): each sentence proposes its neighbor with the best ratio
margin, in both directions; the best proposals are accepted first, each sentence once. The threshold
is that with the best F1 on the dev split. Without a dev split it is chosen on the test split, and
the score is an upper bound ("optimised threshold" in the literature).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

from isoglot.evaluation.embed import embed, layer_groups
from isoglot.tasks.base import TaskSplit, accuracy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isoglot.evaluation.data import ScoringJob
    from isoglot.results import Score
    from isoglot.tasks.examples import BitextEntry, SentencePair

_BLOCK = 1024
"""Vectors of one side that are multiplied with all of the other side at a time."""


def score_retrieval(job: ScoringJob, examples: Sequence[SentencePair] | None = None) -> list[Score]:
    """Accuracy@1 of the job's examples, or of others, at every layer: both directions, and mean."""
    examples = job.examples() if examples is None else examples
    found: list[Score] = []
    flipped = [replace(pair, first=pair.second, second=pair.first) for pair in examples]
    codes = job.split.language.split("-")
    neighbors = chain.from_iterable(
        _pair_neighbors(job, examples, layers)
        for layers in layer_groups(job.encoder, 2 * len(examples))
    )
    for layer, (forward, backward) in enumerate(neighbors):
        values = {}
        for direction, pairs, own, other in (
            (codes, examples, forward, backward),
            (codes[::-1], flipped, backward, forward),
        ):
            predicted = best_neighbors(own, other, margin=job.settings.margin)[0].tolist()
            for metric, value in job.values(pairs, predicted).items():
                values[f"{metric} {'→'.join(direction)}"] = value
        mean = sum(values.values()) / len(values)
        values = {job.task.metrics[0].name: mean, **values}
        found += job.scores(values, count=len(examples), layer=layer)
    return found


def _pair_neighbors(
    job: ScoringJob, examples: Sequence[SentencePair], layers: Sequence[int]
) -> list[tuple[Neighbors, Neighbors]]:
    """For each layer, the neighbors in both directions; the vectors are freed here."""
    texts = [pair.first for pair in examples], [pair.second for pair in examples]
    sides = _embed_sides(job, texts, layers)
    k = job.settings.num_neighbors if job.settings.margin else 1
    return [nearest_neighbors(first, second, k=k) for first, second in zip(*sides, strict=True)]


def _embed_sides(
    job: ScoringJob, texts: Sequence[list[str]], layers: Sequence[int], *, first_token: bool = False
) -> list[Tensor]:
    """(layers, sentences, D) vectors of both sides.

    With `settings.center`, the mean vector of each side is subtracted: it has what the sentences of
    a language share (Libovický et al. 2020). This needs no translations.
    """
    sides = [
        embed(job.encoder, job.tokenizer, side, first_token=first_token, layers=layers)
        for side in texts
    ]
    if job.settings.center:
        sides = [side.sub_(side.mean(dim=1, keepdim=True)) for side in sides]
    return sides


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
    vectors take one pass and a few hundred megabytes besides the vectors.
    """
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


def score_mining(job: ScoringJob, *, dev: TaskSplit | None = None) -> list[Score]:
    """F1, precision and recall of the mined pairs at every layer; `dev` gives the threshold."""
    found: list[Score] = []
    test_set = _MiningSet(job.examples())
    dev_set = _MiningSet(job.read(dev)) if dev is not None else test_set
    for layers in layer_groups(job.encoder, max(len(test_set), len(dev_set))):
        dev_pairs = dev_set.mine(job, layers)
        test_pairs = dev_pairs if dev_set is test_set else test_set.mine(job, layers)
        for layer, own, of_dev in zip(layers, test_pairs, dev_pairs, strict=True):
            threshold = _best_threshold(of_dev, num_gold=dev_set.num_gold)
            kept = [(i, j) for i, j, margin in own if margin >= threshold]
            values = job.values(test_set.examples, kept)
            found += job.scores(values, count=len(test_set), layer=layer)
    return found


class _MiningSet:
    """Two sides of sentences, some of which are translations of each other."""

    def __init__(self, examples: list[BitextEntry]) -> None:
        self.examples = examples
        self._first = [n for n, example in enumerate(examples) if example.first is not None]
        self._second = [n for n, example in enumerate(examples) if example.second is not None]
        self.num_gold = len({*self._first} & {*self._second})

    def __len__(self) -> int:
        return len(self.examples)

    def mine(self, job: ScoringJob, layers: Sequence[int]) -> list[list[tuple[int, int, float]]]:
        """For each layer, pairs of examples with their margins, best first."""
        first = [str(self.examples[n].first) for n in self._first]
        second = [str(self.examples[n].second) for n in self._second]
        is_first_token = job.settings.pooling == "cls"
        sides = _embed_sides(job, (first, second), layers, first_token=is_first_token)
        return [
            [
                (self._first[i], self._second[j], margin)
                for i, j, margin in mine_pairs(one, other, k=job.settings.num_neighbors)
            ]
            for one, other in zip(*sides, strict=True)
        ]


def mine_pairs(first: Tensor, second: Tensor, *, k: int) -> list[tuple[int, int, float]]:
    """Pairs (i, j, margin), best first; each sentence is in one pair at most."""
    forward, backward = nearest_neighbors(first, second, k=k)
    targets, target_margins = best_neighbors(forward, backward, margin=True)
    sources, source_margins = best_neighbors(backward, forward, margin=True)
    proposals = {
        (i, j): margin
        for i, (j, margin) in enumerate(zip(targets.tolist(), target_margins.tolist(), strict=True))
    }
    for j, (i, margin) in enumerate(zip(sources.tolist(), source_margins.tolist(), strict=True)):
        proposals[i, j] = max(margin, proposals.get((i, j), margin))
    accepted: list[tuple[int, int, float]] = []
    used_first, used_second = set(), set()
    for (i, j), margin in sorted(proposals.items(), key=lambda item: (-item[1], item[0])):
        if i not in used_first and j not in used_second:
            accepted.append((i, j, margin))
            used_first.add(i)
            used_second.add(j)
    return accepted


def _best_threshold(pairs: Sequence[tuple[int, int, float]], *, num_gold: int) -> float:
    """The margin above which pairs, which are sorted best first, have the best F1."""
    right, best, threshold = 0, 0.0, float("inf")
    for number, (i, j, margin) in enumerate(pairs, start=1):
        right += i == j
        f1 = 2 * right / (number + num_gold)
        if f1 > best:
            best, threshold = f1, margin
    return threshold
