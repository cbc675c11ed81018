"""Decontamination: texts of evaluation files are indexed, and dropped from the corpus.

Texts are compared by hashes of their letters and digits, without case, so that spacing, punctuation
and tokenization do not hide a test sentence. Memory holds only the index (16 bytes a text, mapped),
never the corpus. Evaluation files may have any format:

    .json, .jsonl                     every string in it
    .parquet, .arrow, .feather        every string in it
    .csv                              lines, and every cell
    .tmx, .xliff, .sgm, .xml, .html   text between tags, and whole segments
    token and tag columns (CoNLL)     the tokens of each sentence together
    anything else                     lines, and the columns of lines with tabs or ` ||| `

A text of several sentences is also given sentence by sentence. Too much is given rather than too
little: labels and headings cost nothing.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from hashlib import blake2b
from html import unescape
from itertools import chain, groupby, islice
from json import JSONDecodeError
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from isoglot import json_text
from isoglot.atomic import save_array, write_errors
from isoglot.corpus.reading.csv_table import look_at, rows_of
from isoglot.corpus.reading.files import read_lines
from isoglot.corpus.reading.parquet import read_batches
from isoglot.corpus.reading.reader import Skipped
from isoglot.errors import CorpusError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from isoglot.types import BoolArray

_NO_LETTERS = re.compile(r"[\W_]+")
_ASCII_NO_LETTERS = bytes(byte for byte in range(128) if not chr(byte).isalnum())


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationFileTask:
    """One evaluation file."""

    file: Path
    sha256: str
    min_bytes: int
    """Texts with fewer bytes of letters and digits are left out."""
    output: Path


def letters_of(text: str) -> bytes:
    """The lower-case letters and digits of a text."""
    if text.isascii():
        return text.lower().encode().translate(None, _ASCII_NO_LETTERS)
    folded = unicodedata.normalize("NFKC", text).casefold().encode("utf-8", "replace")
    # most removed characters are ASCII, and are removed many times faster from bytes
    return _NO_LETTERS.sub("", folded.translate(None, _ASCII_NO_LETTERS).decode()).encode()


def hash_evaluation_file(task: EvaluationFileTask) -> int:
    """Writes the hashes of all texts of an evaluation file; returns their number."""
    found = {
        blake2b(letters, digest_size=8).digest()
        for letters in map(letters_of, evaluation_texts(task.file))
        if len(letters) >= task.min_bytes
    }
    hashes = np.sort(np.frombuffer(b"".join(found), "<u8"))
    with write_errors(task.output):
        task.output.parent.mkdir(parents=True, exist_ok=True)
        save_array(task.output, hashes)
    return len(hashes)


def is_complete(task: EvaluationFileTask, num_texts: int) -> bool:
    """Whether the hashes of a finished file are still there."""
    del num_texts
    return task.output.is_file()


def write_index(tasks: Sequence[EvaluationFileTask], path: Path) -> None:
    """Merges the hashes of all files: two rows, the sorted hashes and the index of their file."""
    hashes = [np.load(task.output) for task in tasks]
    owners = np.repeat(np.arange(len(tasks)), [len(part) for part in hashes])
    joined = np.concatenate([np.empty(0, np.uint64), *hashes])
    order = np.argsort(joined, kind="stable")
    with write_errors(path):
        save_array(path, np.stack([joined[order], owners[order].astype(np.uint64)]))


class ContaminationIndex:
    """The index, mapped."""

    def __init__(self, path: Path | None) -> None:
        """Without a path nothing is found."""
        self._index: npt.NDArray[np.uint64] | None = None
        if path is not None:
            self._index = np.load(path, mmap_mode="r")

    def find(self, records: Iterable[tuple[str, ...]]) -> list[tuple[int, ...]]:
        """For each record, the indices of the files that have one of its texts."""
        records = list(records)
        if self._index is None or not records or not self._index.shape[1]:
            return [()] * len(records)
        letters = (letters_of(text) for texts in records for text in texts)
        digests = b"".join(blake2b(found, digest_size=8).digest() for found in letters)
        asked = np.frombuffer(digests, "<u8")
        hashes = self._index[0]
        lower = np.searchsorted(hashes, asked)
        there: BoolArray = hashes[np.minimum(lower, len(hashes) - 1)] == asked
        found: list[tuple[int, ...]] = [()] * len(records)
        for place in np.flatnonzero(there).tolist():
            upper = np.searchsorted(hashes, asked[place], side="right")
            files = map(int, self._index[1, lower[place] : upper])
            record = place // len(records[0])
            found[record] = tuple(sorted({*found[record], *files}))
        return found


_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？।؟])\s*|\n+")
_COLUMNS = re.compile(r"\t| \|\|\| ")
# WikiAnn writes en:word, and zh-min-nan:word
_LANGUAGE_PREFIX = re.compile(r"(?:[a-z]{2,3}(?:-[a-z]+)*|simple):(?=.)")
_TAG = re.compile(r"<[^>]*>")
_SEGMENT = re.compile(r"<(seg|source|target)\b[^>]*>(.*?)</\1\s*>", re.DOTALL | re.IGNORECASE)
_MARKUP = {".tmx", ".xlf", ".xliff", ".sgm", ".sgml", ".xml", ".html"}
_TABLES = {".parquet", ".arrow", ".feather"}
_MAX_SENTENCE_LINES = 1000
"""A longer block without a blank line is no sentence in columns."""


def evaluation_texts(path: Path) -> Iterator[str]:
    """All texts of one evaluation file, compressed or not."""
    plain = [suffix for suffix in path.suffixes if suffix not in {".gz", ".bz2", ".xz", ".zst"}]
    kind = plain[-1] if plain else ""
    lines = _read(path)
    if kind in _TABLES:
        found = _table(path)
    elif kind in _MARKUP:
        found = _between_tags("\n".join(lines))
    elif kind == ".json":
        found = _strings(_parsed("\n".join(lines), path, 1))
    elif kind in {".jsonl", ".ndjson"}:
        found = (
            text
            for number, line in enumerate(lines, 1)
            if line.strip()
            for text in _strings(_parsed(line, path, number))
        )
    elif kind == ".csv":
        found = chain(_lines(lines), _cells(path))
    else:
        found = _lines(lines)
    for text in found:
        yield text
        sentences = _SENTENCE_END.split(text)
        if len(sentences) > 1:
            yield from sentences


def _read(path: Path) -> Iterator[str]:
    """The lines of a file; raises at one that cannot be read, since it could not be excluded."""
    for line in read_lines(path):
        if isinstance(line, Skipped):
            fault = "is not UTF-8" if line.reason == "encoding" else "is too long"
            raise CorpusError(
                f"{path}: line {line.line} {fault}, so it cannot be searched for. Save the "
                "file as UTF-8 text or remove it from `exclude`."
            )
        yield line


def _cells(path: Path) -> Iterator[str]:
    """The cells of all rows of a CSV file."""
    numbered = enumerate(read_lines(path), start=1)
    for number, cells in rows_of(path, numbered, look_at(path).delimiter):
        if isinstance(cells, list):
            yield from cells
        elif cells.reason == "quotes":
            raise CorpusError(
                f"{path}: line {number} has text after a closing quote, so its cells cannot be "
                "searched for. Double the quotes inside of its cells, or remove the file from "
                "`exclude`."
            )


def _table(path: Path) -> Iterator[str]:
    try:
        for batch in read_batches(path):
            yield from _strings(batch.to_pylist())
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = str(error).split("\n")[0]
        raise CorpusError(
            f"{path}: cannot be read as Parquet or Arrow ({reason}). Download or make the file "
            "again, or remove it from `exclude`."
        ) from error


def _between_tags(content: str) -> Iterator[str]:
    yield from map(unescape, _TAG.split(content))
    for segment in _SEGMENT.finditer(content):
        yield unescape(_TAG.sub("", segment[2])).replace("\n", " ")


def _parsed(text: str, path: Path, line: int) -> Any:
    try:
        return json_text.parse(text)
    except JSONDecodeError as error:
        raise CorpusError(
            f"{path}: line {line + error.lineno - 1} is not JSON ({error.msg}). Correct the file "
            "or remove it from `exclude`."
        ) from error


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _strings(inner)


def _lines(lines: Iterator[str]) -> Iterator[str]:
    """The texts of each block of lines between blank ones, however long."""
    for is_blank, block in groupby(lines, key=lambda line: not line.strip()):
        if not is_blank:
            start = list(islice(block, _MAX_SENTENCE_LINES + 1))
            sentence = _sentence(start)
            if sentence is not None:
                yield sentence
                continue
            for line in chain(start, block):
                columns = _COLUMNS.split(line)
                yield line
                if len(columns) > 1:
                    yield from columns


def _sentence(block: list[str]) -> str | None:
    """The tokens of a sentence in columns, together; None if the block is none."""
    rows = [
        # columns by tabs, or a word and its tag with a space between
        line.split("\t") if "\t" in line else line.split(" ", 1)
        for line in block
        if not line.startswith("#")
    ]
    if not 1 < len(rows) <= _MAX_SENTENCE_LINES or {len(row) for row in rows} != {len(rows[0])}:
        return None
    if len(rows[0]) < 2 or any(" " in cell for row in rows for cell in row):
        return None
    # the first column may number the tokens
    column = 1 if all(row[0].isdigit() for row in rows) else 0
    return " ".join(_LANGUAGE_PREFIX.sub("", row[column]) for row in rows)
