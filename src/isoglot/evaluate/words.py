"""Vectors of single words: from the embedding table, and from every layer.

A word of several pieces has the mean of its pieces, as in MLM-GC (section 5.1), which reads the
table; in the layers a word is encoded alone, and its special tokens do not count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F

from isoglot.evaluate.cells import scores
from isoglot.evaluate.embed import embed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from torch import Tensor

    from isoglot.evaluate.settings import FeatureSettings
    from isoglot.models import Encoder
    from isoglot.results import Score
    from isoglot.tasks import Task

TABLE = "table"
"""Ends the names of metrics that are read from the embedding table."""


class WordVectors:
    """The vectors of some words at one depth."""

    def __init__(self, words: Sequence[str], vectors: Tensor, layer: int | None) -> None:
        self.layer = layer
        """None for the embedding table."""
        self._index = {word: number for number, word in enumerate(words)}
        self._vectors = vectors

    def raw(self, words: Iterable[str]) -> Tensor:
        """(N, D) as they are."""
        return self._vectors[[self._index[word] for word in words]]

    def unit(self, words: Iterable[str]) -> Tensor:
        """(N, D) of length 1."""
        return F.normalize(self.raw(words), dim=-1)


def word_vectors(encoder: Encoder, tokenizer: Any, words: Iterable[str]) -> Iterator[WordVectors]:
    """The words' vectors in the table, then in each layer."""
    unique = list(dict.fromkeys(words))
    yield WordVectors(unique, _from_table(encoder, tokenizer, unique), None)
    for layer, vectors in enumerate(embed(encoder, tokenizer, unique, skip_special=True)):
        yield WordVectors(unique, vectors, layer)


@torch.no_grad()
def _from_table(encoder: Encoder, tokenizer: Any, words: list[str]) -> Tensor:
    table = encoder.model.get_input_embeddings().weight.float().cpu()
    pieces = tokenizer(words, add_special_tokens=False)["input_ids"]
    return torch.stack(
        [table[ids].mean(dim=0) if ids else torch.zeros(table.shape[1]) for ids in pieces]
    )


def word_scores(
    task: Task[Any, Any],
    language: str,
    values: Mapping[str, float],
    vectors: WordVectors,
    *,
    count: int,
    settings: FeatureSettings,
) -> list[Score]:
    """Scores of one depth; the table's have it in their names."""
    if vectors.layer is None:
        values = {f"{name} {TABLE}": value for name, value in values.items()}
    return scores(task, language, values, count=count, settings=settings, layer=vectors.layer)
