"""The phrases of a prepared corpus: in each language, the frequent n-grams of the highest PMI.

Reads the training text; writes one table of phrases for all languages (`Phrases`), since masking
meets them by their tokens. PMI-Masking (Levine et al., 2021), the baseline of MLM-GC: n-grams are
ranked among those of their own length, as longer ones have higher scores, and the rankings taken
from in turn. Where we differ: n-grams are of tokens, not of words.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from hashlib import sha256
from io import BytesIO
from typing import TYPE_CHECKING

import numpy as np

from isoglot.corpus.cooccurrence.count import FOLDER
from isoglot.corpus.disk import write_atomically
from isoglot.corpus.phrases.ngrams import frequent, scores
from isoglot.corpus.phrases.phrases import NOTHING, Phrases
from isoglot.errors import require

if TYPE_CHECKING:
    from pathlib import Path

    from isoglot.corpus.corpus import Corpus
    from isoglot.corpus.workshop import Progress
    from isoglot.types import BoolArray, IntArray, LongArray


@dataclass(frozen=True, slots=True, kw_only=True)
class PhraseConfig:
    """Which n-grams become phrases."""

    longest: int = 5
    """Tokens of the longest phrase; the shortest has two."""
    least: int = 10
    """Occurrences in a language that an n-gram needs."""
    most: int = 100_000
    """Phrases of a language: the highest PMI of each length in turn, and only above 0."""
    tokens: int = 20_000_000
    """Tokens of each language that are looked at, from the beginning; bounds memory."""

    def __post_init__(self) -> None:
        require(self.longest >= 2, "phrases.longest must be 2 or more")
        require(self.least >= 1, "phrases.least must be 1 or more")
        require(self.most >= 1, "phrases.most must be 1 or more")
        require(self.tokens >= 1, "phrases.tokens must be 1 or more")


def phrases_of(corpus: Corpus, config: PhraseConfig, progress: Progress | None = None) -> Path:
    """The file of a corpus's phrases in its own folder, made unless it is there."""
    settings = json.dumps([corpus.fingerprint, asdict(config)])
    file = corpus.folder / FOLDER / f"phrases-{sha256(settings.encode()).hexdigest()[:16]}.npy"
    if not file.exists():
        find_phrases(corpus, config, file, progress)
    return file


def find_phrases(
    corpus: Corpus, config: PhraseConfig, file: Path, progress: Progress | None = None
) -> Phrases:
    """Finds the phrases of all languages in the sources of kind text, and writes them to a file."""
    ordinary = ~corpus.vocabulary.is_special
    found = [np.zeros((0, config.longest), np.int32)]
    for number, language in enumerate(corpus.languages):
        if progress is not None:
            progress("find phrases", number, len(corpus.languages))
        ids, offsets = _text(corpus, language, config.tokens)
        found.append(best_phrases(ids, offsets, ordinary, config))
    table = np.unique(np.concatenate(found), axis=0)
    buffer = BytesIO()
    np.save(buffer, table)
    write_atomically(file, buffer.getbuffer())
    return Phrases(table)


def best_phrases(
    ids: IntArray, offsets: LongArray, ordinary: BoolArray, config: PhraseConfig
) -> IntArray:
    """The phrases of one language, a row each, filled up with `NOTHING`."""
    levels = frequent(ids, offsets, ordinary, longest=config.longest, least=config.least)
    tables, ranks = [], []
    for n in range(2, config.longest + 1):
        pmi = scores(levels, n, len(ordinary))
        best = np.argsort(-pmi, kind="stable")[: np.count_nonzero(pmi > 0)]
        table = np.full((len(best), config.longest), NOTHING, np.int32)
        table[:, :n] = levels[n - 1].tokens[best]
        tables.append(table)
        ranks.append(np.arange(len(best)))
    in_turn = np.argsort(np.concatenate(ranks), kind="stable")[: config.most]
    return np.asarray(np.concatenate(tables)[in_turn])


def _text(corpus: Corpus, language: str, most: int) -> tuple[IntArray, LongArray]:
    """The first sentences of a language, and where each begins."""
    ids, lengths, left = [np.zeros(0, np.int32)], [np.zeros(1, np.int64)], most
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
