"""What a prepared corpus shows: rows of its tables, for the terminal and for a page alike."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import numpy as np

from isoglot.batching.mixture import smoothed
from isoglot.corpus.tokenizer import TOKENIZER_FILE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from isoglot.corpus import Corpus, Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
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
    """To train on."""
    dropped: dict[str, int]
    """Reason -> records, the most frequent first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """How often a language is drawn among the sources of one kind."""

    kind: str
    language: str
    sentences: int
    share: float
    drawn: tuple[float, ...]
    """For each alpha."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A row of the corpus, decoded from its ids."""

    source: str
    language: str
    texts: tuple[str, ...]


def parts_of(manifest: Manifest) -> list[Part]:
    """Every language of every source."""
    return [
        Part(
            source=name,
            language=language,
            bytes=(counts := source.counts[language]).bytes,
            lines=counts.lines,
            read=counts.read,
            train=splits["train"].rows,
            heldout=splits["heldout"].rows,
            tokens=sum(splits["train"].tokens.values()),
            dropped=by_number(counts.dropped),
        )
        for name, source in manifest.sources.items()
        for language, splits in source.languages.items()
    ]


def contaminated(manifest: Manifest) -> dict[str, int]:
    """Folder of evaluation files (a task) -> records dropped, the most first.

    A record that is in two files of a folder counts twice.
    """
    found: Counter[str] = Counter()
    for file, number in manifest.total().contaminated.items():
        found[str(PurePosixPath(file).parent)] += number
    return by_number(found)


def draws(manifest: Manifest, alphas: Sequence[float]) -> Iterator[Draw]:
    """Each language's share of the sentences, and the probability of drawing it."""
    for kind in sorted({source.kind for source in manifest.sources.values()}, reverse=True):
        counts: Counter[str] = Counter()
        for source in manifest.sources.values():
            if source.kind == kind:
                for language, splits in source.languages.items():
                    counts[language] += splits["train"].rows
        sizes = {language: number for language, number in sorted(counts.items()) if number}
        numbers = np.array(list(sizes.values()), dtype=np.float64)
        drawn = [smoothed(numbers, alpha) for alpha in alphas]
        for place, (language, number) in enumerate(sizes.items()):
            yield Draw(
                kind=kind,
                language=language,
                sentences=number,
                share=number / numbers.sum(),
                drawn=tuple(float(probabilities[place]) for probabilities in drawn),
            )


def samples_of(corpus: Corpus, number: int) -> Iterator[Sample]:
    """Rows of every (source, language), spread evenly over its training split, as text again."""
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


def by_number(counts: dict[str, int]) -> dict[str, int]:
    """The largest first, without those that are none."""
    found = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return {name: number for name, number in found if number}
