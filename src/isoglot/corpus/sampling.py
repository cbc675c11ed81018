"""Text for tokenizer training: languages by p ∝ N^α, so that the small ones are heard.

XLM (Lample & Conneau, 2019, section 3.1) samples sentences for its vocabulary this way. N is a
language's number of training sentences over all sources; a language whose share is more than it
has is repeated, evenly.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from isoglot.corpus.cleaned import Stretch


def shares(sentences: Mapping[str, int], *, alpha: float, limit: int) -> dict[str, int]:
    """Language -> how many sentences to draw, at most `limit` in all (but one of each at least)."""
    sizes = {language: number for language, number in sentences.items() if number}
    weights = {language: number**alpha for language, number in sizes.items()}
    budget = min(limit, sum(sizes.values()))
    total = sum(weights.values())
    return {
        language: max(1, round(budget * weight / total)) for language, weight in weights.items()
    }


def sample(
    stretches: Sequence[Stretch],
    sentences: Mapping[str, int],
    *,
    alpha: float,
    limit: int,
    seed: int,
) -> Iterator[str]:
    """The sampled sentences of all languages; the same for the same seed.

    `sentences` is how many there are of each language in the stretches, repeated ones left out.
    """
    parts: dict[str, list[tuple[Stretch, int]]] = defaultdict(list)
    for stretch in stretches:
        for column, language in enumerate(stretch.cell.languages):
            parts[language].append((stretch, column))
    for language, wanted in sorted(shares(sentences, alpha=alpha, limit=limit).items()):
        texts = (
            record.texts[column]
            for stretch, column in parts[language]
            for record in stretch.records()
            if record.reason is None
        )
        yield from _some(texts, sentences[language], wanted, [seed, *language.encode()])


def _some(texts: Iterator[str], available: int, wanted: int, seed: list[int]) -> Iterator[str]:
    """So many of the texts, each as often as any other or once more."""
    whole, rest = divmod(wanted, available)
    chosen = np.random.default_rng(seed).choice(available, rest, replace=False)
    more = iter(np.sort(chosen).tolist())
    next_more = next(more, None)
    for number, text in enumerate(texts):
        for _ in range(whole):
            yield text
        if number == next_more:
            yield text
            next_more = next(more, None)
            if next_more is None and not whole:
                return
