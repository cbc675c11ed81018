"""Sentence retrieval: is the nearest sentence of the other language the translation?

Reads translation pairs; for every layer, the share of sentences whose cosine nearest neighbour on
the other side is their own translation, in both directions (accuracy@1). The protocol of Tatoeba in
XTREME, at all layers. A sentence that occurs several times on one side has several right answers.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from itertools import chain
from statistics import fmean
from typing import TYPE_CHECKING, Any

from isoglot.averaging import best_of
from isoglot.evaluate.cells import scores, taken
from isoglot.evaluate.embed import embed, layers_at_a_time
from isoglot.evaluate.nearest import chosen, nearest

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import torch

    from isoglot.evaluate.nearest import Neighbours
    from isoglot.evaluate.settings import FeatureSettings
    from isoglot.models import Encoder
    from isoglot.results import Score
    from isoglot.tasks import Part, Task
    from isoglot.tasks.examples import Translated


def score_retrieval(
    encoder: Encoder,
    tokenizer: Any,
    task: Task[Translated, int],
    parts: Sequence[Part],
    settings: FeatureSettings,
) -> list[Score]:
    """A task's accuracy@1 at every layer: each direction, and their mean."""
    found: list[Score] = []
    for part in parts:
        examples = taken(task.read(part), settings.most)
        found += retrieval(encoder, tokenizer, task, part.language, examples, settings)
    return found


def retrieval(
    encoder: Encoder,
    tokenizer: Any,
    task: Task[Translated, int],
    language: str,
    examples: Sequence[Translated],
    settings: FeatureSettings,
) -> list[Score]:
    """Scores of one pair of languages (`en-de`).

    With `settings.center`, each side's mean vector is taken off first: what is left is what the
    sentences of a language do not share (Libovický et al. 2020). It needs no translations.
    """
    found: list[Score] = []
    flipped = [replace(pair, first=pair.second, second=pair.first) for pair in examples]
    codes = language.split("-")
    groups = layers_at_a_time(encoder, 2 * len(examples))
    neighbours = chain.from_iterable(
        _neighbours(encoder, tokenizer, examples, layers, settings) for layers in groups
    )
    for layer, (there, back) in enumerate(neighbours):
        values = {}
        for way, pairs, mine, others in (
            (codes, examples, there, back),
            (codes[::-1], flipped, back, there),
        ):
            said = chosen(mine, others, margin=settings.margin)[0].tolist()
            for metric, value in task.score(pairs, said, language).items():
                values[f"{metric} {'→'.join(way)}"] = value
        mean = sum(values.values()) / len(values)
        values = {task.metrics[0].name: mean, **values}
        found += scores(task, language, values, count=len(examples), settings=settings, layer=layer)
    return found


def accuracies(queries: torch.Tensor, candidates: torch.Tensor, texts: Sequence[str]) -> float:
    """Share of queries whose nearest candidate is theirs, or has the very same text."""
    found: list[int] = nearest(queries, candidates)[0].indices[:, 0].tolist()
    right = sum(texts[best] == text for best, text in zip(found, texts, strict=True))
    return right / len(texts)


def best_layer(found: Iterable[Score]) -> tuple[int, dict[str, float]]:
    """The layer with the best average over languages, and each language's mean there."""
    by_layer: dict[int, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    higher = True
    for score in found:
        assert score.layer is not None
        higher = score.higher_is_better
        by_layer[score.layer][score.language].append(score.value)
    means = {
        layer: {language: fmean(values) for language, values in languages.items()}
        for layer, languages in by_layer.items()
    }
    averages = {layer: fmean(of_layer.values()) for layer, of_layer in means.items()}
    best = best_of(averages, higher_is_better=higher)
    return best, means[best]


def _neighbours(
    encoder: Encoder,
    tokenizer: Any,
    examples: Sequence[Translated],
    layers: Sequence[int],
    settings: FeatureSettings,
) -> list[tuple[Neighbours, Neighbours]]:
    """For each of some layers, both directions' neighbours; the vectors end here."""
    texts = [pair.first for pair in examples], [pair.second for pair in examples]
    sides = [embed(encoder, tokenizer, side, layers=layers) for side in texts]
    if settings.center:
        sides = [side.sub_(side.mean(dim=1, keepdim=True)) for side in sides]
    k = settings.neighbours if settings.margin else 1
    return [nearest(first, second, k=k) for first, second in zip(*sides, strict=True)]
