"""How a user's file is read: its format and options, found from its name and its first lines.

    path --name, first bytes--> format --first lines or columns--> options, split

A file that cannot be read as it is, raises one sentence that names the file and the remedy. Tables
whose columns have names are looked at in `table_formats`. The readers themselves are those of
`isoglot prepare` (`isoglot.corpus.reading.registry`).
"""

from __future__ import annotations

from itertools import islice
from statistics import mode
from typing import TYPE_CHECKING, Any

from isoglot.adaptation.columns import choose_columns
from isoglot.adaptation.table_formats import (
    MAX_BAD_SHARE,
    SAMPLED,
    FileFormat,
    csv_format,
    fields_format,
    is_csv,
    parquet_format,
    split_of,
)
from isoglot.corpus.cleaning.column_order import are_swapped
from isoglot.corpus.reading.files import read_blocks, read_objects, require_file
from isoglot.errors import CorpusError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

COMPRESSED = frozenset({".gz", ".bz2", ".xz", ".zst"})
"""Suffixes of compressed files that are read."""
TABLES = frozenset({".parquet", ".arrow", ".feather"})
_MEMORIES = {".tmx": "tmx", ".xlf": "xliff", ".xliff": "xliff"}
_HEAD_BYTES = 1 << 18
_OBJECTS_CHARACTERS = 4_000_000
_TRIED = 10
"""Lines without an object after which a file is not JSON lines."""
_MAGIC: dict[bytes, str] = {
    b"PK\x03\x04": "is a ZIP archive. Unpack it and name the files in it",
    b"\x1f\x8b": "is compressed with gzip. Give its name the ending .gz",
    b"BZh": "is compressed with bzip2. Give its name the ending .bz2",
    b"\xfd7zXZ": "is compressed with xz. Give its name the ending .xz",
    b"\x28\xb5\x2f\xfd": "is compressed with zstd. Give its name the ending .zst",
    b"%PDF": "is a PDF. Save its text as a plain UTF-8 file and name that",
    b"\xff\xfe": "is UTF-16 text. Write it as UTF-8: iconv -f UTF-16 -t UTF-8 FILE > NEW",
    b"\xfe\xff": "is UTF-16 text. Write it as UTF-8: iconv -f UTF-16 -t UTF-8 FILE > NEW",
}


def detect_format(path: Path, languages: Sequence[str]) -> FileFormat:
    """How a file of one language, or of a pair of them, is read."""
    require_file(path)
    kind = plain_suffix(path)
    with path.open("rb") as file:
        magic = file.read(6)
    if kind in TABLES or magic.startswith(b"PAR1") or magic == b"ARROW1":
        return parquet_format(path, languages)
    head = next(read_blocks(path), b"")[:_HEAD_BYTES]
    _check_text(path, head, tail_is_cut=len(head) == _HEAD_BYTES)
    text = head.decode("utf-8", "replace").removeprefix("\ufeff")
    if kind in _MEMORIES or "<tmx" in text[:2000] or "<xliff" in text[:2000]:
        return _memory(path, _MEMORIES.get(kind) or _root(text), languages)
    if text.lstrip().startswith("<?xml") or "<mediawiki" in text[:2000]:
        raise CorpusError(
            f"{path}: is XML, and neither TMX nor XLIFF. Extract its text into plain lines; for a "
            "dump of Wikipedia that is isoglot knowledge extract."
        )
    lines = [line for line in text.splitlines() if line.strip()][:SAMPLED]
    if not lines:
        raise CorpusError(f"{path}: holds only blank lines. Name a file with text.")
    if kind == ".csv":
        return csv_format(path, languages)
    if kind == ".conllu" and len(languages) == 1:
        return FileFormat("conllu", {})
    objects = _objects(path) if lines[0].lstrip().startswith("{") else []
    if objects:
        return fields_format(path, objects, languages, "jsonl", "field")
    if kind in {".json", ".jsonl", ".ndjson"}:
        raise CorpusError(
            f"{path}: is not JSON lines: its first line is not a JSON object. Write one object on "
            "each line, for example with jq -c '.[]' FILE."
        )
    if is_csv(path, lines[0], languages):
        return csv_format(path, languages)
    return _columns(path, lines, languages) if len(languages) == 2 else _running(path, lines)


def plain_suffix(path: Path) -> str:
    """The last suffix of a name that is not one of compression, in lower case."""
    plain = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in COMPRESSED]
    return plain[-1] if plain else ""


def _check_text(path: Path, head: bytes, *, tail_is_cut: bool) -> None:
    """Refuse what is empty, binary or not UTF-8."""
    if not head:
        raise CorpusError(f"{path}: is empty. Name a file with text.")
    for start, fault in _MAGIC.items():
        if head.startswith(start):
            raise CorpusError(f"{path}: {fault}.")
    if b"\0" in head:
        raise CorpusError(f"{path}: is a binary file. Name a file of UTF-8 text.")
    lines = head.splitlines()
    lines = lines[:-1] if tail_is_cut and len(lines) > 1 else lines
    bad = sum(not _is_utf8(line) for line in lines)
    # of one long line the end may be cut inside a character
    if bad > MAX_BAD_SHARE * len(lines) and not (tail_is_cut and len(lines) == 1):
        raise CorpusError(
            f"{path}: is not UTF-8 text ({bad:,} of its first {len(lines):,} lines are not). Write "
            "it again as UTF-8, for example iconv -f ISO-8859-1 -t UTF-8 FILE > NEW with its own "
            "encoding after -f."
        )


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _root(text: str) -> str:
    return "tmx" if "<tmx" in text[:2000] else "xliff"


def _memory(path: Path, name: str, languages: Sequence[str]) -> FileFormat:
    if len(languages) == 1:
        raise CorpusError(
            f"{path}: is a translation memory. Give it with --pairs and its two languages, "
            f"--pairs en-{languages[0]}={path.name}."
        )
    return FileFormat(name, {})


def _objects(path: Path) -> list[dict[str, Any]]:
    """The first JSON objects of a file, which may be long documents."""
    found: list[dict[str, Any]] = []
    characters = 0
    for number, one in islice(read_objects(path), SAMPLED):
        if isinstance(one, dict):
            found.append(one)
            characters += len(str(one))
        if characters > _OBJECTS_CHARACTERS or (number >= _TRIED and not found):
            break
    return found


def _running(path: Path, lines: Sequence[str]) -> FileFormat:
    """Plain lines of one language."""
    with_tabs = sum("\t" in line.strip() for line in lines)
    if with_tabs > len(lines) / 2:
        columns = mode(len(line.split("\t")) for line in lines)
        raise CorpusError(
            f"{path}: has {columns} columns with tabs between, and text of one language has one. "
            "Give translations with --pairs, or keep the column of the text: "
            f"cut -f{columns} FILE > NEW."
        )
    return FileFormat("lines", {}, split_of(lines))


def _columns(path: Path, lines: Sequence[str], languages: Sequence[str]) -> FileFormat:
    """Pairs in columns, or the one column of a file that is parallel to another."""
    rows = [line.split("\t") for line in lines]
    number = mode(map(len, rows))
    if number == 1:
        if sum(" ||| " in line for line in lines) > len(lines) / 2:
            raise CorpusError(
                f"{path}: has ` ||| ` between its columns. Write tabs in its place: "
                "sed 's/ ||| /\\t/' FILE > NEW."
            )
        return FileFormat("moses", {}, single=True)
    whole = [row for row in rows if len(row) == number]
    first, second, header = choose_columns(path, whole, languages)
    note = ""
    texts = [[row[column - 1] for row in whole[header:]] for column in (first, second)]
    if not header and are_swapped(texts[0], texts[1], languages):
        first, second = second, first
        note = (
            f"{path}: column {first} looks like {languages[0]} and column {second} like "
            f"{languages[1]}; they are read so."
        )
    options: dict[str, str | int | bool] = {}
    if (first, second) != (1, 2):
        options = {"first": first, "second": second}
    if number > max(first, second):
        options["more"] = True
    if header:
        options["header"] = True
    return FileFormat("tsv", options, note=note)
