"""Exhibits of an encoder for a report: a map of its sentences, and words against words.

Reads translation pairs. The map (MLM-GC, Figure 2, there of words) is PCA and then t-SNE of mean
sentence vectors; the grids are cosines between the words of a sentence and of its translation. Both
are of the layer that retrieves best on these very pairs, unless one is named.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F

from isoglot.corpus.pretokenize import Pretokenization
from isoglot.errors import IsoglotError
from isoglot.evaluate.cells import parts_to_score
from isoglot.evaluate.embed import embed, in_batches
from isoglot.evaluate.retrieval import accuracies
from isoglot.evaluate.run import fingerprint as fingerprint_of
from isoglot.evaluate.run import open_for_scoring
from isoglot.exhibits import Exhibits, Grid, Space
from isoglot.finetune.in_words import divided
from isoglot.tasks import find_task

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from isoglot.models import Encoder

_READABLE = range(4, 15)
"""Words of a sentence that make a grid one can read."""
_LONGEST_WORD = 20
"""What is longer between two spaces is a text without spaces, and goes by its pieces."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExhibitConfig:
    """What to show of a model."""

    sentences: int = 200
    """Sentences of each language on the map."""
    most: int = 4000
    """Sentences of all languages together at most: t-SNE takes its time."""
    components: int = 50
    """Dimensions that PCA leaves to t-SNE; MLM-GC leaves 3."""
    grids: int = 8
    """Grids of words at most, one for each pair of languages."""
    layer: int | None = None
    """Layer to read; left out, the one that retrieves best on the pairs."""
    seed: int = 0
    """Seed of t-SNE."""


def exhibits_of_folder(
    folder: Path,
    pairs: Mapping[str, tuple[Sequence[str], Sequence[str]]],
    settings: ExhibitConfig | None = None,
) -> Exhibits:
    """Exhibits of a Hugging Face folder."""
    encoder, tokenizer = open_for_scoring(folder)
    words = Pretokenization.load(folder)
    pairs = {
        name: (
            [divided(text, name.split("-")[0], words) for text in first],
            [divided(text, name.split("-")[1], words) for text in second],
        )
        for name, (first, second) in pairs.items()
    }
    return make_exhibits(
        encoder, tokenizer, pairs, fingerprint=fingerprint_of(folder), settings=settings
    )


def pairs_of_tasks(
    names: Sequence[str], data: Path, languages: str = ""
) -> dict[str, tuple[list[str], list[str]]]:
    """The translations of the retrieval tasks among some tasks, by pair of languages.

    Raises:
        IsoglotError: none of the tasks is one of retrieval.
    """
    pairs: dict[str, tuple[list[str], list[str]]] = {}
    wanted = languages.split(",") if languages else None
    for task in (find_task(name.strip()) for name in names):
        if task.kind == "retrieval":
            for part in parts_to_score(task, data, wanted):
                found = task.read(part)
                sides = [pair.first for pair in found], [pair.second for pair in found]
                pairs.setdefault(part.language, sides)
    if not pairs:
        raise IsoglotError("Exhibits need translations: name a retrieval task, such as tatoeba.")
    return pairs


def make_exhibits(
    encoder: Encoder,
    tokenizer: Any,
    pairs: Mapping[str, tuple[Sequence[str], Sequence[str]]],
    *,
    fingerprint: str,
    settings: ExhibitConfig | None = None,
) -> Exhibits:
    """Exhibits of an encoder, from pairs of languages (`en-de`) to translations.

    `fingerprint` is that of the model's results.
    """
    settings = settings or ExhibitConfig()
    languages = {language for name in pairs for language in name.split("-")}
    each = max(2, min(settings.sentences, settings.most // len(languages)))
    vectors: dict[str, torch.Tensor] = {}
    right: torch.Tensor | None = None
    for name, sides in pairs.items():
        texts = [list(side[:each]) for side in sides]
        found = [embed(encoder, tokenizer, side) for side in texts]
        for language, of_language in zip(name.split("-"), found, strict=True):
            vectors.setdefault(language, of_language)
        hits = [accuracies(a, b, texts[1]) for a, b in zip(*found, strict=True)]
        right = torch.tensor(hits) if right is None else right + torch.tensor(hits)
    assert right is not None, "there is at least one pair of languages"
    layer = int(right.argmax()) if settings.layer is None else settings.layer
    grids = (_grid(encoder, tokenizer, name, *sides, layer) for name, sides in pairs.items())
    return Exhibits(
        fingerprint=fingerprint,
        space=_space({code: of[layer] for code, of in vectors.items()}, layer, settings),
        grids=tuple(grid for grid in grids if grid is not None)[: settings.grids],
    )


def _space(vectors: Mapping[str, torch.Tensor], layer: int, settings: ExhibitConfig) -> Space:
    try:
        from sklearn.decomposition import PCA
        from sklearn.manifold import TSNE
        from threadpoolctl import threadpool_limits
    except ImportError as error:
        raise IsoglotError("Exhibits need scikit-learn: pip install 'isoglot[report]'.") from error
    together = torch.cat(list(vectors.values())).numpy()
    components = min(settings.components, *together.shape)
    perplexity = min(30.0, (len(together) - 1) / 3)
    # threads that wait for each other on a busy machine take many times as long as one alone
    with threadpool_limits(1):
        reduced = PCA(components, random_state=settings.seed).fit_transform(together)
        places = TSNE(perplexity=perplexity, random_state=settings.seed).fit_transform(reduced)
    points = {}
    start = 0
    for language, of_language in vectors.items():
        block = places[start : start + len(of_language)]
        points[language] = tuple((round(float(x), 2), round(float(y), 2)) for x, y in block)
        start += len(of_language)
    method = f"PCA to {components} dimensions, then t-SNE"
    return Space(layer=layer, method=method, points=points)


def _grid(
    encoder: Encoder,
    tokenizer: Any,
    language: str,
    first: Sequence[str],
    second: Sequence[str],
    layer: int,
) -> Grid | None:
    """The first pair of readable sentences; None if there is none."""
    for texts in zip(first, second, strict=True):
        units = [_units(tokenizer, text) for text in texts]
        if all(len(words) in _READABLE for words, _ in units):
            sides = [
                _word_vectors(encoder, tokenizer, text, groups, layer)
                for text, (_, groups) in zip(texts, units, strict=True)
            ]
            cosines = (sides[0] @ sides[1].T).tolist()
            return Grid(
                language=language,
                layer=layer,
                first=tuple(units[0][0]),
                second=tuple(units[1][0]),
                cosines=tuple(tuple(round(cosine, 3) for cosine in row) for row in cosines),
            )
    return None


def _units(tokenizer: Any, text: str) -> tuple[list[str], list[list[int]]]:
    """The words of a text, and the tokens of each: what lies between spaces, or pieces of it."""
    spans = []
    end = 0
    for word in text.split():
        start = text.index(word, end)
        end = start + len(word)
        spans.append((start, end))
    groups: dict[tuple[int, int], list[int]] = {}
    offsets = tokenizer(text, return_offsets_mapping=True)["offset_mapping"]
    for token, (start, end) in enumerate(offsets):
        # SentencePiece counts the space before a word as a part of it
        begin = end - len(text[start:end].lstrip())
        span = next((span for span in spans if span[0] <= begin < span[1]), None)
        if span is not None and begin < end:
            key = span if span[1] - span[0] <= _LONGEST_WORD else (begin, end)
            groups.setdefault(key, []).append(token)
    return [text[start:end] for start, end in groups], list(groups.values())


def _word_vectors(
    encoder: Encoder, tokenizer: Any, text: str, groups: Sequence[Sequence[int]], layer: int
) -> torch.Tensor:
    """(words, D): the mean of each word's tokens, of length 1."""
    ids = tokenizer(text)["input_ids"]
    ((_, _, states),) = in_batches(encoder, [ids], tokenizer.pad_token_id)
    assert states.layers is not None
    vectors = states.layers[layer][0].float().cpu()
    return F.normalize(torch.stack([vectors[list(group)].mean(dim=0) for group in groups]), dim=-1)
