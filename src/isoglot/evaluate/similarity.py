"""Word similarity: cosines of pairs of words, and how they correlate with what people say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isoglot.evaluate.cells import taken
from isoglot.evaluate.words import word_scores, word_vectors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isoglot.evaluate.settings import FeatureSettings
    from isoglot.models import Encoder
    from isoglot.results import Score
    from isoglot.tasks import Part, Task
    from isoglot.tasks.examples import Likeness


def score_similarity(
    encoder: Encoder,
    tokenizer: Any,
    task: Task[Likeness, float],
    parts: Sequence[Part],
    settings: FeatureSettings,
) -> list[Score]:
    """The correlation in the table and at every layer."""
    found: list[Score] = []
    for part in parts:
        pairs = taken(task.read(part), settings.most)
        words = [word for pair in pairs for word in (pair.first, pair.second)]
        for vectors in word_vectors(encoder, tokenizer, words):
            first = vectors.unit(pair.first for pair in pairs)
            cosines = (first * vectors.unit(pair.second for pair in pairs)).sum(dim=1)
            values = task.score(pairs, cosines.tolist(), part.language)
            found += word_scores(
                task, part.language, values, vectors, count=len(pairs), settings=settings
            )
    return found
