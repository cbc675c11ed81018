"""Bitext mining: translations among sentences most of which have none, as XTREME scores BUCC.

Each sentence proposes its neighbor with the best ratio margin, in both directions (LASER: Artetxe
and Schwenk 2019); the best proposals are accepted first, each sentence once. Two rules of XTREME's
script decide some points of F1:

- A sentence that a side has several times is one sentence while mining; pairs with it are then left
  out, because its text does not tell which of its ids is meant. Its gold links count as missed.
- The threshold lies halfway between the worst margin that gives the best F1 and the next one.

The threshold is that of the dev split. Without one it is chosen on the test split, and the score is
an upper bound ("optimized threshold" in the literature).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isoglot.evaluation.embed import layer_groups
from isoglot.evaluation.mining_strategies import propose_pairs
from isoglot.evaluation.retrieval import embed_sides, nearest_neighbors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from isoglot.evaluation.data import ScoringJob
    from isoglot.results import Score
    from isoglot.tasks.base import TaskSplit
    from isoglot.tasks.examples import BitextEntry

MinedPair = tuple[int, int, float]
"""Indices on the two sides, and their margin."""


def score_mining(job: ScoringJob, *, dev: TaskSplit | None = None) -> list[Score]:
    """F1, precision and recall of the mined pairs at every layer; `dev` gives the threshold."""
    found: list[Score] = []
    test_set = MiningSet(job.examples())
    dev_set = MiningSet(job.read(dev)) if dev is not None else test_set
    for layers in layer_groups(job.encoder, max(len(test_set), len(dev_set))):
        dev_pairs = dev_set.mine(job, layers)
        test_pairs = dev_pairs if dev_set is test_set else test_set.mine(job, layers)
        for layer, own, of_dev in zip(layers, test_pairs, dev_pairs, strict=True):
            threshold = best_threshold(of_dev, num_gold=dev_set.num_gold)
            kept = [(i, j) for i, j, margin in own if margin >= threshold]
            values = job.values(test_set.examples, kept)
            found += job.scores(values, layer=layer)
    return found


class MiningSet:
    """Two sides of sentences, some of which are translations of each other."""

    def __init__(self, examples: Sequence[BitextEntry]) -> None:
        self.examples = examples
        # of each side: text -> the entries that have it
        self._entries: tuple[dict[str, list[int]], dict[str, list[int]]] = ({}, {})
        for number, example in enumerate(examples):
            for entries, text in zip(self._entries, (example.first, example.second), strict=True):
                if text is not None:
                    entries.setdefault(text.strip(), []).append(number)
        self.num_gold = sum(None not in (entry.first, entry.second) for entry in examples)

    def __len__(self) -> int:
        return len(self.examples)

    @property
    def texts(self) -> tuple[list[str], list[str]]:
        """The texts of both sides, each once."""
        first, second = self._entries
        return list(first), list(second)

    def mine(self, job: ScoringJob, layers: Sequence[int]) -> list[list[MinedPair]]:
        """For each layer, pairs of entries with their margins, best first."""
        is_first_token = job.settings.pooling == "cls"
        sides = embed_sides(job, self.texts, layers, first_token=is_first_token)
        return [
            self.candidates(mine_pairs(one, other, k=job.settings.num_neighbors))
            for one, other in zip(*sides, strict=True)
        ]

    def candidates(self, mined: Sequence[MinedPair]) -> list[MinedPair]:
        """Pairs of entries from pairs of `texts`, without those of a text that is repeated."""
        firsts, seconds = (list(entries.values()) for entries in self._entries)
        return [
            (firsts[i][0], seconds[j][0], margin)
            for i, j, margin in mined
            if len(firsts[i]) == len(seconds[j]) == 1
        ]


def mine_pairs(first: Tensor, second: Tensor, *, k: int) -> list[MinedPair]:
    """Pairs (i, j, margin) with a margin above 0, best first; each sentence at most once."""
    found = propose_pairs(*nearest_neighbors(first, second, k=k), "max")
    columns = found.first.tolist(), found.second.tolist(), found.margins.tolist()
    return list(zip(*columns, strict=True))


def best_threshold(pairs: Sequence[MinedPair], *, num_gold: int) -> float:
    """The margin from which on pairs, which are sorted best first, have the best F1.

    It is halfway to the next pair's, or the last pair's own; 0 where no pair is correct.
    """
    right, best, threshold = 0, 0.0, 0.0
    margins = [margin for _, _, margin in pairs]
    for number, (i, j, margin) in enumerate(pairs, start=1):
        right += i == j
        f1 = 2 * right / (number + num_gold)
        if f1 > best:
            best = f1
            threshold = (margin + margins[min(number, len(margins) - 1)]) / 2
    return threshold
