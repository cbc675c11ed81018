"""Parquet and Arrow files, and folders of Hugging Face datasets: a text, or a pair, per row.

A row is a document, as in JSON lines, and a column may lie inside others in the same way:
`translation.en`. Files are read batch by batch; their first bytes tell the format.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from typing_extensions import override

from isoglot import json_text
from isoglot.corpus.reading.files import require_file
from isoglot.corpus.reading.reader import Reader, Record, Skipped
from isoglot.errors import CorpusError, nearest
from isoglot.remote.paths import RemotePath

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_BATCH_ROWS = 1024
_STATE = "state.json"
_SUFFIXES = (".parquet", ".arrow", ".feather")
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
        require_file(path)
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
                "Download or make the file again, then run the command again."
            ) from error


def read_batches(path: Path, names: list[str] | None = None) -> Iterator[Any]:
    """The rows of a file, with these columns at least, or with all."""
    import pyarrow.parquet as pq

    with path.open("rb") as file:
        magic = file.read(6)
    if magic.startswith(b"PAR1"):
        # of a remote file, the footer and the pages of the columns to read are asked for
        with pq.ParquetFile(_source(path)) as parquet:
            present = parquet.schema_arrow.names
            outer = {_outer(name, present, path) for name in (present if names is None else names)}
            yield from parquet.iter_batches(_BATCH_ROWS, columns=sorted(outer))
        return
    with _source(path) as source:
        if magic == b"ARROW1":
            reader = pa.ipc.open_file(source)
            yield from map(reader.get_batch, range(reader.num_record_batches))
        else:
            yield from pa.ipc.open_stream(source)
            # the library accepts a stream that was cut between two batches
            if source.tell() != source.size() or not _ends(path):
                raise pa.ArrowInvalid("the stream does not end")


def _source(path: Path) -> Any:
    """The bytes of a file for Arrow: mapped, or those of a remote one as they are asked for."""
    if isinstance(path, RemotePath):
        return pa.PythonFile(path.open("rb"), "r")
    return pa.memory_map(str(path))


def _ends(path: Path) -> bool:
    """Whether the end marker of an Arrow stream is there."""
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
    """A column of texts, as bytes, so that invalid UTF-8 is found row by row."""
    outer = _outer(name, batch.schema.names, path)
    found = batch.column(outer)
    inner = name[len(outer) + 1 :]
    for part in inner.split(".") if inner else ():
        if not pa.types.is_struct(found.type) or found.type.get_field_index(part) < 0:
            raise CorpusError(
                f"{path}: the column {name!r} cannot be read, as there is no {part!r} in a column "
                f"of type {found.type}. Name another column in the source's options."
            )
        found = found.flatten()[found.type.get_field_index(part)]
    if pa.types.is_dictionary(found.type):
        found = found.dictionary_decode()
    if found.type not in (pa.string(), pa.large_string(), pa.string_view()):
        raise CorpusError(
            f"{path}: the column {name!r} holds {found.type} and no text. Name a column of text in "
            "the source's options."
        )
    found = found.cast(pa.large_binary())
    found.validate(full=True)  # damaged offsets would read out of bounds
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetsReader(ParquetReader):
    """One part of a dataset, written by `save_to_disk` or downloaded from the Hub.

    `save_to_disk` writes Arrow shards, listed in a state.json, in a folder for each part (train,
    validation, ...). Folders of the Hub hold Parquet files with the part in their path. Every shard
    can be read on its own.
    """

    part: str = "train"
    """The part of the dataset, where it has several; `*` for all."""

    name = "datasets"

    @override
    def files_of(self, path: Path) -> tuple[Path, ...]:
        if isinstance(path, RemotePath) and path.suffix in _SUFFIXES:
            return (path,)  # the hub has chosen the files of a name
        if not path.is_dir():
            raise CorpusError(
                f"{path}: is not a folder. Format 'datasets' takes the folder of a dataset; for "
                "single files use format 'parquet'."
            )
        parts = _parts(path)
        if parts and self.part not in ("*", *parts):
            hint = nearest(self.part, parts)
            raise CorpusError(f"{path}: has no part {self.part!r} (options.part); {hint}")
        if parts:
            chosen = [path / part for part in parts if self.part in ("*", part)]
            return tuple(shard for folder in chosen for shard in _shards(folder))
        return _shards(path) if (path / _STATE).is_file() else self._loose(path)

    def _loose(self, path: Path) -> tuple[Path, ...]:
        """Parquet and Arrow files anywhere in a folder, of the part to read."""
        present = sorted(file for file in path.rglob("*") if file.suffix in _SUFFIXES)
        if not present:
            raise CorpusError(
                f"{path}: is not a dataset: it holds no {_STATE} and no Parquet or Arrow file. "
                "Name the folder that save_to_disk wrote, or one with such files."
            )
        chosen = [
            file
            for file in present
            if self.part == "*"
            or file.name.startswith(self.part)
            or self.part in file.relative_to(path).parts
        ]
        if not chosen:
            raise CorpusError(
                f"{path}: no file of it is of part {self.part!r} (the first is {present[0].name}). "
                "Set options.part to what the names begin with, or to '*' for all files."
            )
        return tuple(chosen)


def _parts(path: Path) -> list[str]:
    """The parts of a dataset that was saved with several."""
    listing = path / "dataset_dict.json"
    if not listing.is_file():
        return []
    try:
        return [str(part) for part in json_text.parse(listing.read_text("utf-8"))["splits"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CorpusError(f"{listing}: is damaged ({error!r}). Save the dataset again.") from error


def _shards(folder: Path) -> tuple[Path, ...]:
    """The shards of one saved part, in their order."""
    state = folder / _STATE
    try:
        listed = json_text.parse(state.read_text("utf-8"))["_data_files"]
        return tuple(folder / str(entry["filename"]) for entry in listed)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CorpusError(
            f"{state}: is missing or damaged ({error!r}). Save the dataset again."
        ) from error
