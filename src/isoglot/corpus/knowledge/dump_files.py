"""Reads dump files in slices: split at seekable places and decompressed on the fly.

`split_file` cuts a file into slices of about equal size that are read independently:

    plain text           at any byte
    several bz2 streams  where a stream starts (multistream dumps, pbzip2), found by its signature,
                         without the index file that is distributed beside a dump
    one bz2/gzip stream  at its blocks: rapidgzip reads the file once to find them
    xz, or a small file  not at all

`read_slice` gives the content, decompressed 1 MiB at a time, so that memory is bounded whatever a
file holds; `dump_records` cuts it into records.
"""

from __future__ import annotations

import bz2
import json
import lzma
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from isoglot.atomic import replace_file, write_bytes, write_errors
from isoglot.corpus.reading.line_ranges import find_starts
from isoglot.errors import CorpusError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BLOCK_BYTES = 1 << 20


class _GzipDecompressor:
    """A gzip stream with the methods of `bz2.BZ2Decompressor`."""

    def __init__(self) -> None:
        self._decompressor = zlib.decompressobj(zlib.MAX_WBITS | 16)
        self.needs_input = True

    def decompress(self, data: bytes, max_length: int) -> bytes:
        content = self._decompressor.unconsumed_tail + data
        found = self._decompressor.decompress(content, max_length)
        # a full output may not be all of it, though no input is left
        self.needs_input = len(found) < max_length and not self._decompressor.unconsumed_tail
        return found

    @property
    def eof(self) -> bool:
        return self._decompressor.eof

    @property
    def unused_data(self) -> bytes:
        return self._decompressor.unused_data


_DECOMPRESSORS: dict[str, Callable[[], Any]] = {
    ".bz2": bz2.BZ2Decompressor,
    ".gz": _GzipDecompressor,
    ".xz": lzma.LZMADecompressor,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSlice:
    """A range of a dump file, in bytes of the file on disk; with an index, decompressed bytes."""

    path: Path
    start: int = 0
    end: int | None = None
    """Exclusive; None: the end of the file."""
    index: Path | None = None
    """rapidgzip's index; `start` and `end` then count decompressed bytes."""


class Chunk(NamedTuple):
    """Decompressed bytes, of the slice or behind its end."""

    data: bytes
    inside: bool


def read_head(path: Path, until: bytes, max_bytes: int) -> bytes:
    """The first decompressed bytes of a file: up to and with a mark, or about `max_bytes`."""
    head = b""
    for chunk in read_slice(FileSlice(path=path)):
        head += chunk.data
        found = head.find(until)
        if found >= 0:
            return head[: found + len(until)]
        if len(head) >= max_bytes:
            break
    return head


def read_slice(part: FileSlice) -> Iterator[Chunk]:
    """The bytes of the slice, then those behind it up to the end of the file."""
    try:
        if part.index is not None:
            with _open_indexed(part.path, part.index) as stream:
                yield from _read_seekable(stream, part)
        elif part.path.suffix in _DECOMPRESSORS:
            yield from _read_streams(part)
        else:
            with part.path.open("rb") as file:
                yield from _read_seekable(file, part)
    except OSError as error:
        raise CorpusError(f"{part.path}: cannot be read ({error.strerror or error}).") from error


def _read_seekable(stream: IO[bytes], part: FileSlice) -> Iterator[Chunk]:
    stream.seek(part.start)
    left = (sys.maxsize if part.end is None else part.end) - part.start
    while left > 0:
        data = _read(stream, min(BLOCK_BYTES, left), part.path)
        if not data:
            return
        left -= len(data)
        yield Chunk(data, inside=True)
    while data := _read(stream, BLOCK_BYTES // 4, part.path):
        yield Chunk(data, inside=False)


def _read(stream: IO[bytes], size: int, path: Path) -> bytes:
    try:
        return stream.read(size)
    except (RuntimeError, ValueError) as error:  # rapidgzip's errors
        raise _damaged(path, f"near byte {stream.tell():,} of its decompressed content") from error


def _read_streams(part: FileSlice) -> Iterator[Chunk]:
    """The streams of a compressed file, one after the other."""
    make = _DECOMPRESSORS[part.path.suffix]
    with part.path.open("rb") as file:
        file.seek(part.start)
        began, compressed = part.start, file.read(BLOCK_BYTES // 4)
        while compressed:
            inside = part.end is None or began < part.end
            decompressor = make()
            while not decompressor.eof:
                if not compressed and decompressor.needs_input:
                    raise _damaged(part.path, f"it ends at byte {began:,}, inside a stream")
                try:
                    data = decompressor.decompress(compressed, BLOCK_BYTES)
                except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
                    raise _damaged(
                        part.path, f"in the stream that begins at byte {began:,}: {error}"
                    ) from error
                if data:
                    yield Chunk(data, inside)
                if decompressor.eof:
                    compressed = decompressor.unused_data
                else:
                    more = decompressor.needs_input
                    compressed = file.read(BLOCK_BYTES // 4) if more else b""
            began = file.tell() - len(compressed)
            compressed = compressed or file.read(BLOCK_BYTES // 4)


def split_file(path: Path, size: int, index: Path, *, threads: int) -> list[FileSlice]:
    """Slices of about `size` bytes on disk; `index` is where a block index is written."""
    total = path.stat().st_size
    if total <= size or path.suffix == ".xz":
        return [FileSlice(path=path)]
    if path.suffix == ".bz2" and (starts := find_starts(path, size)):
        return _slices(path, list(starts))
    if path.suffix in _DECOMPRESSORS:
        return _slices(path, _block_starts(path, size, index, threads), index)
    return _slices(path, list(range(size, total, size)))


def _slices(path: Path, cuts: list[int], index: Path | None = None) -> list[FileSlice]:
    starts, ends = [0, *cuts], [*cuts, None]
    return [
        FileSlice(path=path, start=start, end=end, index=index)
        for start, end in zip(starts, ends, strict=True)
    ]


def _block_starts(path: Path, size: int, index: Path, threads: int) -> list[int]:
    """Decompressed positions of the first block behind each multiple of `size`.

    Finding the blocks takes as long as decompressing the file; the index keeps them.
    """
    if not index.exists():
        with _open_indexed(path, None, threads=threads) as stream:
            try:
                found = stream.block_offsets()
            except (RuntimeError, ValueError) as error:
                reached = max(stream.available_block_offsets(), default=0) // 8
                raise _damaged(path, f"behind byte {reached:,}") from error
            if path.suffix == ".bz2":
                write_bytes(index, json.dumps(list(found.items())).encode())
            else:
                with write_errors(index), replace_file(index) as partial:
                    stream.export_index(str(partial))
    # from the index in every run: it may have fewer blocks than the first pass finds
    with _open_indexed(path, index) as stream:
        blocks: dict[int, int] = stream.block_offsets()
        decompressed_size = stream.size()
    cuts, next_cut = [], size
    for bits, position in sorted(blocks.items()):
        if bits // 8 >= next_cut and position < decompressed_size:
            cuts.append(position)
            next_cut = bits // 8 + size
    return cuts


def _open_indexed(path: Path, index: Path | None, *, threads: int = 1) -> Any:
    """A compressed file as a seekable stream of rapidgzip."""
    try:
        import rapidgzip
    except ImportError as error:
        raise CorpusError(
            f"{path}: is one large stream, and reading it in parts needs one more package. "
            "Run: pip install 'isoglot[knowledge]'"
        ) from error
    if path.suffix == ".bz2":
        stream = rapidgzip.IndexedBzip2File(str(path), parallelization=threads)
        if index is not None:
            stream.set_block_offsets(dict(json.loads(index.read_text(encoding="utf-8"))))
    else:
        stream = rapidgzip.RapidgzipFile(str(path), parallelization=threads)
        if index is not None:
            stream.import_index(str(index))
    return stream


def _damaged(path: Path, place: str) -> CorpusError:
    return CorpusError(
        f"{path}: is damaged or was cut short ({place}). Fetch the file again, then give the "
        "command again: what is finished is kept."
    )
