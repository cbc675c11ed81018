"""Statistics of a prepared corpus, for the terminal, the corpus page and the report.

Sizes and drop reasons by source and language, contamination by evaluation files, sampling
probabilities p ∝ N^α with N in sentences (XLM: α = 0.7, XLM-R: 0.3), and decoded rows.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import numpy as np

from isoglot.batching.language_shares import smoothed_shares
from isoglot.corpus.tokenization.vocabulary import TOKENIZER_FILE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from isoglot.corpus import Corpus, Manifest

ALPHAS = (0.7, 0.3)


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusPart:
    """One language (or pair) of one source."""

    source: str
    language: str
    bytes: int
    """Of the text read, in UTF-8."""
    lines: int
    read: int
    train: int
    heldout: int
    tokens: int
    """In the training split."""
    dropped: dict[str, int]
    """Reason -> records, the most frequent first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingShare:
    """The size of a language among the sources of one kind, and its sampling probability."""

    kind: str
    language: str
    sentences: int
    tokens: int
    share: float
    """Of the sentences."""
    token_share: float
    """Of the tokens."""
    drawn: tuple[float, ...]
    """Sampling probability for each alpha."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A row of the corpus, decoded from its token ids."""

    source: str
    language: str
    texts: tuple[str, ...]


def corpus_parts(manifest: Manifest) -> list[CorpusPart]:
    """Every language of every source."""
    return [
        CorpusPart(
            source=name,
            language=language,
            bytes=(counts := source.counts[language]).bytes,
            lines=counts.lines,
            read=counts.read,
            train=splits["train"].rows,
            heldout=splits["heldout"].rows,
            tokens=sum(splits["train"].tokens.values()),
            dropped=sorted_counts(counts.dropped),
        )
        for name, source in manifest.sources.items()
        for language, splits in source.languages.items()
    ]


def contaminated_records(manifest: Manifest) -> dict[str, int]:
    """Folder of evaluation files (a task) -> dropped records, the most first.

    A record that is in two files of a folder counts twice.
    """
    found: Counter[str] = Counter()
    for file, number in manifest.total().contaminated.items():
        found[str(PurePosixPath(file).parent)] += number
    return sorted_counts(found)


def sampling_shares(manifest: Manifest, alphas: Sequence[float]) -> Iterator[SamplingShare]:
    """Each language's share of sentences and tokens, and its sampling probability, by kind."""
    for kind in sorted({source.kind for source in manifest.sources.values()}, reverse=True):
        sentences: Counter[str] = Counter()
        tokens: Counter[str] = Counter()
        for source in manifest.sources.values():
            if source.kind == kind:
                for language, splits in source.languages.items():
                    sentences[language] += splits["train"].rows
                    tokens[language] += sum(splits["train"].tokens.values())
        sizes = {language: number for language, number in sorted(sentences.items()) if number}
        numbers = np.array(list(sizes.values()), dtype=np.float64)
        drawn = [smoothed_shares(numbers, alpha) for alpha in alphas]
        for index, (language, number) in enumerate(sizes.items()):
            yield SamplingShare(
                kind=kind,
                language=language,
                sentences=number,
                tokens=tokens[language],
                share=number / numbers.sum(),
                token_share=tokens[language] / max(tokens.total(), 1),
                drawn=tuple(float(probabilities[index]) for probabilities in drawn),
            )


def sample_rows(corpus: Corpus, number: int) -> Iterator[Sample]:
    """Rows of every (source, language), evenly spaced over its training split, as text."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(corpus.tokenizer_folder / TOKENIZER_FILE))
    for name, source in corpus.manifest.sources.items():
        for language in source.languages:
            table = corpus.table(name, language, "train")
            rows = np.linspace(0, table.num_rows - 1, min(number, table.num_rows)).astype(int)
            for row in rows.tolist():
                texts = (
                    tokenizer.decode(table.ids(column, row).tolist(), skip_special_tokens=False)
                    for column in table.columns
                )
                yield Sample(source=name, language=language, texts=tuple(texts))


def sorted_counts(counts: dict[str, int]) -> dict[str, int]:
    """Counts above 0, the largest first."""
    found = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return {name: number for name, number in found if number}
