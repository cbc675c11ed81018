"""Sentence retrieval: is the nearest sentence of the other language the translation?

Reads translation pairs; for every layer, the share of sentences whose cosine nearest neighbour on
the other side is their own translation, in both directions (accuracy@1). The protocol of Tatoeba in
XTREME, at all layers. A sentence that occurs several times on one side has several right answers.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F

from isoglot.evaluate.embed import embed
from isoglot.results import Score

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from isoglot.models import Encoder

RETRIEVAL = "retrieval"
VERSION = 1
_BLOCK = 1024


def retrieval(
    encoder: Encoder,
    tokenizer: Any,
    pairs: Mapping[str, tuple[Sequence[str], Sequence[str]]],
    *,
    center: bool = False,
    progress: Callable[[str], None] | None = None,
) -> list[Score]:
    """Scores of every language pair (`en-de`), layer and direction.

    With `center`, each side's mean vector is taken off first: what is left is what the sentences of
    a language do not share (Libovický et al., 2020). It needs no translations, only text.
    """
    scores = []
    for name, (first, second) in pairs.items():
        if progress is not None:
            progress(name)
        codes = name.split("-")
        sides = [embed(encoder, tokenizer, texts) for texts in (first, second)]
        if center:
            sides = [side - side.mean(dim=1, keepdim=True) for side in sides]
        for layer in range(len(sides[0])):
            there = accuracies(sides[0][layer], sides[1][layer], second)
            back = accuracies(sides[1][layer], sides[0][layer], first)
            for direction, value in ((codes, there), (codes[::-1], back)):
                scores.append(
                    Score(
                        task=RETRIEVAL,
                        version=VERSION,
                        language=name,
                        metric=f"{'centred ' if center else ''}accuracy@1 {'→'.join(direction)}",
                        value=value,
                        count=len(first),
                        layer=layer,
                    )
                )
    return scores


def accuracies(queries: torch.Tensor, candidates: torch.Tensor, texts: Sequence[str]) -> float:
    """Share of queries whose nearest candidate is theirs, or has the very same text."""
    candidates = F.normalize(candidates, dim=-1)
    numbers: dict[str, int] = {}
    same = torch.tensor([numbers.setdefault(text, len(numbers)) for text in texts])
    right = 0
    for start in range(0, len(queries), _BLOCK):
        block = F.normalize(queries[start : start + _BLOCK], dim=-1)
        found = (block @ candidates.T).argmax(dim=1)
        right += int((same[found] == same[start : start + len(block)]).sum())
    return right / len(queries)


def best_layer(scores: Iterable[Score]) -> tuple[int, dict[str, float]]:
    """The layer with the best average over languages, and each language's mean there."""
    by_layer: dict[int, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for score in scores:
        assert score.layer is not None
        by_layer[score.layer][score.language].append(score.value)
    means = {
        layer: {language: sum(values) / len(values) for language, values in languages.items()}
        for layer, languages in by_layer.items()
    }
    best = max(means, key=lambda layer: (sum(means[layer].values()), -layer))
    return best, means[best]
