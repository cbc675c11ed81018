"""Sentences or words of several languages as points in two dimensions, for one layer of a model.

    session --choose_texts--> texts --layer_vectors--> a vector of each layer --places--> points

A sentence has the mean state of its tokens at a layer. A word is encoded alone, without special
tokens; at layer 0 it has the mean of its rows of the embedding table (MLM-GC, Figure 2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import torch

from isoglot.corpus.tokenization.pretokenization import Pretokenizer
from isoglot.errors import IsoglotError
from isoglot.evaluation.embed import embed
from isoglot.evaluation.retrieval import retrieval_accuracy
from isoglot.evaluation.visualize import VisualizationConfig, project
from isoglot.evaluation.word_vectors import table_vectors
from isoglot.explore.sentences import collections_of
from isoglot.tasks.base import subsample
from isoglot.tasks.pretokenized import pretokenize_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from isoglot.evaluation.pairs import PairsByName
    from isoglot.evaluation.visualize import Method
    from isoglot.explore.session import ExploreModel, ExploreSession

WORDS = "words"
_MIN_POINTS = 4
"""Fewer points make no map."""
_DIMENSIONS = VisualizationConfig()


class MapText(NamedTuple):
    """A sentence or word of a map."""

    language: str
    text: str
    pair: int | None
    """Equal for translations of each other."""


@dataclass(frozen=True, slots=True)
class MapPoints:
    """Where the texts are."""

    places: tuple[tuple[float, float], ...]
    method: str
    accuracy: float | None
    """Share of the texts whose nearest of the other language is their translation."""


def map_sources(session: ExploreSession) -> dict[str, tuple[str, ...]]:
    """What can be drawn -> its languages."""
    found = {name: one.languages for name, one in collections_of(session).items()}
    if session.dictionary_files:
        codes = sorted({code for name in session.words for code in name.split("-")})
        found[WORDS] = tuple(codes)
    return found


def choose_texts(
    session: ExploreSession, source: str, languages: Sequence[str], number: int
) -> list[MapText]:
    """At most `number` texts of each language, or translations of each pair, evenly spaced."""
    if source in ("pairs", WORDS):
        pairs = session.words if source == WORDS else session.pairs
        found = _choose_pairs(pairs, languages, number)
    else:
        sentences = collections_of(session)[source].sentences
        found = [
            MapText(code, text, None)
            for code in languages
            for text in subsample(sentences[code], number)
        ]
    if len(found) < _MIN_POINTS:
        raise IsoglotError(
            f"{len(found)} texts make no map. Choose more languages; of translations, both."
        )
    # each language in one piece, as `project` takes them
    return sorted(found, key=lambda one: one.language)


def _choose_pairs(pairs: PairsByName, languages: Sequence[str], number: int) -> list[MapText]:
    """Translations between the chosen languages."""
    found: list[MapText] = []
    for name, sides in pairs.items():
        codes = name.split("-")
        if not set(codes) <= set(languages):
            continue
        for texts in subsample(list(zip(*sides, strict=True)), number):
            pair = len(found)
            found += [MapText(code, text, pair) for code, text in zip(codes, texts, strict=True)]
    return found


def layer_vectors(model: ExploreModel, texts: Sequence[MapText], *, are_words: bool) -> Tensor:
    """(layers + 1, texts, D) vectors on the CPU."""
    codes = [one.language for one in texts]
    pretokenizer = Pretokenizer.load(model.folder)
    plain = [pretokenize_text(one.text, one.language, pretokenizer) for one in texts]
    vectors = embed(model.encoder, model.tokenizer, plain, skip_special=are_words, language=codes)
    if are_words:
        vectors[0] = table_vectors(model.encoder, model.tokenizer, plain)
    return vectors


def locate(
    texts: Sequence[MapText],
    vectors: Tensor,
    layer: int,
    *,
    are_words: bool,
    method: Method = "t-SNE",
) -> MapPoints:
    """Places of texts by their (N, D) vectors of one layer."""
    codes = list(dict.fromkeys(one.language for one in texts))
    own = torch.tensor([codes.index(one.language) for one in texts])
    by_language = {code: vectors[own == number] for number, code in enumerate(codes)}
    dimensions = _DIMENSIONS.word_pca_dimensions if are_words else _DIMENSIONS.pca_dimensions
    found = project(by_language, layer, dimensions, method=method)
    rest = {code: iter(points) for code, points in found.points.items()}
    return MapPoints(
        tuple(next(rest[one.language]) for one in texts), found.method, _accuracy(texts, vectors)
    )


def _accuracy(texts: Sequence[MapText], vectors: Tensor) -> float | None:
    """Retrieval accuracy over all pairs of languages, both directions."""
    sides: dict[int, list[int]] = {}
    for place, one in enumerate(texts):
        if one.pair is not None:
            sides.setdefault(one.pair, []).append(place)
    groups: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for first, second in sides.values():
        groups.setdefault((texts[first].language, texts[second].language), []).append(
            (first, second)
        )
    shares, total = 0.0, 0
    for group in groups.values():
        left, right = (list(column) for column in zip(*group, strict=True))
        for queries, candidates in ((left, right), (right, left)):
            names = [texts[place].text for place in candidates]
            share = retrieval_accuracy(vectors[queries], vectors[candidates], names)
            shares, total = shares + share * len(group), total + len(group)
    return shares / total if total else None
