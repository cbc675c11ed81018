"""Word similarity: do vectors find alike what people find alike?"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np
from typing_extensions import override

from isoglot.tasks.base import Metric
from isoglot.tasks.examples import Likeness
from isoglot.tasks.finding import FileTask, Layout
from isoglot.tasks.lines import damaged, numbered_lines

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from isoglot.tasks.base import Kind, Part
    from isoglot.types import FloatArray


class WordSimilarity(FileTask[Likeness, float]):
    """SimLex-999, WordSim-353, RG-65 (65 pairs) and MEN (3,000 pairs), English: 4,417 pairs.

    Public test sets, from a repository under Apache-2.0. `word word score` on a line. Spearman's
    correlation within each set, and the mean of the sets.
    """

    name = "word-similarity"
    languages = "en"
    line = "how alike two words are"
    kind: ClassVar[Kind] = "similarity"
    version = 1
    metrics = (Metric(name="spearman"),)
    paper = "Hill et al. 2015; Finkelstein et al. 2002; Bruni et al. 2014"
    licence = "public test sets"
    layouts: ClassVar = (Layout("word_similarity/{language}.*.txt", split="test"),)

    @override
    def read(self, part: Part) -> list[Likeness]:
        return [
            _pair(path, number, line)
            for path in part.files
            for number, line in numbered_lines(path)
        ]

    @override
    def score(
        self, examples: Sequence[Likeness], predictions: Sequence[float], language: str
    ) -> dict[str, float]:
        sets: dict[str, list[tuple[float, float]]] = {}
        for example, said in zip(examples, predictions, strict=True):
            sets.setdefault(example.section, []).append((example.score, said))
        found = {f"spearman {name}": spearman(np.array(pairs)) for name, pairs in sets.items()}
        return {"spearman": float(np.mean(list(found.values()))), **found}


def spearman(pairs: FloatArray) -> float:
    """Correlation of the ranks of two columns; equal values share their mean rank."""
    ranks = np.stack([_ranks(column) for column in pairs.T])
    if (ranks.std(axis=1) == 0).any():
        return 0.0
    return float(np.asarray(np.corrcoef(ranks))[0, 1])


def _ranks(values: FloatArray) -> FloatArray:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks: FloatArray = (last - (counts - 1) / 2)[inverse]
    return ranks


def _pair(path: Path, number: int, line: str) -> Likeness:
    words = line.split()
    try:
        first, second, score = words
        return Likeness(
            first=first, second=second, score=float(score), section=path.name.split(".")[1]
        )
    except ValueError as error:
        raise damaged(path, number, f"{line!r} is not two words and a number.") from error
