"""The observation behind MLM-GC: compounds that translate each other occur about equally often.

Reads compounds (`compounds`) and the pair counts of each language by itself, with its constant
c_lang; gives the logs a and b of their counts, and by bins of a + b the mean of |a - b| and of
|a - b| / (a + b), with 95 % intervals (section 3.3, Figure 1). A compound takes part if its four
words are single tokens of the vocabulary, as only those have counts, and if it counts at least 1
in both languages, as logs below 0 would make the ratio meaningless. What is left out is counted.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from isoglot.corpus.cooccurrence.count import count_pairs
from isoglot.corpus.tokenizer import Encoder
from isoglot.errors import CorpusError, nearest
from isoglot.types import FloatArray, LongArray

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from isoglot.corpus.cooccurrence.compounds import Compound, Two
    from isoglot.corpus.cooccurrence.settings import PairConfig
    from isoglot.corpus.cooccurrence.table import PairTable
    from isoglot.corpus.corpus import Corpus
    from isoglot.corpus.workshop import Progress

_NORMAL = 1.96
"""Standard errors to each side that hold 95 %."""
_LEAST = 5
"""A bin of fewer compounds says nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """The compounds that take part, and their logs of counts."""

    first: FloatArray
    """a: in the first language."""
    second: FloatArray
    """b: in the second."""
    left_out: dict[str, int]
    """Reason -> how many compounds do not take part."""

    def shuffled(self) -> Observed:
        """Each compound beside another's translation: what no translation would give."""
        order = np.random.default_rng(0).permutation(len(self.second))
        return replace(self, second=self.second[order])


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """The compounds whose sum a + b lies in a range."""

    low: float
    high: float
    number: int
    difference: float
    """Mean of |a - b|."""
    difference_half: float
    """Half of its 95 % interval."""
    ratio: float
    """Mean of |a - b| / (a + b)."""
    ratio_half: float


class Languages:
    """A pair of languages of a corpus: their words, and how often they stand near each other."""

    def __init__(
        self,
        corpus: Corpus,
        codes: tuple[str, str],
        config: PairConfig,
        *,
        workers: int = 1,
        progress: Progress | None = None,
    ) -> None:
        for code in codes:
            if code not in corpus.languages:
                hint = nearest(code, corpus.languages)
                raise CorpusError(f"{corpus.folder}: has no language {code!r}; {hint}")
        self.codes = codes
        self.tables: tuple[PairTable, PairTable] = tuple(  # type: ignore[assignment]
            count_pairs(
                corpus, replace(config, languages=(code,)), workers=workers, progress=progress
            )
            for code in codes
        )
        self._encoder = Encoder(corpus.tokenizer_folder)
        self._special = corpus.vocabulary.is_special

    def tokens(self, words: Iterable[str]) -> dict[str, int]:
        """The words that are single tokens, and those."""
        unique = list(dict.fromkeys(words))
        # after a space, as inside a sentence
        ids, lengths = self._encoder.encode([f" {word}" for word in unique])
        found = {}
        for word, place, length in zip(unique, np.cumsum(lengths) - lengths, lengths, strict=True):
            if length == 1 and not self._special[ids[place]]:
                found[word] = int(ids[place])
        return found

    def log_count(self, side: int, words: Two) -> float:
        """The log of what two words count in a language."""
        found = self.tokens(words)
        for word in words:
            if word not in found:
                raise CorpusError(
                    f"{word!r} is not a single token of the corpus's vocabulary, so its pairs are "
                    "not counted. Choose a more frequent word, or prepare a larger vocabulary."
                )
        logs, seen = self.tables[side].find(*(np.array([found[word]]) for word in words))
        if not seen[0]:
            raise CorpusError(
                f"{' '.join(words)!r} never stands within the window in {self.codes[side]}."
            )
        return float(logs[0])

    def log_average(self, side: int) -> float:
        """The log of the mean count of all pairs that a language has."""
        return float(np.log(np.exp(self.tables[side].logs.astype(np.float64)).mean()))

    def observe(self, compounds: Sequence[Compound]) -> Observed:
        """Compounds that were given."""
        tokens = self.tokens(word for compound in compounds for two in compound for word in two)
        whole = [c for c in compounds if all(word in tokens for two in c for word in two)]
        left_out = Counter({"not of single tokens": len(compounds) - len(whole)})
        pairs = np.array(
            [[tokens[word] for two in compound for word in two] for compound in whole], np.int64
        ).reshape(-1, 4)
        return self._observed(np.unique(pairs, axis=0), left_out)

    def observe_lexicon(self, entries: Sequence[Two]) -> Observed:
        """All compounds of two entries whose first sides stand near each other."""
        tokens = self.tokens(word for entry in entries for word in entry)
        whole = [entry for entry in entries if all(word in tokens for word in entry)]
        left_out = Counter({"entries not of single tokens": len(entries) - len(whole)})
        translations: dict[int, list[int]] = {}
        for word, translation in whole:
            translations.setdefault(tokens[word], []).append(tokens[translation])
        table = self.tables[0]
        known = np.zeros(table.size, np.bool_)
        known[list(translations)] = True
        near = table.keys[known[table.keys // table.size] & known[table.keys % table.size]]
        ones, others = np.divmod(near, table.size)
        pairs = [
            (one, other, first, second)
            for one, other in zip(ones.tolist(), others.tolist(), strict=True)
            for first in translations[one]
            for second in translations[other]
        ]
        return self._observed(np.array(pairs, np.int64).reshape(-1, 4), left_out)

    def _observed(self, pairs: LongArray, left_out: Counter[str]) -> Observed:
        first, there = self.tables[0].find(pairs[:, 0], pairs[:, 1])
        second, too = self.tables[1].find(pairs[:, 2], pairs[:, 3])
        both = there & too
        often = both & (first >= 0) & (second >= 0)
        left_out["never seen in one language"] = int((~both).sum())
        left_out["counts below 1"] = int((both & ~often).sum())
        return Observed(
            first=first[often],
            second=second[often],
            left_out={reason: number for reason, number in left_out.items() if number},
        )


def by_bins(observed: Observed, bins: int = 12) -> list[Bin]:
    """The compounds in bins of equal width by the sum of their logs; without nearly empty bins.

    Raises:
        CorpusError: there are too few compounds.
    """
    sums = observed.first + observed.second
    if len(sums) < _LEAST:
        reasons = ", ".join(f"{number:,} {why}" for why, number in observed.left_out.items())
        raise CorpusError(
            f"only {len(sums)} compounds are left to draw ({reasons or 'none were given'}). Give "
            "more compounds, or a corpus with more text."
        )
    differences = np.abs(observed.first - observed.second)
    edges = np.linspace(sums.min(), sums.max(), bins + 1)
    places = np.clip(np.searchsorted(edges, sums, "right") - 1, 0, bins - 1)
    found = []
    for place in range(bins):
        here = places == place
        if here.sum() < _LEAST:
            continue
        # a sum of 0 has a difference of 0
        ratios = differences[here] / np.maximum(sums[here], np.finfo(np.float64).tiny)
        found.append(
            Bin(
                low=float(edges[place]),
                high=float(edges[place + 1]),
                number=int(here.sum()),
                difference=float(differences[here].mean()),
                difference_half=_half(differences[here]),
                ratio=float(ratios.mean()),
                ratio_half=_half(ratios),
            )
        )
    return found


def _half(values: FloatArray) -> float:
    return float(_NORMAL * values.std(ddof=1) / np.sqrt(len(values)))


def frequencies(
    corpus: Corpus, language: str, *, points: int = 200
) -> tuple[LongArray, FloatArray]:
    """Ranks of tokens and the share of a language's text that each has (Figure 3), thinned out."""
    counts = np.zeros(corpus.vocabulary.size, np.int64)
    for source in corpus.sources("text"):
        if language in corpus.manifest.sources[source].languages:
            for shard in corpus.table(source, language, "train").shards:
                counts += np.bincount(shard.values("ids"), minlength=len(counts))
    counts[corpus.vocabulary.is_special] = 0
    shares = np.sort(counts[counts > 0])[::-1] / max(int(counts.sum()), 1)
    ranks = np.unique(np.geomspace(1, len(shares), points).round().astype(np.int64))
    return ranks, shares[ranks - 1]
