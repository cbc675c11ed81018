"""All readers by format. To add a format, write a subclass of `Reader` and list it in `READERS`.

A reader of your own package is named by its import path: `format: package.module:Class`.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from isoglot.corpus.reading.csv_table import CsvReader
from isoglot.corpus.reading.parallel import ComparableReader, KeyedReader, MosesReader, TsvReader
from isoglot.corpus.reading.parquet import DatasetsReader, ParquetReader
from isoglot.corpus.reading.reader import Reader
from isoglot.corpus.reading.text import ConlluReader, JsonLinesReader, LinesReader
from isoglot.corpus.reading.translation_memory import TmxReader, XliffReader
from isoglot.errors import RecipeError, import_class, nearest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from isoglot.corpus.storage.shards import Kind

READERS: tuple[type[Reader], ...] = (
    LinesReader,
    JsonLinesReader,
    ParquetReader,
    DatasetsReader,
    ConlluReader,
    MosesReader,
    TsvReader,
    CsvReader,
    KeyedReader,
    TmxReader,
    XliffReader,
    ComparableReader,
)
"""Settings choose a reader by its `name`."""

Option = str | int | bool

_KINDS: Mapping[type, str] = {str: "text", int: "a whole number", bool: "true or false"}


def reader_for(
    format_: str, options: Mapping[str, Option], languages: Sequence[str], where: str
) -> Reader:
    """The reader of a source's format, with its options, for one language or a pair.

    `where` is the path of the source in the settings, for messages.
    """
    kind: Kind = "pairs" if len(languages) == 2 else "text"
    known = {reader.name: reader for reader in READERS}
    if format_ not in known and ":" not in format_:
        raise RecipeError(
            f"{where}.format: there is no format {format_!r}; {nearest(format_, known)}"
        )
    chosen = known.get(format_) or import_class(format_, Reader, f"{where}.format: {format_!r}")
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


def options_of(reader: type[Reader]) -> dict[str, Any]:
    """The options of a format, and the type of each, or a union of types."""
    hints = get_type_hints(reader)
    return {field.name: hints[field.name] for field in fields(reader) if field.name != "languages"}


def _check_options(reader: type[Reader], options: Mapping[str, Option], where: str) -> None:
    known = options_of(reader)
    for name, value in options.items():
        if name not in known:
            hint = nearest(name, known) if known else "it has none."
            raise RecipeError(f"{where}.options.{name}: {reader.name!r} has no such option; {hint}")
        kinds = get_args(known[name]) or (known[name],)
        if type(value) not in kinds:
            expected = " or ".join(_KINDS[kind] for kind in kinds)
            raise RecipeError(f"{where}.options.{name}: expected {expected}, got {value!r}.")
