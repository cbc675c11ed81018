"""Readers of raw files, one file per format. To add one, write its class and list it here."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, get_type_hints

from isoglot.corpus.readers.base import Kind, Reader, Record, Skipped
from isoglot.corpus.readers.comparable import ComparableReader
from isoglot.corpus.readers.conllu import ConlluReader
from isoglot.corpus.readers.datasets import DatasetsReader
from isoglot.corpus.readers.jsonl import JsonLinesReader
from isoglot.corpus.readers.keyed import KeyedReader
from isoglot.corpus.readers.lines import LinesReader
from isoglot.corpus.readers.moses import MosesReader
from isoglot.corpus.readers.pairs import PairsReader
from isoglot.corpus.readers.parquet import ParquetReader
from isoglot.corpus.readers.tmx import TmxReader
from isoglot.corpus.readers.xliff import XliffReader
from isoglot.errors import RecipeError, nearest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

READERS: tuple[type[Reader], ...] = (
    LinesReader,
    JsonLinesReader,
    ParquetReader,
    DatasetsReader,
    ConlluReader,
    MosesReader,
    PairsReader,
    KeyedReader,
    TmxReader,
    XliffReader,
    ComparableReader,
)
"""Every reader; settings choose one by its `name`."""

Option = str | int | bool

_KINDS: Mapping[type, str] = {str: "text", int: "a whole number", bool: "true or false"}


def reader_for(
    format_: str, options: Mapping[str, Option], languages: Sequence[str], where: str
) -> Reader:
    """The reader of a source's format, with its options, for one language or a pair.

    Raises:
        RecipeError: there is no such format or option, or it does not hold text (or pairs); the
            message begins with `where`, the place of the source in the settings.
    """
    kind: Kind = "pairs" if len(languages) == 2 else "text"
    known = {reader.name: reader for reader in READERS}
    if format_ not in known:
        raise RecipeError(f"{where}.format: {format_!r} is no format; {nearest(format_, known)}")
    chosen = known[format_]
    if kind not in chosen.kinds:
        fitting = [name for name, reader in known.items() if kind in reader.kinds]
        raise RecipeError(
            f"{where}.format: {format_!r} does not hold {kind}; "
            f"for kind {kind!r} use {' or '.join(map(repr, fitting))}."
        )
    _check_options(chosen, options, where)
    try:
        return chosen(languages=tuple(languages), **dict[str, Any](options))
    except RecipeError as error:
        raise RecipeError(f"{where}.options: {error}.") from None


def options_of(reader: type[Reader]) -> dict[str, type]:
    """The options of a format, and the kind of value each takes."""
    hints = get_type_hints(reader)
    return {field.name: hints[field.name] for field in fields(reader) if field.name != "languages"}


def _check_options(reader: type[Reader], options: Mapping[str, Option], where: str) -> None:
    known = options_of(reader)
    for name, value in options.items():
        if name not in known:
            hint = nearest(name, known) if known else "it has none."
            raise RecipeError(f"{where}.options.{name}: {reader.name!r} has no such option; {hint}")
        if type(value) is not known[name]:
            raise RecipeError(
                f"{where}.options.{name}: expected {_KINDS[known[name]]}, got {value!r}."
            )


__all__ = ["READERS", "Kind", "Option", "Reader", "Record", "Skipped", "options_of", "reader_for"]
