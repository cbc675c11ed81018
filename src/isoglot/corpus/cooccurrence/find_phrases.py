"""Finds the phrases of a corpus: in each language, the frequent n-grams of the highest PMI.

Reads the training text of all sources of kind text; writes one table of phrases for all languages,
since masking matches token ids. PMI-Masking (Levine et al., 2021) scores an n-gram by the
segmentation that explains it best:

    PMI(w) = min over segmentations of w into parts of  log ( p(w) / product of p(part) )

N-grams are ranked within their length, as longer ones have higher scores, and taken from the
rankings in turn. Difference to the paper: n-grams of tokens, not of words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from isoglot.corpus.cooccurrence.phrases import PADDING, Phrases
from isoglot.locks import lock_file
from isoglot.types import FloatArray, IntArray, LongArray

if TYPE_CHECKING:
    from pathlib import Path

    from isoglot.corpus.cooccurrence.phrases import PhraseConfig
    from isoglot.corpus.engine.runner import Progress
    from isoglot.corpus.storage.corpus import Corpus
    from isoglot.types import BoolArray


def find_phrases(
    corpus: Corpus, config: PhraseConfig, file: Path, progress: Progress | None = None
) -> Phrases:
    """Finds the phrases of all languages and writes them to a file."""
    ordinary = ~corpus.vocabulary.is_special
    found = [np.zeros((0, config.max_length), np.int32)]
    for number, language in enumerate(corpus.languages):
        if progress is not None:
            progress("find phrases", number, len(corpus.languages))
        ids, offsets = _text(corpus, language, config.max_text_tokens)
        found.append(best_phrases(ids, offsets, ordinary, config))
    phrases = Phrases(np.unique(np.concatenate(found), axis=0))
    with lock_file(file, wait=True):
        phrases.write(file)
    return phrases


def best_phrases(
    ids: IntArray, offsets: LongArray, ordinary: BoolArray, config: PhraseConfig
) -> IntArray:
    """The phrases of one language, a row each, filled with `PADDING`."""
    levels = frequent_ngrams(
        ids, offsets, ordinary, max_length=config.max_length, min_count=config.min_count
    )
    tables, ranks = [], []
    for n in range(2, config.max_length + 1):
        pmi = pmi_scores(levels, n, len(ordinary))
        best = np.argsort(-pmi, kind="stable")[: np.count_nonzero(pmi > 0)]
        table = np.full((len(best), config.max_length), PADDING, np.int32)
        table[:, :n] = levels[n - 1].tokens[best]
        tables.append(table)
        ranks.append(np.arange(len(best)))
    in_turn = np.argsort(np.concatenate(ranks), kind="stable")[: config.max_phrases]
    return np.asarray(np.concatenate(tables)[in_turn])


def _text(corpus: Corpus, language: str, max_tokens: int) -> tuple[IntArray, LongArray]:
    """The first sentences of a language, and the offset of each."""
    ids, lengths, left = [np.zeros(0, np.int32)], [np.zeros(1, np.int64)], max_tokens
    for source in corpus.sources("text"):
        if language not in corpus.manifest.sources[source].languages:
            continue
        for shard in corpus.table(source, language, "train").shards:
            offsets = shard.offsets("ids")
            last = int(np.searchsorted(offsets, left, "right")) - 1
            ids.append(shard.values("ids")[: offsets[last]])
            lengths.append(np.diff(offsets[: last + 1]).astype(np.int64))
            left -= int(offsets[last])
    return np.concatenate(ids), np.cumsum(np.concatenate(lengths))


@dataclass(frozen=True, slots=True, kw_only=True)
class NgramLevel:
    """The frequent n-grams of one length."""

    keys: LongArray
    """Ascending: number of the (n - 1)-gram it starts with × vocabulary size + last token."""
    tokens: IntArray
    """(n-grams, n)."""
    log_p: FloatArray
    """Log of each one's share of all n-grams of its length."""


def frequent_ngrams(
    ids: IntArray, offsets: LongArray, ordinary: BoolArray, *, max_length: int, min_count: int
) -> list[NgramLevel]:
    """The n-grams of 1 to `max_length` tokens that occur `min_count` times, shortest first.

    An n-gram is frequent only if the (n - 1)-gram it starts with is, so each level numbers its
    n-grams by that prefix and their last token: exact counts, keys of 64 bits. `offsets` are the
    start of each sentence and the end of the last; `ordinary` are the ids that n-grams may contain.
    """
    size, left = len(ordinary), _ordinary_run(ids, offsets, ordinary)
    counts = np.bincount(ids[left > 0], minlength=size)
    every_id = np.arange(size)
    with np.errstate(divide="ignore"):
        log_p = np.log(counts) - np.log(max(int(counts.sum()), 1))
    levels = [NgramLevel(keys=every_id, tokens=every_id[:, None].astype(np.int32), log_p=log_p)]
    places = np.flatnonzero((left > 0) & (counts[ids] >= min_count))
    prefixes = ids[places].astype(np.int64)
    for n in range(2, max_length + 1):
        fits = left[places] >= n
        places, prefixes = places[fits], prefixes[fits]
        occurring = prefixes * size + ids[places + n - 1]
        keys, owner, counts = np.unique(occurring, return_inverse=True, return_counts=True)
        kept = counts >= min_count
        number = np.where(kept, np.cumsum(kept) - 1, -1)
        keys, counts = keys[kept], counts[kept]
        tokens = np.hstack([levels[-1].tokens[keys // size], (keys % size)[:, None]])
        log_p = np.log(counts) - np.log(max(int((left >= n).sum()), 1))
        levels.append(NgramLevel(keys=keys, tokens=tokens.astype(np.int32), log_p=log_p))
        prefixes = number[owner]
        places, prefixes = places[prefixes >= 0], prefixes[prefixes >= 0]
    return levels


def pmi_scores(levels: list[NgramLevel], n: int, vocabulary_size: int) -> FloatArray:
    """The PMI of every n-gram of length n (2 or more)."""
    tokens = levels[n - 1].tokens
    best = np.full((n + 1, len(tokens)), -np.inf)
    best[0] = 0
    for start in range(n):
        numbers = tokens[:, start].astype(np.int64)
        for stop in range(start + 1, n + 1 if start else n):
            if stop > start + 1:
                keys = numbers * vocabulary_size + tokens[:, stop - 1]
                numbers = np.searchsorted(levels[stop - start - 1].keys, keys)
            # every part of a frequent n-gram is frequent, so the search always finds it
            explained = best[start] + levels[stop - start - 1].log_p[numbers]
            best[stop] = np.maximum(best[stop], explained)
    return np.asarray(levels[n - 1].log_p - best[n], np.float64)


def _ordinary_run(ids: IntArray, offsets: LongArray, ordinary: BoolArray) -> IntArray:
    """For each token, the ordinary tokens from it to the next break, itself included."""
    stops = ~ordinary[ids]
    ends = np.union1d(np.flatnonzero(stops), offsets[1:])
    following = ends[np.searchsorted(ends, np.arange(len(ids)), "right")]
    left = following - np.arange(len(ids))
    return np.where(stops, 0, left).astype(np.int32)
