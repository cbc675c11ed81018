"""Visualizations of an encoder for a report: maps of sentences and of words, similarity grids.

A map is PCA and then t-SNE. That of sentences has mean vectors of translation pairs; that of words
(MLM-GC, Figure 2) the words of dictionaries, from the embedding table, by PCA to 3 dimensions as in
the paper. A grid has the cosines between the words of a sentence and of its translation. Sentences
and grids are of the layer with the best retrieval accuracy on the same pairs, unless one is given.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Literal

import torch
import torch.nn.functional as F

from isoglot.corpus.tokenization.pretokenization import Pretokenizer
from isoglot.errors import IsoglotError
from isoglot.evaluation.data import splits_to_score
from isoglot.evaluation.embed import embed, encode_in_batches, language_ids
from isoglot.evaluation.loading import load_for_scoring
from isoglot.evaluation.retrieval import retrieval_accuracy
from isoglot.evaluation.word_vectors import table_vectors
from isoglot.model_results import fingerprint as fingerprint_of
from isoglot.ranges import Range, Seed, check_ranges
from isoglot.tasks import find_task
from isoglot.tasks.base import subsample
from isoglot.tasks.pretokenized import pretokenize_text
from isoglot.visualizations import SentenceMap, SimilarityGrid, Visualizations

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from isoglot.evaluation.pairs import PairsByName
    from isoglot.models.encoder import Encoder
    from isoglot.tasks.base import DataFolders

Method = Literal["t-SNE", "UMAP"]
"""Dimensionality reduction after PCA."""
_READABLE = range(4, 15)
"""Numbers of words of a sentence that make a readable grid."""
_MAX_WORD_LENGTH = 20
"""Longer words are text without spaces, and are split into tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VisualizationConfig:
    """Settings of the visualizations of a model."""

    sentences_per_language: Annotated[int, Range(2, 10**6)] = 200
    """Sentences of each language on the map."""
    max_sentences: Annotated[int, Range(2, 10**6)] = 4000
    """Most sentences, or words, of all languages together, which bounds the time of t-SNE."""
    pca_dimensions: Annotated[int, Range(2, 10_000)] = 50
    """Dimensions of PCA before t-SNE on the map of sentences."""
    word_pca_dimensions: Annotated[int, Range(2, 10_000)] = 3
    """Dimensions of PCA before t-SNE on the map of words (MLM-GC, section 5.1)."""
    max_grids: Annotated[int, Range(0, 10_000)] = 8
    """Most similarity grids, one for each pair of languages."""
    layer: Annotated[int | None, Range(0, 1000)] = None
    """Layer to read; none: the one with the best retrieval accuracy on the pairs."""
    seed: Seed = 0
    """Random seed of PCA and t-SNE."""

    def __post_init__(self) -> None:
        check_ranges(self)


def visualize_folder(
    folder: Path,
    pairs: Mapping[str, tuple[Sequence[str], Sequence[str]]],
    settings: VisualizationConfig | None = None,
    *,
    words: Mapping[str, tuple[Sequence[str], Sequence[str]]] | None = None,
) -> Visualizations:
    """Visualizations of a Hugging Face folder; `words` are translated words by language pair."""
    encoder, tokenizer = load_for_scoring(folder)
    pretokenization = Pretokenizer.load(folder)
    pairs = {
        name: (
            [pretokenize_text(text, name.split("-")[0], pretokenization) for text in first],
            [pretokenize_text(text, name.split("-")[1], pretokenization) for text in second],
        )
        for name, (first, second) in pairs.items()
    }
    return visualize_encoder(
        encoder,
        tokenizer,
        pairs,
        fingerprint=fingerprint_of(folder),
        settings=settings,
        words=words or {},
    )


def sentence_pairs_of_tasks(
    names: Sequence[str],
    data: DataFolders,
    languages: Collection[str] | None = None,
    *,
    required: bool = True,
) -> PairsByName:
    """The translations of the retrieval tasks among the named tasks; if required, at least one."""
    pairs: PairsByName = {}
    for task in map(find_task, names):
        if task.kind == "retrieval":
            for split in splits_to_score(task, data, languages):
                found = task.read(split)
                sides = [pair.first for pair in found], [pair.second for pair in found]
                pairs.setdefault(split.language, sides)
    if required and not pairs:
        raise IsoglotError(
            "Visualizations need translations: name a retrieval task, such as tatoeba, or "
            "dictionaries, such as muse."
        )
    return pairs


def word_pairs_of_tasks(
    names: Sequence[str], data: DataFolders, languages: Collection[str] | None = None
) -> PairsByName:
    """The words and translations of the dictionaries among the named tasks."""
    pairs: PairsByName = {}
    for task in map(find_task, names):
        if task.kind == "lexicon":
            for split in splits_to_score(task, data, languages):
                first, second = pairs.setdefault(split.language, ([], []))
                for entry in task.read(split):
                    first.append(entry.word)
                    second.extend(entry.translations)
    return pairs


def visualize_encoder(
    encoder: Encoder,
    tokenizer: Any,
    pairs: Mapping[str, tuple[Sequence[str], Sequence[str]]],
    *,
    fingerprint: str,
    settings: VisualizationConfig | None = None,
    words: Mapping[str, tuple[Sequence[str], Sequence[str]]] | None = None,
) -> Visualizations:
    """Visualizations of an encoder, on translations by pair of languages (`en-de`).

    `fingerprint` is that of the model's results; `words` are for the map of words.
    """
    settings = settings or VisualizationConfig()
    word_map = _word_map(encoder, tokenizer, words, settings) if words else None
    if not pairs:
        return Visualizations(fingerprint=fingerprint, word_map=word_map)
    languages = {language for name in pairs for language in name.split("-")}
    each = max(2, min(settings.sentences_per_language, settings.max_sentences // len(languages)))
    vectors: dict[str, torch.Tensor] = {}
    right: torch.Tensor | None = None
    for name, sides in pairs.items():
        texts = [list(side[:each]) for side in sides]
        found = [
            embed(encoder, tokenizer, side, language=language)
            for side, language in zip(texts, name.split("-"), strict=True)
        ]
        for language, of_language in zip(name.split("-"), found, strict=True):
            vectors.setdefault(language, of_language)
        hits = [retrieval_accuracy(a, b, texts[1]) for a, b in zip(*found, strict=True)]
        right = torch.tensor(hits) if right is None else right + torch.tensor(hits)
    assert right is not None, "there is at least one pair of languages"
    layer = int(right.argmax()) if settings.layer is None else settings.layer
    grids = (_grid(encoder, tokenizer, name, *sides, layer) for name, sides in pairs.items())
    at_layer = {code: of_code[layer] for code, of_code in vectors.items()}
    return Visualizations(
        fingerprint=fingerprint,
        sentence_map=project(at_layer, layer, settings.pca_dimensions, seed=settings.seed),
        word_map=word_map,
        grids=tuple(grid for grid in grids if grid is not None)[: settings.max_grids],
    )


def _word_map(
    encoder: Encoder,
    tokenizer: Any,
    pairs: Mapping[str, tuple[Sequence[str], Sequence[str]]],
    settings: VisualizationConfig,
) -> SentenceMap:
    """The words of each language in the embedding table."""
    words: dict[str, dict[str, None]] = {}
    for name, sides in pairs.items():
        for language, side in zip(name.split("-"), sides, strict=True):
            words.setdefault(language, {}).update(dict.fromkeys(side))
    each = max(2, settings.max_sentences // len(words))
    chosen = {code: subsample(list(own), each) for code, own in words.items()}
    vectors = {code: table_vectors(encoder, tokenizer, own) for code, own in chosen.items()}
    return project(vectors, None, settings.word_pca_dimensions, seed=settings.seed)


def project(
    vectors: Mapping[str, torch.Tensor],
    layer: int | None,
    dimensions: int,
    *,
    seed: int = 0,
    method: Method = "t-SNE",
) -> SentenceMap:
    """A map of vectors by language: PCA to some dimensions, then t-SNE or UMAP to two.

    Args:
        vectors: language -> (N, D) vectors.
        layer: the layer that they are of, for the map.
        dimensions: of PCA.
        seed: random seed.
        method: UMAP needs umap-learn.
    """
    from sklearn.decomposition import PCA
    from threadpoolctl import threadpool_limits

    together = torch.cat(list(vectors.values())).numpy()
    components = min(dimensions, *together.shape)
    # on a busy machine several threads are many times slower than one
    with threadpool_limits(1):
        reduced = PCA(components, random_state=seed).fit_transform(together)
        places = _reducer(method, len(together), seed).fit_transform(reduced)
    rows = ((round(float(x), 2), round(float(y), 2)) for x, y in places)
    points = {code: tuple(islice(rows, len(of_code))) for code, of_code in vectors.items()}
    described = f"PCA to {components} dimensions, then {method}"
    return SentenceMap(layer=layer, method=described, points=points)


def _reducer(method: Method, number: int, seed: int) -> Any:
    """The estimator that gives two dimensions to `number` vectors."""
    if method == "t-SNE":
        from sklearn.manifold import TSNE

        return TSNE(perplexity=min(30.0, (number - 1) / 3), random_state=seed)
    try:
        from umap import UMAP
    except ImportError as error:
        raise IsoglotError("UMAP needs umap-learn: pip install umap-learn.") from error
    return UMAP(n_neighbors=min(15, number - 1), random_state=seed, n_jobs=1)


def _grid(
    encoder: Encoder,
    tokenizer: Any,
    language: str,
    first: Sequence[str],
    second: Sequence[str],
    layer: int,
) -> SimilarityGrid | None:
    """The grid of the first pair of sentences of readable length, or none."""
    for texts in zip(first, second, strict=True):
        tokens = [_word_tokens(tokenizer, text) for text in texts]
        if all(len(words) in _READABLE for words, _ in tokens):
            sides = [
                _word_vectors(encoder, tokenizer, text, groups, layer, code)
                for text, (_, groups), code in zip(texts, tokens, language.split("-"), strict=True)
            ]
            cosines = (sides[0] @ sides[1].T).tolist()
            return SimilarityGrid(
                language=language,
                layer=layer,
                first=tuple(tokens[0][0]),
                second=tuple(tokens[1][0]),
                cosines=tuple(tuple(round(cosine, 3) for cosine in row) for row in cosines),
            )
    return None


def _word_tokens(tokenizer: Any, text: str) -> tuple[list[str], list[list[int]]]:
    """The words of a text and the indices of their tokens; long words are split into tokens."""
    spans = [word.span() for word in re.finditer(r"\S+", text)]
    groups: dict[tuple[int, int], list[int]] = {}
    offsets = tokenizer(text, return_offsets_mapping=True)["offset_mapping"]
    for token, (start, end) in enumerate(offsets):
        # SentencePiece's offsets include the space before a word
        begin = end - len(text[start:end].lstrip())
        span = next((span for span in spans if span[0] <= begin < span[1]), None)
        if span is not None and begin < end:
            key = span if span[1] - span[0] <= _MAX_WORD_LENGTH else (begin, end)
            groups.setdefault(key, []).append(token)
    return [text[start:end] for start, end in groups], list(groups.values())


def _word_vectors(
    encoder: Encoder,
    tokenizer: Any,
    text: str,
    groups: Sequence[Sequence[int]],
    layer: int,
    language: str,
) -> torch.Tensor:
    """(words, D) means of the tokens of each word, of length 1."""
    ids = tokenizer(text)["input_ids"]
    ((_, _, states),) = encode_in_batches(
        encoder, [ids], tokenizer.pad_token_id, languages=language_ids(encoder, language, 1)
    )
    assert states.layers is not None
    vectors = states.layers[layer][0].float().cpu()
    return F.normalize(torch.stack([vectors[list(group)].mean(dim=0) for group in groups]), dim=-1)
