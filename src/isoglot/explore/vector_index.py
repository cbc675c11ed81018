"""Sentence vectors of collections, and the nearest of them to a sentence.

Vectors are unit vectors in float32, 4 bytes times the width for each sentence, computed once for a
model, a collection and a language, and kept in memory. A search is one product of a matrix with a
vector for each language, exact.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from isoglot.locks import lock_folder
from isoglot.mining.sentences import read_sentences
from isoglot.mining.vectors import VectorFile

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from isoglot.explore.sentences import Collection
    from isoglot.explore.session import ExploreModel, Progress

    Count = Callable[[int], None]

_CHUNK = 8192
"""Sentences that are encoded between two reports of progress, sorted by length."""


class Neighbor(NamedTuple):
    """A sentence and its cosine with the one that was asked for."""

    cosine: float
    language: str
    text: str


@dataclass(frozen=True)
class VectorIndex:
    """Vectors in memory by model, collection and language."""

    folder: Path | None = None
    """Folder in which vectors are kept for later; none: in memory only."""
    vectors: dict[tuple[str, str, str], Tensor] = field(default_factory=dict)
    """(model, collection, language) -> (N, D) unit vectors."""

    def get(
        self, model: ExploreModel, collection: Collection, language: str, progress: Progress
    ) -> Tensor:
        """(N, D) unit vectors of one language, computed if they are not there."""
        key = model.name, collection.name, language
        if key not in self.vectors:
            texts = collection.sentences[language]
            stage = f"{model.name}: vectors of {collection.name} {language}"
            progress(stage, 0, len(texts))
            compute = self._compute if self.folder is None else self._compute_or_load
            found = compute(model, texts, language, lambda done: progress(stage, done, len(texts)))
            self.vectors[key] = found
        return self.vectors[key]

    def _compute(
        self, model: ExploreModel, texts: Sequence[str], language: str, count: Count
    ) -> Tensor:
        encode = model.sentence_encoder.encode
        parts = [
            encode(texts[start : start + _CHUNK], language, count, before=start)
            for start in range(0, len(texts), _CHUNK)
        ]
        return torch.cat(parts)

    def _compute_or_load(
        self, model: ExploreModel, texts: Sequence[str], language: str, count: Count
    ) -> Tensor:
        """As `_compute`; vectors of the same texts and model are read from the folder."""
        assert self.folder is not None
        sentences = read_sentences(texts, "sentences")
        key = f"{sentences.fingerprint()} {model.sentence_encoder.key()} {language}"
        name = hashlib.sha256(key.encode()).hexdigest()[:32]
        file = VectorFile(self.folder / name, key, len(sentences), "float32")
        with lock_folder(self.folder, wait=True):
            file.write(model.sentence_encoder, sentences, language, count)
        return torch.from_numpy(file.read().copy())

    def nearest(
        self,
        model: ExploreModel,
        collection: Collection,
        languages: Sequence[str],
        query: str,
        *,
        k: int,
        query_language: str | None,
        progress: Progress,
    ) -> dict[str, list[Neighbor]]:
        """Language -> the `k` nearest of its sentences, the nearest first."""
        sides = {
            code: self.get(model, collection, code, progress)
            for code in languages
            if collection.sentences[code]
        }
        vector = model.sentence_encoder.encode([query], query_language)[0]
        found = {}
        for code, vectors in sides.items():
            cosines = torch.mv(vectors, vector)
            best = cosines.topk(min(k, len(cosines)))
            texts = collection.sentences[code]
            found[code] = [
                Neighbor(cosine, code, texts[place])
                for cosine, place in zip(best.values.tolist(), best.indices.tolist(), strict=True)
            ]
        return found
