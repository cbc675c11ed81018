"""Two-word compounds and their translations (*ist die*, *is the*) have similar counts (MLM-GC 3.3).

Reads compounds from one of three sources, and the pair counts of each language with its constant
c_lang; gives the log counts a and b of each compound and its translation, and by bins of a + b the
means of |a - b| and |a - b| / (a + b) with 95 % intervals (Ai and Fang, 2023, Figure 1).

    phrase table    lines `ist die ||| is the ||| scores` (Moses, OPUS), or two columns with a tab
    alignments      two texts, line by line, and their word alignments (Pharaoh format: `0-0 1-2`)
    lexicon         a bilingual dictionary: any two entries whose words occur within the window

The paper uses a phrase table. Words are separated by spaces. A compound needs four words that are
single tokens, since only tokens are counted, and counts of at least 1 in both languages, since
negative logs make the ratio meaningless. Dropped compounds are counted by reason.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from isoglot.corpus.cooccurrence.count import count_pairs
from isoglot.corpus.reading.files import read_lines
from isoglot.corpus.reading.reader import Skipped
from isoglot.corpus.tokenization.hf_tokenizer import HFEncoder
from isoglot.errors import CorpusError, nearest
from isoglot.types import FloatArray, LongArray

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from isoglot.corpus.cooccurrence.pair_table import PairConfig, PairTable
    from isoglot.corpus.engine.runner import Progress
    from isoglot.corpus.storage.corpus import Corpus

_Z_95 = 1.96
"""Standard errors on each side of a 95 % interval."""
_MIN_COMPOUNDS = 5
"""Bins with fewer compounds are left out."""

WordPair = tuple[str, str]


class Compound(NamedTuple):
    """Two words of one language and the two words of their translation."""

    first: WordPair
    second: WordPair


def read_phrase_table(path: Path, *, min_score: float = 0.0) -> list[Compound]:
    """The entries with two words on both sides.

    Args:
        path: a phrase table, plain or compressed.
        min_score: minimum of the third score, p(second | first).
    """
    found: dict[Compound, None] = {}
    for number, line in _lines(path):
        has_scores = "|||" in line
        sides = [part.strip() for part in line.split("|||" if has_scores else "\t")]
        if len(sides) < 2:
            raise CorpusError(
                f"{path}, line {number}: has no two sides. Separate them with ||| or with a tab."
            )
        first, second = sides[0].split(), sides[1].split()
        if len(first) != 2 or len(second) != 2:
            continue
        if min_score > 0 and (not has_scores or _third_score(path, number, sides) < min_score):
            continue
        found[Compound((first[0], first[1]), (second[0], second[1]))] = None
    return list(found)


def _third_score(path: Path, number: int, sides: list[str]) -> float:
    try:
        return float(sides[2].split()[2])
    except (IndexError, ValueError):
        raise CorpusError(
            f"{path}, line {number}: has no third score. Leave out the minimum score."
        ) from None


def read_alignments(
    first: Path, second: Path, alignments: Path, *, min_count: int = 1
) -> list[Compound]:
    """Neighboring words, each aligned with one word only, to neighboring words.

    Args:
        first: sentences of one language, one a line, words separated by spaces.
        second: their translations, line by line.
        alignments: a line of links `i-j`: word i of the first and j of the second, from 0.
        min_count: minimum of occurrences of a compound.
    """
    found: Counter[Compound] = Counter()
    texts = zip(_lines(first), _lines(second), _lines(alignments), strict=False)
    for (number, one), (_, other), (_, pairs) in texts:
        words, translations = one.split(), other.split()
        to, back = _links(alignments, number, pairs, len(words), len(translations))
        for i in range(len(words) - 1):
            targets = sorted(to.get(i, set()) | to.get(i + 1, set()))
            one_to_one = all(len(to.get(k, ())) == 1 for k in (i, i + 1))
            one_to_one &= all(len(back[j]) == 1 for j in targets)
            if one_to_one and len(targets) == 2 and targets[1] - targets[0] == 1:
                translation = (translations[targets[0]], translations[targets[1]])
                found[Compound((words[i], words[i + 1]), translation)] += 1
    return [compound for compound, number in found.items() if number >= min_count]


def _links(
    path: Path, number: int, line: str, num_first: int, num_second: int
) -> tuple[dict[int, set[int]], dict[int, set[int]]]:
    """The aligned words of each word, in both directions."""
    to: dict[int, set[int]] = {}
    back: dict[int, set[int]] = {}
    for pair in line.split():
        i, _, j = pair.partition("-")
        if not (i.isdecimal() and j.isdecimal() and int(i) < num_first and int(j) < num_second):
            raise CorpusError(
                f"{path}, line {number}: {pair!r} links no two words of that line. Links are i-j, "
                "numbers of words from 0."
            )
        to.setdefault(int(i), set()).add(int(j))
        back.setdefault(int(j), set()).add(int(i))
    return to, back


def read_lexicon(path: Path) -> list[WordPair]:
    """The entries of a dictionary: a word and its translation, separated by a tab or a space."""
    found: dict[WordPair, None] = {}
    for number, line in _lines(path):
        words = line.split("\t") if "\t" in line else line.split()
        if len(words) != 2:
            raise CorpusError(f"{path}, line {number}: is not a word and its translation.")
        found[words[0].strip(), words[1].strip()] = None
    return list(found)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(read_lines(path), start=1):
        if isinstance(line, Skipped):
            raise CorpusError(f"{path}, line {number}: is not UTF-8. Convert the file.")
        yield number, line


@dataclass(frozen=True, slots=True, kw_only=True)
class CompoundCounts:
    """The log counts of compounds and of their translations."""

    first: FloatArray
    """a: in the first language."""
    second: FloatArray
    """b: in the second."""
    dropped: dict[str, int]
    """Reason -> number of compounds."""

    def shuffled(self) -> CompoundCounts:
        """The control: each compound with the translation of another."""
        order = np.random.default_rng(0).permutation(len(self.second))
        return replace(self, second=self.second[order])


class LanguagePair:
    """Two languages of a corpus, their tokenizer and their pair counts."""

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
        self._encoder = HFEncoder(corpus.tokenizer_folder)
        self._special = corpus.vocabulary.is_special

    def tokens(self, words: Iterable[str]) -> dict[str, int]:
        """Word -> token, for the words that are single tokens."""
        unique = list(dict.fromkeys(words))
        # after a space, as inside a sentence
        ids, lengths = self._encoder.encode([f" {word}" for word in unique])
        found = {}
        for word, place, length in zip(unique, np.cumsum(lengths) - lengths, lengths, strict=True):
            if length == 1 and not self._special[ids[place]]:
                found[word] = int(ids[place])
        return found

    def log_count(self, side: int, words: WordPair) -> float:
        """The log count of two words in the first (0) or second (1) language."""
        found = self.tokens(words)
        for word in words:
            if word not in found:
                raise CorpusError(
                    f"{word!r} is not a single token of the corpus's vocabulary, so its pairs are "
                    "not counted. Choose a more frequent word, or prepare a larger vocabulary."
                )
        logs, seen = self.tables[side].lookup(*(np.array([found[word]]) for word in words))
        if not seen[0]:
            raise CorpusError(
                f"{' '.join(words)!r} never occurs within the window in {self.codes[side]}."
            )
        return float(logs[0])

    def log_average(self, side: int) -> float:
        """The log of the mean count of all pairs of a language."""
        return float(np.log(np.exp(self.tables[side].log_counts.astype(np.float64)).mean()))

    def count_compounds(self, compounds: Sequence[Compound]) -> CompoundCounts:
        """The counts of compounds of a phrase table or of alignments."""
        tokens = self.tokens(word for compound in compounds for pair in compound for word in pair)
        single = [c for c in compounds if all(word in tokens for pair in c for word in pair)]
        dropped = Counter({"not of single tokens": len(compounds) - len(single)})
        ids = np.array(
            [[tokens[word] for pair in compound for word in pair] for compound in single], np.int64
        ).reshape(-1, 4)
        return self._counts(np.unique(ids, axis=0), dropped)

    def count_lexicon(self, entries: Sequence[WordPair]) -> CompoundCounts:
        """The counts of all compounds of two entries whose first sides occur within the window."""
        tokens = self.tokens(word for entry in entries for word in entry)
        single = [entry for entry in entries if all(word in tokens for word in entry)]
        dropped = Counter({"entries not of single tokens": len(entries) - len(single)})
        translations: dict[int, list[int]] = {}
        for word, translation in single:
            translations.setdefault(tokens[word], []).append(tokens[translation])
        keys, size = self.tables[0].keys, self.tables[0].vocabulary_size
        known = np.zeros(size, np.bool_)
        known[list(translations)] = True
        ones, others = np.divmod(keys[known[keys // size] & known[keys % size]], size)
        ids = [
            (one, other, first, second)
            for one, other in zip(ones.tolist(), others.tolist(), strict=True)
            for first in translations[one]
            for second in translations[other]
        ]
        return self._counts(np.array(ids, np.int64).reshape(-1, 4), dropped)

    def _counts(self, ids: LongArray, dropped: Counter[str]) -> CompoundCounts:
        first, in_first = self.tables[0].lookup(ids[:, 0], ids[:, 1])
        second, in_second = self.tables[1].lookup(ids[:, 2], ids[:, 3])
        seen = in_first & in_second
        kept = seen & (first >= 0) & (second >= 0)
        dropped["never seen in one language"] = int((~seen).sum())
        dropped["counts below 1"] = int((seen & ~kept).sum())
        return CompoundCounts(first=first[kept], second=second[kept], dropped=dict(+dropped))


@dataclass(frozen=True, slots=True, kw_only=True)
class CompoundBin:
    """The compounds whose sum a + b lies in a range."""

    low: float
    high: float
    num_compounds: int
    difference: float
    """Mean of |a - b|."""
    difference_half: float
    """Half of its 95 % interval."""
    ratio: float
    """Mean of |a - b| / (a + b)."""
    ratio_half: float


def bin_compounds(counts: CompoundCounts, num_bins: int = 12) -> list[CompoundBin]:
    """Means in bins of equal width of a + b; bins of fewer than five compounds are left out.

    Raises:
        CorpusError: there are too few compounds.
    """
    sums = counts.first + counts.second
    if len(sums) < _MIN_COMPOUNDS:
        reasons = ", ".join(f"{number:,} {why}" for why, number in counts.dropped.items())
        raise CorpusError(
            f"only {len(sums)} compounds are left to plot ({reasons or 'none were given'}). Give "
            "more compounds, or a corpus with more text."
        )
    differences = np.abs(counts.first - counts.second)
    edges = np.linspace(sums.min(), sums.max(), num_bins + 1)
    bins = np.clip(np.searchsorted(edges, sums, "right") - 1, 0, num_bins - 1)
    found = []
    for number in range(num_bins):
        inside = bins == number
        if inside.sum() < _MIN_COMPOUNDS:
            continue
        # a sum of 0 has a difference of 0
        ratios = differences[inside] / np.maximum(sums[inside], np.finfo(np.float64).tiny)
        found.append(
            CompoundBin(
                low=float(edges[number]),
                high=float(edges[number + 1]),
                num_compounds=int(inside.sum()),
                difference=float(differences[inside].mean()),
                difference_half=_half_interval(differences[inside]),
                ratio=float(ratios.mean()),
                ratio_half=_half_interval(ratios),
            )
        )
    return found


def _half_interval(values: FloatArray) -> float:
    return float(_Z_95 * values.std(ddof=1) / np.sqrt(len(values)))


def token_frequencies(
    corpus: Corpus, language: str, *, num_points: int = 200
) -> tuple[LongArray, FloatArray]:
    """Ranks of tokens and each one's share of a language's text, thinned out (MLM-GC, Figure 3)."""
    counts = np.zeros(corpus.vocabulary.size, np.int64)
    for source in corpus.sources("text"):
        if language in corpus.manifest.sources[source].languages:
            for shard in corpus.table(source, language, "train").shards:
                counts += np.bincount(shard.values("ids"), minlength=len(counts))
    counts[corpus.vocabulary.is_special] = 0
    shares = np.sort(counts[counts > 0])[::-1] / max(int(counts.sum()), 1)
    ranks = np.unique(np.geomspace(1, len(shares), num_points).round().astype(np.int64))
    return ranks, shares[ranks - 1]
