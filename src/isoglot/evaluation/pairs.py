"""Translations of your own: TSV files with two columns of sentences, named after their languages.

CSV, JSON lines, Parquet and Arrow have a column (or field) that is called by the code of each
language; of TMX and XLIFF the units in both languages are read.

A column of ids (verses, line numbers) is recognized and not taken for sentences. Pairs with the
same text in both languages are left out, because any model retrieves them; so are repeated pairs.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from isoglot.corpus.reading.files import read_lines
from isoglot.corpus.reading.line_ranges import COMPRESSED
from isoglot.corpus.reading.parallel import TsvReader
from isoglot.corpus.reading.reader import Reader, Record
from isoglot.corpus.reading.registry import reader_for
from isoglot.errors import CorpusError
from isoglot.evaluation.retrieval import is_identical
from isoglot.languages import canonical_pair
from isoglot.tasks.examples import SentencePair
from isoglot.tasks.language_sets import expand_languages, is_selected

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    PairsByName = dict[str, tuple[list[str], list[str]]]
    """Pair of languages (`en-de`) -> sentences of the first and of the second language."""

_TABLES = {
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".arrow": "parquet",
    ".tmx": "tmx",
    ".xlf": "xliff",
    ".xliff": "xliff",
}
"""Ending -> reader of files whose columns, fields or units say their language."""
_INSPECTED = 200
"""Lines from which columns of ids are recognized."""
_ID = re.compile(r"(?=.*\d)[\w.:#/-]+( \d+[:.]\d+)?")
"""GEN.1.1, 17, doc-3:4, Gen 1:1."""
_REASONS = {"encoding": "not in UTF-8", "columns": "with another number of columns"}
"""Drop reasons of the reader that need more words in a sentence."""
_MOST = 0.9
"""Share of the cells of a column of ids that look like one."""


def read_pairs(
    files: Sequence[Path],
    limit: int,
    languages: Collection[str] | None = None,
    note: Callable[[str], None] | None = None,
) -> PairsByName:
    """The first `limit` translation pairs of files, `en-de.tsv` or `en-de=FILE`.

    `languages` select the files, as they select splits; `note` is called with a sentence about
    columns of ids and about lines that are left out.
    """
    codes = None if languages is None else expand_languages(languages)
    pairs: PairsByName = {}
    for name, file in map(pair_and_file, files):
        if name is None:
            raise CorpusError(
                f"{file}: name the file after its two languages, like en-de.tsv, or say them: "
                f"en-de={file}."
            )
        if not is_selected(name, codes):
            continue
        if name in pairs:
            raise CorpusError(
                f"{file}: another file is of {name} too. Score one of them alone, with another "
                "file for --out."
            )
        table = _table(file)
        reader: Reader = (
            reader_for(table, {}, name.split("-"), str(file)) if table else pair_reader(file, note)
        )
        first, second, skipped = _read(file, reader, limit)
        if not first:
            raise CorpusError(
                f"{file} has no pair of sentences "
                f"({f'in {name}' if table else 'two columns, a tab between'})"
                f"{f': {_counts(skipped)}' if skipped else ''}."
            )
        if skipped and note is not None:
            total = f"{skipped.total():,} lines are left out"
            note(f"{file}: {total} ({_counts(skipped)}), {len(first):,} read.")
        pairs[name] = first, second
    if not pairs:
        names = ", ".join(file.name for file in files)
        raise CorpusError(f"none of the files of pairs ({names}) is in the languages asked for.")
    return pairs


def pair_and_file(given: Path) -> tuple[str | None, Path]:
    """The two languages of a file, by its name or by `en-de=` before it, and the file."""
    languages, equals, file = str(given).partition("=")
    if equals and file and not given.exists() and (named := canonical_pair(languages)):
        return named, Path(file)
    return canonical_pair(given.name.split(".")[0]), given


def _table(file: Path) -> str | None:
    """The reader of a file by its ending; None for lines with tabs."""
    endings = [suffix.lower() for suffix in file.suffixes if suffix.lower() not in COMPRESSED]
    return _TABLES.get(endings[-1]) if endings else None


def _counts(skipped: Counter[str]) -> str:
    return ", ".join(f"{number:,} {reason}" for reason, number in skipped.most_common())


def pair_reader(file: Path, note: Callable[[str], None] | None) -> TsvReader:
    """A reader of the columns that have sentences."""
    lines = [line for line in islice(read_lines(file), _INSPECTED) if isinstance(line, str)]
    rows = [line.split("\t") for line in lines if line.strip()]
    width = Counter(map(len, rows)).most_common(1)[0][0] if rows else 0
    columns = list(zip(*(row for row in rows if len(row) == width), strict=True))
    ids = [number for number, cells in enumerate(columns, start=1) if _are_ids(cells)]
    texts = [number for number in range(1, width + 1) if number not in ids]
    if not ids or width < 2:
        return TsvReader()
    example = f"column {ids[0]} has ids ({columns[ids[0] - 1][0]})"
    if len(texts) != 2:
        raise CorpusError(
            f"{file}: {example}, and {len(texts)} of {width} columns have sentences. Give a file "
            "with a column of sentences for each language, such as the lines of two such files "
            "that have the same id, side by side."
        )
    if note is not None:
        note(f"{file}: {example}; sentences are read from columns {texts[0]} and {texts[1]}.")
    return TsvReader(first=texts[0], second=texts[1], more=max(texts) < width)


def _are_ids(cells: Sequence[str]) -> bool:
    """Whether most cells look like an id, and hardly any occurs twice."""
    if len(cells) < 2:
        return False
    matching = sum(_ID.fullmatch(cell.strip()) is not None for cell in cells)
    return matching >= _MOST * len(cells) and len(set(cells)) >= _MOST * len(cells)


def _read(file: Path, reader: Reader, limit: int) -> tuple[list[str], list[str], Counter[str]]:
    skipped = Counter[str]()
    found: dict[tuple[str, str], None] = {}
    for record in reader.read([file]):
        if not isinstance(record, Record):
            skipped[_REASONS.get(record.reason, record.reason)] += record.reason != "header"
            continue
        first, second = record.texts[:2]
        if is_identical(SentencePair(first=first, second=second)):
            skipped["the same text in both languages"] += 1
        elif (first, second) in found:
            skipped["repeated"] += 1
        else:
            found[first, second] = None
        if len(found) == limit:
            break
    return [first for first, _ in found], [second for _, second in found], +skipped
