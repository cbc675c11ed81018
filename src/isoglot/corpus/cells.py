"""What there is to prepare: the settings of the sources, laid out as cells.

A cell is one language (or pair of languages) of one source: its files, how they are read, and the
folder its shards go to. Everything that can be wrong with the names and paths in the settings is
found here, before any work is done.
"""

from __future__ import annotations

import glob
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from isoglot.corpus.readers import READERS, Kind, Reader
from isoglot.corpus.readers.files import require
from isoglot.errors import CorpusError, RecipeError, nearest

if TYPE_CHECKING:
    from collections.abc import Mapping

_SOURCE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_LANGUAGE_NAME = re.compile(r"[A-Za-z0-9_]+")
_RESERVED = ("tokenizer", "cooccurrence")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceConfig:
    """One source of raw text."""

    kind: Kind = "text"
    """What it holds: `text` (sentences of one language) or `pairs` (translations)."""
    format: str = "lines"
    """How its files are read: `lines` for text; `tsv` or `keyed` for pairs."""
    files: dict[str, tuple[str, ...]]
    """Language (`en`) or pair (`en-de`) -> files or patterns, relative to the settings' folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One language (or pair) of one source."""

    source: str
    language: str
    kind: Kind
    format: str
    files: tuple[Path, ...]

    @property
    def folder(self) -> str:
        """Where its shards go, inside the corpus."""
        return f"{self.source}/{self.language}"

    @property
    def languages(self) -> tuple[str, ...]:
        """The language of each column: one for text, two for pairs."""
        return tuple(self.language.split("-")) if self.kind == "pairs" else (self.language,)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of its shards that hold token ids."""
        return columns_of(self.kind)

    def reader(self) -> Reader:
        """The reader its format names."""
        return next(reader for reader in READERS if reader.name == self.format)()


def columns_of(kind: Kind) -> tuple[str, ...]:
    """The columns that hold token ids in a source of this kind."""
    return ("first", "second") if kind == "pairs" else ("ids",)


def lay_out(sources: Mapping[str, SourceConfig], base: Path) -> list[Cell]:
    """The cells of all sources, in the order of their names."""
    if not sources:
        raise RecipeError("sources: there are none. Name at least one source of text or pairs.")
    cells = []
    for source, config in sorted(sources.items()):
        _check_source(source, config)
        for language, patterns in sorted(config.files.items()):
            where = f"sources.{source}.files.{language}"
            _check_language(language, config.kind, where)
            cell = Cell(
                source=source,
                language=language,
                kind=config.kind,
                format=config.format,
                files=_expand(patterns, base, where),
            )
            fault = cell.reader().check_files(cell.files)
            if fault is not None:
                raise RecipeError(f"{where}: {fault}.")
            cells.append(cell)
    return cells


def _check_source(source: str, config: SourceConfig) -> None:
    where = f"sources.{source}"
    if not _SOURCE_NAME.fullmatch(source) or source in _RESERVED:
        raise RecipeError(
            f"{where}: a source's name becomes a folder; use letters, digits, '-' and '_', "
            f"and not {' or '.join(map(repr, _RESERVED))}."
        )
    if not config.files:
        raise RecipeError(f"{where}.files: there are none. Name the files of each language.")
    formats = {reader.name: reader.kind for reader in READERS}
    if config.format not in formats:
        raise RecipeError(
            f"{where}.format: {config.format!r} is no format; {nearest(config.format, formats)}"
        )
    if formats[config.format] != config.kind:
        fitting = [name for name, kind in formats.items() if kind == config.kind]
        raise RecipeError(
            f"{where}.format: {config.format!r} does not hold {config.kind}; "
            f"for kind {config.kind!r} use {' or '.join(map(repr, fitting))}."
        )


def _check_language(language: str, kind: Kind, where: str) -> None:
    parts = language.split("-") if kind == "pairs" else [language]
    if len(parts) != (2 if kind == "pairs" else 1) or not all(map(_LANGUAGE_NAME.fullmatch, parts)):
        wanted = "two languages joined by '-', as en-de" if kind == "pairs" else "a language, as en"
        raise RecipeError(
            f"{where}: {language!r} does not name {wanted}; inside a language's own name "
            "use '_' (zh_Hant)."
        )


def _expand(patterns: tuple[str, ...], base: Path, where: str) -> tuple[Path, ...]:
    files: list[Path] = []
    for pattern in patterns:
        path = base / Path(pattern).expanduser()
        # a file whose own name holds a bracket is taken as it is
        if path.exists() or not glob.has_magic(pattern):
            require(path)
            files.append(path)
            continue
        matches = sorted(Path(match) for match in glob.glob(str(path), recursive=True))  # noqa: PTH207 (the pattern may be absolute)
        if not matches:
            raise CorpusError(f"{where}: no file matches {path}.")
        files.extend(match for match in matches if match.is_file())
    if not files:
        raise RecipeError(f"{where}: there are no files. Name at least one.")
    return tuple(files)
