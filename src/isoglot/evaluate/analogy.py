"""Word analogies: is b - a + c nearest to d?

Accuracy as Mikolov et al. 2013 have it (3CosAdd): vectors of length 1, the best word of the part's
own vocabulary other than a, b and c. `cosine` is that of b - a + c with d, vectors as they are, the
number of MLM-GC's Table 3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F

from isoglot.evaluate.cells import taken
from isoglot.evaluate.words import word_scores, word_vectors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isoglot.evaluate.settings import FeatureSettings
    from isoglot.evaluate.words import WordVectors
    from isoglot.models import Encoder
    from isoglot.results import Score
    from isoglot.tasks import Part, Task
    from isoglot.tasks.examples import Analogy

_BLOCK = 4096


def score_analogy(
    encoder: Encoder,
    tokenizer: Any,
    task: Task[Analogy, str],
    parts: Sequence[Part],
    settings: FeatureSettings,
) -> list[Score]:
    """Accuracy and cosine, in all and by section, in the table and at every layer."""
    found: list[Score] = []
    for part in parts:
        examples = taken(task.read(part), settings.most)
        words = list(dict.fromkeys(w for e in examples for w in (e.a, e.b, e.c, e.d)))
        for vectors in word_vectors(encoder, tokenizer, words):
            values = task.score(examples, _solved(examples, words, vectors), part.language)
            values |= _cosines(examples, vectors)
            found += word_scores(
                task, part.language, values, vectors, count=len(examples), settings=settings
            )
    return found


def _solved(examples: Sequence[Analogy], words: list[str], vectors: WordVectors) -> list[str]:
    place = {word: index for index, word in enumerate(words)}
    units = vectors.unit(words)
    said: list[str] = []
    for start in range(0, len(examples), _BLOCK):
        block = examples[start : start + _BLOCK]
        given = torch.tensor([[place[e.a], place[e.b], place[e.c]] for e in block])
        a, b, c = (units[column] for column in given.T)
        similar = (b - a + c) @ units.T
        similar.scatter_(1, given, float("-inf"))
        said += [words[index] for index in similar.argmax(dim=1).tolist()]
    return said


def _cosines(examples: Sequence[Analogy], vectors: WordVectors) -> dict[str, float]:
    a, b, c, d = (vectors.raw(getattr(e, name) for e in examples) for name in "abcd")
    cosines = F.cosine_similarity(b - a + c, d).tolist()
    groups: dict[str, list[float]] = {"cosine": cosines}
    for example, cosine in zip(examples, cosines, strict=True):
        groups.setdefault(f"cosine {example.section}", []).append(cosine)
    return {name: sum(values) / len(values) for name, values in groups.items()}
