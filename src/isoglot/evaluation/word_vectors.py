"""Lexical tasks from vectors of single words: lexicon induction, analogies, word similarity.

Vectors are read from the embedding table and from every layer. A word of several tokens has their
mean, as in MLM-GC (section 5.1), which reads the table; in the layers a word is encoded alone, and
its special tokens are left out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor

from isoglot.evaluation.embed import embed
from isoglot.intervals import Measured, correlation_interval, mean_interval, measured_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from isoglot.evaluation.data import ScoringJob
    from isoglot.models.encoder import Encoder
    from isoglot.results import Score
    from isoglot.tasks.examples import Analogy, LexiconEntry, RatedWordPair

_Word = tuple[str, str]
"""A word and its language."""
_TABLE = "table"
"""Suffix of metrics that are read from the embedding table."""
_CSLS_NEIGHBORS = 10
_MAX_RANK = 5
_ANALOGIES_PER_BLOCK = 4096


class WordVectors:
    """The vectors of words at one layer; a word of two languages has a vector in each."""

    def __init__(self, words: Sequence[_Word], vectors: Tensor, layer: int | None) -> None:
        self.layer = layer
        """None for the embedding table."""
        self._index = {word: number for number, word in enumerate(words)}
        self._vectors = vectors

    def raw(self, words: Iterable[str], language: str) -> Tensor:
        """(N, D) vectors."""
        return self._vectors[[self._index[word, language] for word in words]]

    def unit(self, words: Iterable[str], language: str) -> Tensor:
        """(N, D) vectors of length 1."""
        return F.normalize(self.raw(words, language), dim=-1)


def word_vectors(
    encoder: Encoder,
    tokenizer: Any,
    words: Iterable[_Word],
    note: Callable[[str], None] | None = None,
) -> Iterator[WordVectors]:
    """The vectors of words in the embedding table, then in each layer."""
    unique = list(dict.fromkeys(words))
    texts, languages = (list(column) for column in zip(*unique, strict=True))
    yield WordVectors(unique, table_vectors(encoder, tokenizer, texts), None)
    layers = embed(encoder, tokenizer, texts, skip_special=True, language=languages, note=note)
    for layer, vectors in enumerate(layers):
        yield WordVectors(unique, vectors, layer)


def _vectors_of(
    job: ScoringJob, first: Iterable[str], second: Iterable[str] = ()
) -> Iterator[WordVectors]:
    """The vectors of words in the first and in the second language of a job."""
    sides = zip((first, second), job.languages, strict=True)
    words = [(word, language) for side, language in sides for word in side]
    return word_vectors(job.encoder, job.tokenizer, words, job.tell)


@torch.no_grad()
def table_vectors(encoder: Encoder, tokenizer: Any, words: list[str]) -> Tensor:
    """(N, D) means of each word's rows of the embedding table."""
    table = encoder.model.get_input_embeddings().weight.float().cpu()
    tokens = tokenizer(words, add_special_tokens=False)["input_ids"]
    return torch.stack(
        [table[ids].mean(dim=0) if ids else torch.zeros(table.shape[1]) for ids in tokens]
    )


def _word_scores(
    job: ScoringJob, values: Mapping[str, Measured], vectors: WordVectors
) -> list[Score]:
    """Scores of one layer; metrics of the table have it in their names."""
    if vectors.layer is None:
        values = {f"{name} {_TABLE}": value for name, value in values.items()}
    return job.scores(values, layer=vectors.layer)


def _mean_of(values: Tensor) -> Measured:
    """The mean of values by example."""
    found = values.double().numpy()
    return measured_mean(float(found.mean()), found)


def score_lexicon(job: ScoringJob) -> list[Score]:
    """Lexicon induction: precision by cosine and by CSLS (Lample et al. 2018) among all targets.

    `cosine` is the mean cosine of the dictionary's own pairs: the MUSE task of MLM-GC's Table 2.
    """
    found: list[Score] = []
    entries: list[LexiconEntry] = job.examples()
    words = [entry.word for entry in entries]
    targets = list(dict.fromkeys(word for entry in entries for word in entry.translations))
    place = {word: index for index, word in enumerate(targets)}
    pairs = [(i, place[word]) for i, entry in enumerate(entries) for word in entry.translations]
    first, second = job.languages
    for vectors in _vectors_of(job, words, targets):
        cosines = vectors.unit(words, first) @ vectors.unit(targets, second).T
        values = job.values(entries, _ranking(cosines, targets))
        by_csls = job.values(entries, _ranking(csls(cosines), targets))
        values |= {f"{name} csls": value for name, value in by_csls.items()}
        values["cosine"] = _mean_of(cosines[tuple(zip(*pairs, strict=True))])
        found += _word_scores(job, values, vectors)
    return found


def csls(cosines: Tensor) -> Tensor:
    """Twice the cosines, minus the mean cosine of each side's 10 nearest neighbors."""
    forward = cosines.topk(min(_CSLS_NEIGHBORS, cosines.shape[1]), dim=1).values.mean(dim=1)
    backward = cosines.topk(min(_CSLS_NEIGHBORS, cosines.shape[0]), dim=0).values.mean(dim=0)
    return 2 * cosines - forward[:, None] - backward[None, :]


def _ranking(similar: Tensor, targets: list[str]) -> list[list[str]]:
    best = similar.topk(min(_MAX_RANK, similar.shape[1]), dim=1).indices.tolist()
    return [[targets[index] for index in row] for row in best]


def score_analogy(job: ScoringJob) -> list[Score]:
    """Analogies: is d nearest to b - a + c? Accuracy and cosine, over all and by section.

    Accuracy is Mikolov et al.'s (2013) 3CosAdd: unit vectors, and the best word of the split other
    than a, b and c. `cosine` is that of b - a + c with d, vectors not normalized: MLM-GC's Table 3.
    """
    found: list[Score] = []
    examples: list[Analogy] = job.examples()
    words = list(dict.fromkeys(w for e in examples for w in (e.a, e.b, e.c, e.d)))
    language = job.languages[0]
    for vectors in _vectors_of(job, words):
        values = job.values(examples, _solve(examples, words, vectors.unit(words, language)))
        values |= _analogy_cosines(examples, vectors, language)
        found += _word_scores(job, values, vectors)
    return found


def _solve(examples: Sequence[Analogy], words: list[str], units: Tensor) -> list[str]:
    place = {word: index for index, word in enumerate(words)}
    predicted: list[str] = []
    for start in range(0, len(examples), _ANALOGIES_PER_BLOCK):
        block = examples[start : start + _ANALOGIES_PER_BLOCK]
        given = torch.tensor([[place[e.a], place[e.b], place[e.c]] for e in block])
        a, b, c = (units[column] for column in given.T)
        similar = (b - a + c) @ units.T
        similar.scatter_(1, given, float("-inf"))
        predicted += [words[index] for index in similar.argmax(dim=1).tolist()]
    return predicted


def _analogy_cosines(
    examples: Sequence[Analogy], vectors: WordVectors, language: str
) -> dict[str, Measured]:
    a, b, c, d = (vectors.raw((getattr(e, name) for e in examples), language) for name in "abcd")
    cosines = F.cosine_similarity(b - a + c, d)
    places: dict[str, list[int]] = {}
    for place, example in enumerate(examples):
        places.setdefault(example.section, []).append(place)
    by_section = {f"cosine {name}": _mean_of(cosines[own]) for name, own in places.items()}
    return {"cosine": _mean_of(cosines), **by_section}


def score_similarity(job: ScoringJob) -> list[Score]:
    """Word similarity: the correlation of cosines with the ratings of people."""
    found: list[Score] = []
    pairs: list[RatedWordPair] = job.examples()
    firsts, seconds = [pair.first for pair in pairs], [pair.second for pair in pairs]
    first, second = job.languages
    for vectors in _vectors_of(job, firsts, seconds):
        cosines = (vectors.unit(firsts, first) * vectors.unit(seconds, second)).sum(dim=1)
        values = _with_bounds(job.values(pairs, cosines.tolist()))
        found += _word_scores(job, values, vectors)
    return found


def _with_bounds(values: Mapping[str, Measured]) -> dict[str, Measured]:
    """Correlations with their intervals; that of the mean of all sets is from those of the sets."""
    mean, *sets = values.values()
    bounds = [correlation_interval(one.value, one.count) for one in sets]
    of_mean = mean_interval((one.value, *ends) for one, ends in zip(sets, bounds, strict=True))
    measured = zip(values, (mean, *sets), (of_mean, *bounds), strict=True)
    return {name: replace(one, bounds=ends) for name, one, ends in measured}
