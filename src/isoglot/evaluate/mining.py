"""Mining translations: which sentences of two collections belong together, and which have nobody?

As LASER mines (Artetxe and Schwenk 2019): each sentence proposes its neighbour with the best ratio
margin, in both directions; the best proposals are taken first, each sentence once. The threshold is
the one with the best F1 on the part itself, so the score is an upper bound, named as such in tables
of the literature ("optimised threshold").
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isoglot.evaluate.cells import scores, taken
from isoglot.evaluate.embed import embed
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
) -> list[Score]:
    """F1, precision and recall of the pairs found, at every layer."""
    found: list[Score] = []
    for part in parts:
        examples = taken(task.read(part), settings.most)
        first = [index for index, example in enumerate(examples) if example.first is not None]
        second = [index for index, example in enumerate(examples) if example.second is not None]
        sides = [
            embed(encoder, tokenizer, [str(examples[index].first) for index in first]),
            embed(encoder, tokenizer, [str(examples[index].second) for index in second]),
        ]
        if settings.center:
            sides = [side - side.mean(dim=1, keepdim=True) for side in sides]
        for layer in range(len(sides[0])):
            mined = mine(sides[0][layer], sides[1][layer], k=settings.neighbours)
            pairs = [(first[i], second[j]) for i, j, _ in mined]
            kept = pairs[: _best_cut(pairs, gold=len({*first} & {*second}))]
            values = task.score(examples, kept, part.language)
            found += scores(
                task, part.language, values, count=len(examples), settings=settings, layer=layer
            )
    return found


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


def _best_cut(pairs: Sequence[tuple[int, int]], *, gold: int) -> int:
    """How many of the pairs, from the best on, give the best F1."""
    right, best, cut = 0, 0.0, 0
    for number, (i, j) in enumerate(pairs, start=1):
        right += i == j
        f1 = 2 * right / (number + gold)
        if f1 > best:
            best, cut = f1, number
    return cut
