"""Parquet and Arrow files: a column of texts, or two columns that are pairs.

A row is a document, as in JSON lines, and a column may lie inside others in the same way:
`translation.en`. Files are read a batch at a time; the content says which of the formats it is.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from typing_extensions import override

from isoglot.corpus.readers.base import Reader, Record, Skipped
from isoglot.corpus.readers.packed import require
from isoglot.errors import CorpusError, nearest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_ROWS = 1024
_END = b"\xff\xff\xff\xff\0\0\0\0"


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetReader(Reader):
    """Texts or pairs. A row without a text is counted under `no field`."""

    column: str = "text"
    """The column that holds the text."""
    first: str = ""
    """For pairs, the column of the first language's text; by default the language's name."""
    second: str = ""
    """For pairs, the column of the second language's text."""

    name = "parquet"
    kinds = ("text", "pairs")

    @override
    def read(self, files: Sequence[Path]) -> Iterator[Record | Skipped]:
        document = 0
        for file, path in enumerate(files):
            for number, texts in enumerate(self._rows(path), start=1):
                if None in texts:
                    yield Skipped("no field", "", number, file)
                    continue
                try:
                    decoded = tuple(text.decode("utf-8") for text in texts if text is not None)
                except UnicodeDecodeError:
                    shown = b"\t".join(filter(None, texts)).decode("utf-8", errors="replace")
                    yield Skipped("encoding", shown, number, file)
                    continue
                yield Record(decoded, 0 if self.pairs else document, number, file)
                document += 1

    def _rows(self, path: Path) -> Iterator[tuple[bytes | None, ...]]:
        """The columns to read, row by row, still as bytes."""
        names = [self.column]
        if self.pairs:
            names = [self.first or self.languages[0], self.second or self.languages[1]]
        require(path)
        done = 0
        try:
            for batch in read_batches(path, names):
                columns = [_texts(batch, name, path).to_pylist() for name in names]
                yield from zip(*columns, strict=True)
                done += batch.num_rows
        except (pa.ArrowException, OSError) as error:
            reason = str(error).split("\n")[0]
            raise CorpusError(
                f"{path}: cannot be read after row {done:,} as Parquet or Arrow ({reason}). "
                "Fetch or make the file again, then give the command again."
            ) from error


def read_batches(path: Path, names: list[str] | None = None) -> Iterator[Any]:
    """The rows of a file, with these columns at least, or with all."""
    import pyarrow.parquet as pq

    with path.open("rb") as file:
        magic = file.read(6)
    if magic.startswith(b"PAR1"):
        with pq.ParquetFile(path) as parquet:
            present = parquet.schema_arrow.names
            outer = {_outer(name, present, path) for name in (present if names is None else names)}
            yield from parquet.iter_batches(_ROWS, columns=sorted(outer))
        return
    with pa.memory_map(str(path)) as source:
        if magic == b"ARROW1":
            reader = pa.ipc.open_file(source)
            yield from map(reader.get_batch, range(reader.num_record_batches))
        else:
            yield from pa.ipc.open_stream(source)
            # a stream that was cut between two batches is as good as any to the library
            if source.tell() != source.size() or not _ends(path):
                raise pa.ArrowInvalid("the stream does not end")


def _ends(path: Path) -> bool:
    """Is the mark that ends an Arrow stream there?"""
    with path.open("rb") as file:
        file.seek(-len(_END), os.SEEK_END)
        return file.read() == _END


def _outer(name: str, present: list[str], path: Path) -> str:
    """The column that is, or holds, the one of this name."""
    for outer in (name, name.split(".", maxsplit=1)[0]):
        if outer in present:
            return outer
    raise CorpusError(f"{path}: has no column {name!r}; {nearest(name, present)}")


def _texts(batch: Any, name: str, path: Path) -> Any:
    """A column of texts, as bytes: what is not UTF-8 is found row by row."""
    outer = _outer(name, batch.schema.names, path)
    found = batch.column(outer)
    inner = name[len(outer) + 1 :]
    for part in inner.split(".") if inner else ():
        if not pa.types.is_struct(found.type) or found.type.get_field_index(part) < 0:
            raise CorpusError(f"{path}: has no {part!r} in {name!r}; it is {found.type}.")
        found = found.flatten()[found.type.get_field_index(part)]
    if pa.types.is_dictionary(found.type):
        found = found.dictionary_decode()
    if not (
        pa.types.is_string(found.type)
        or pa.types.is_large_string(found.type)
        or pa.types.is_string_view(found.type)
    ):
        raise CorpusError(f"{path}: the column {name!r} holds {found.type} and no text.")
    found = found.cast(pa.large_binary())
    found.validate(full=True)  # damaged offsets would lead anywhere
    return found
