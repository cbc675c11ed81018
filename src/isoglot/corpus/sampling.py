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

    from isoglot.corpus.cleaned import Cleaned
    from isoglot.types import LongArray


def shares(sentences: Mapping[str, int], *, alpha: float, limit: int) -> dict[str, int]:
    """Language -> how many sentences to draw, at most `limit` in all (but one of each at least)."""
    sizes = {language: number for language, number in sentences.items() if number}
    weights = {language: number**alpha for language, number in sizes.items()}
    budget = min(limit, sum(sizes.values()))
    total = sum(weights.values())
    return {
        language: max(1, round(budget * weight / total)) for language, weight in weights.items()
    }


def sample(cleaned: Sequence[Cleaned], *, alpha: float, limit: int, seed: int) -> Iterator[str]:
    """The sampled training sentences of all languages; the same for the same seed."""
    parts: dict[str, list[tuple[Cleaned, int]]] = defaultdict(list)
    sentences: dict[str, int] = defaultdict(int)
    for cell in cleaned:
        for column, language in enumerate(cell.cell.languages):
            parts[language].append((cell, column))
            sentences[language] += cell.rows["train"]
    for language, wanted in sorted(shares(sentences, alpha=alpha, limit=limit).items()):
        times = _times(sentences[language], wanted, [seed, *language.encode()])
        number = 0
        for cell, column in parts[language]:
            for _, texts in cell.records("train"):
                for _ in range(times[number]):
                    yield texts[column]
                number += 1


def _times(available: int, wanted: int, seed: list[int]) -> LongArray:
    """How often each of the available sentences is taken, as evenly as can be."""
    whole, rest = divmod(wanted, available)
    times = np.full(available, whole, dtype=np.int64)
    times[np.random.default_rng(seed).choice(available, rest, replace=False)] += 1
    return times
