"""Mining translations: which sentences of two collections belong together, and which have nobody?

As LASER mines (Artetxe and Schwenk 2019): each sentence proposes its neighbour with the best ratio
margin, in both directions; the best proposals are taken first, each sentence once. The threshold is
the one with the best F1 on the dev part. Where there is none it is chosen on the part itself, and
the score is an upper bound ("optimised threshold" in tables of the literature).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isoglot.evaluate.cells import scores, taken
from isoglot.evaluate.embed import embed, layers_at_a_time
from isoglot.evaluate.nearest import chosen, nearest

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch

    from isoglot.evaluate.settings import FeatureSettings
    from isoglot.models import Encoder
    from isoglot.results import Score
    from isoglot.tasks import Part, Task
    from isoglot.tasks.examples import Mined


def score_mining(
    encoder: Encoder,
    tokenizer: Any,
    task: Task[Mined, tuple[int, int]],
    parts: Sequence[Part],
    settings: FeatureSettings,
    *,
    dev: Part | None = None,
) -> list[Score]:
    """F1, precision and recall of the pairs found, at every layer; `dev` gives the threshold."""
    found: list[Score] = []
    for part in parts:
        collection = _Collection(taken(task.read(part), settings.most))
        tuning = _Collection(task.read(dev)) if dev is not None else collection
        for layers in layers_at_a_time(encoder, max(len(collection), len(tuning))):
            tuned = tuning.mined(encoder, tokenizer, layers, settings)
            mined = tuned
            if tuning is not collection:
                mined = collection.mined(encoder, tokenizer, layers, settings)
            for layer, own, others in zip(layers, mined, tuned, strict=True):
                least = _threshold(others, gold=tuning.gold)
                kept = [(i, j) for i, j, margin in own if margin >= least]
                values = task.score(collection.examples, kept, part.language)
                found += scores(
                    task,
                    part.language,
                    values,
                    count=len(collection),
                    settings=settings,
                    layer=layer,
                )
    return found


class _Collection:
    """Two sides of sentences, some of them translations of each other."""

    def __init__(self, examples: list[Mined]) -> None:
        self.examples = examples
        self._first = [n for n, example in enumerate(examples) if example.first is not None]
        self._second = [n for n, example in enumerate(examples) if example.second is not None]
        self.gold = len({*self._first} & {*self._second})

    def __len__(self) -> int:
        return len(self.examples)

    def mined(
        self, encoder: Encoder, tokenizer: Any, layers: Sequence[int], settings: FeatureSettings
    ) -> list[list[tuple[int, int, float]]]:
        """For each of some layers, pairs of examples with their margins, best first."""
        texts = (
            [str(self.examples[n].first) for n in self._first],
            [str(self.examples[n].second) for n in self._second],
        )
        sides = [
            embed(encoder, tokenizer, side, first_token=settings.pooling == "cls", layers=layers)
            for side in texts
        ]
        if settings.center:
            sides = [side - side.mean(dim=1, keepdim=True) for side in sides]
        return [
            [
                (self._first[i], self._second[j], margin)
                for i, j, margin in mine(first, second, k=settings.neighbours)
            ]
            for first, second in zip(*sides, strict=True)
        ]


def mine(first: torch.Tensor, second: torch.Tensor, *, k: int) -> list[tuple[int, int, float]]:
    """Pairs (i, j, margin), best first; each sentence is in one pair at most."""
    there, back = nearest(first, second, k=k)
    forward, forward_margins = chosen(there, back, margin=True)
    backward, backward_margins = chosen(back, there, margin=True)
    proposals = {
        (i, j): margin
        for i, (j, margin) in enumerate(
            zip(forward.tolist(), forward_margins.tolist(), strict=True)
        )
    }
    for j, (i, margin) in enumerate(zip(backward.tolist(), backward_margins.tolist(), strict=True)):
        proposals[i, j] = max(margin, proposals.get((i, j), margin))
    taken: list[tuple[int, int, float]] = []
    used_first, used_second = set(), set()
    for (i, j), margin in sorted(proposals.items(), key=lambda item: (-item[1], item[0])):
        if i not in used_first and j not in used_second:
            taken.append((i, j, margin))
            used_first.add(i)
            used_second.add(j)
    return taken


def _threshold(pairs: Sequence[tuple[int, int, float]], *, gold: int) -> float:
    """The least margin at which the pairs above it have the best F1; pairs come best first."""
    right, best, least = 0, 0.0, float("inf")
    for number, (i, j, margin) in enumerate(pairs, start=1):
        right += i == j
        f1 = 2 * right / (number + gold)
        if f1 > best:
            best, least = f1, margin
    return least
