"""Lexicon induction: is a word's nearest neighbour in the other language its translation?

Neighbours are sought among all words of the part's other side, by cosine and by CSLS (Lample et
al. 2018, 10 neighbours), which takes off how near a word is to everything. `cosine` is the mean
cosine of the dictionary's own pairs, the MUSE task of MLM-GC's Table 2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isoglot.evaluate.cells import taken
from isoglot.evaluate.words import word_scores, word_vectors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from isoglot.evaluate.settings import FeatureSettings
    from isoglot.models import Encoder
    from isoglot.results import Score
    from isoglot.tasks import Part, Task
    from isoglot.tasks.examples import Entry

_NEIGHBOURS = 10
_RANKED = 5


def score_lexicon(
    encoder: Encoder,
    tokenizer: Any,
    task: Task[Entry, Sequence[str]],
    parts: Sequence[Part],
    settings: FeatureSettings,
) -> list[Score]:
    """Precision by cosine and by CSLS, and the mean cosine, in the table and at every layer."""
    found: list[Score] = []
    for part in parts:
        entries = taken(task.read(part), settings.most)
        words = [entry.word for entry in entries]
        targets = list(dict.fromkeys(word for entry in entries for word in entry.translations))
        place = {word: index for index, word in enumerate(targets)}
        pairs = [(i, place[word]) for i, entry in enumerate(entries) for word in entry.translations]
        for vectors in word_vectors(encoder, tokenizer, [*words, *targets]):
            cosines = vectors.unit(words) @ vectors.unit(targets).T
            values = task.score(entries, _ranked(cosines, targets), part.language)
            better = task.score(entries, _ranked(csls(cosines), targets), part.language)
            values |= {f"{name} csls": value for name, value in better.items()}
            values["cosine"] = float(cosines[tuple(zip(*pairs, strict=True))].mean())
            found += word_scores(
                task, part.language, values, vectors, count=len(entries), settings=settings
            )
    return found


def csls(cosines: Tensor) -> Tensor:
    """Cosines, twice, less the mean cosine of each side's nearest neighbours."""
    there = cosines.topk(min(_NEIGHBOURS, cosines.shape[1]), dim=1).values.mean(dim=1)
    back = cosines.topk(min(_NEIGHBOURS, cosines.shape[0]), dim=0).values.mean(dim=0)
    return 2 * cosines - there[:, None] - back[None, :]


def _ranked(similar: Tensor, targets: list[str]) -> list[list[str]]:
    best = similar.topk(min(_RANKED, similar.shape[1]), dim=1).indices.tolist()
    return [[targets[index] for index in row] for row in best]
