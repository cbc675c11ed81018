"""Every text of an evaluation file, whatever its format, as a corpus might hold it.

    .json, .jsonl                     every string in it
    .parquet, .arrow, .feather        every string in it
    .tmx, .xliff, .sgm, .xml, .html   what stands between tags, and whole segments
    token and tag columns (CoNLL)     the tokens of each sentence together
    anything else                     lines, and the columns of lines with tabs or ` ||| `

A text of several sentences is also given sentence by sentence, since a corpus holds sentences. Too
much is given rather than too little: a label or a heading costs nothing.
"""

from __future__ import annotations

import json
import re
from html import unescape
from itertools import chain, groupby, islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from isoglot.corpus.readers import Skipped
from isoglot.corpus.readers.files import read_lines
from isoglot.corpus.readers.parquet import read_batches
from isoglot.errors import CorpusError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？।؟])\s*|\n+")
_COLUMNS = re.compile(r"\t| \|\|\| ")
_LANGUAGE_PREFIX = re.compile(r"[a-z]{2,3}:(?=.)")  # WikiAnn writes en:word
_TAG = re.compile(r"<[^>]*>")
_SEGMENT = re.compile(r"<(seg|source|target)\b[^>]*>(.*?)</\1\s*>", re.DOTALL | re.IGNORECASE)
_MARKUP = {".tmx", ".xlf", ".xliff", ".sgm", ".sgml", ".xml", ".html"}
_TABLES = {".parquet", ".arrow", ".feather"}
_LONGEST_SENTENCE = 1000
"""Lines after which a block without a blank line is no sentence in columns."""


def texts_of(path: Path) -> Iterator[str]:
    """All texts of one evaluation file, packed or not."""
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
    else:
        found = _lines(lines)
    for text in found:
        yield text
        sentences = _SENTENCE_END.split(text)
        if len(sentences) > 1:
            yield from sentences


def _read(path: Path) -> Iterator[str]:
    """The lines of a file. One that cannot be read could not be kept out of training either."""
    for line in read_lines(path):
        if isinstance(line, Skipped):
            fault = "is not UTF-8" if line.reason == "encoding" else "is too long"
            raise CorpusError(
                f"{path}: line {line.line} {fault}, so that it cannot be looked for. Save the "
                "file as UTF-8 text or take it out of `exclude`."
            )
        yield line


def _table(path: Path) -> Iterator[str]:
    try:
        for batch in read_batches(path):
            yield from _strings(batch.to_pylist())
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = str(error).split("\n")[0]
        raise CorpusError(
            f"{path}: cannot be read as Parquet or Arrow ({reason}). Fetch or make the file "
            "again, or take it out of `exclude`."
        ) from error


def _between_tags(content: str) -> Iterator[str]:
    yield from map(unescape, _TAG.split(content))
    for segment in _SEGMENT.finditer(content):
        yield unescape(_TAG.sub("", segment[2])).replace("\n", " ")


def _parsed(text: str, path: Path, line: int) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise CorpusError(
            f"{path}: line {line + error.lineno - 1} is not JSON ({error.msg}). Mend the file or "
            "take it out of `exclude`."
        ) from error


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner)


def _lines(lines: Iterator[str]) -> Iterator[str]:
    """The texts of each block of lines between blank ones, however long."""
    for is_blank, block in groupby(lines, key=lambda line: not line.strip()):
        if not is_blank:
            start = list(islice(block, _LONGEST_SENTENCE + 1))
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
    rows = [_cells(line) for line in block if not line.startswith("#")]
    if not 1 < len(rows) <= _LONGEST_SENTENCE or {len(row) for row in rows} != {len(rows[0])}:
        return None
    if len(rows[0]) < 2 or any(" " in cell for row in rows for cell in row):
        return None
    # the first column may number the tokens
    column = 1 if all(row[0].isdigit() for row in rows) else 0
    return " ".join(_LANGUAGE_PREFIX.sub("", row[column]) for row in rows)


def _cells(line: str) -> list[str]:
    """The columns of a line: by tabs, or a word and its tag with a space between."""
    return line.split("\t") if "\t" in line else line.split(" ", 1)
