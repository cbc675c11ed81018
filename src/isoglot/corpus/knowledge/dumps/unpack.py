"""The bytes of a part of a dump file, unpacked as they are read; nothing is unpacked to disk.

A part says where it starts and ends. What the numbers count depends on the file: bytes of the file
where it is plain or where it is packed in several streams (a part is then whole streams), unpacked
bytes where an index lets rapidgzip jump into the middle of a stream. Reading goes on behind the end
of the part for as long as the caller asks: a record may end in the next part.
"""

from __future__ import annotations

import bz2
import json
import lzma
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from isoglot.errors import CorpusError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BLOCK = 1 << 20
_DECOMPRESSORS: dict[str, Callable[[], Any]] = {
    ".bz2": bz2.BZ2Decompressor,
    ".gz": lambda: zlib.decompressobj(zlib.MAX_WBITS | 16),
    ".xz": lzma.LZMADecompressor,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A stretch of one dump file."""

    path: Path
    start: int = 0
    end: int | None = None
    """Behind its last byte; None where it reaches to the end of the file."""
    index: Path | None = None
    """Where rapidgzip's index lies, if start and end count unpacked bytes."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some unpacked bytes, and whether they lie in the part or behind it."""

    data: bytes
    inside: bool


def read_part(part: Part) -> Iterator[Chunk]:
    """The part's bytes, then those behind it until the end of the file."""
    try:
        if part.index is not None:
            with open_indexed(part.path, part.index) as stream:
                yield from _positioned(stream, part)
        elif part.path.suffix in _DECOMPRESSORS:
            yield from _streams(part)
        else:
            with part.path.open("rb") as file:
                yield from _positioned(file, part)
    except OSError as error:
        raise CorpusError(f"{part.path}: cannot be read ({error.strerror or error}).") from error


def read_head(path: Path, until: bytes, most: int) -> bytes:
    """The first unpacked bytes of a file: to the end of a mark, or about `most` of them."""
    head = b""
    for chunk in read_part(Part(path=path)):
        head += chunk.data
        found = head.find(until)
        if found >= 0:
            return head[: found + len(until)]
        if len(head) >= most:
            break
    return head


def is_packed(path: Path) -> bool:
    """Does the file's suffix say that it is packed?"""
    return path.suffix in _DECOMPRESSORS


def _positioned(stream: IO[bytes], part: Part) -> Iterator[Chunk]:
    """From a stream that can jump to a position."""
    stream.seek(part.start)
    left = None if part.end is None else part.end - part.start
    while left is None or left > 0:
        data = _read(stream, BLOCK if left is None else min(BLOCK, left), part.path)
        if not data:
            return
        left = None if left is None else left - len(data)
        yield Chunk(data, inside=True)
    while data := _read(stream, BLOCK // 4, part.path):
        yield Chunk(data, inside=False)


def _read(stream: IO[bytes], size: int, path: Path) -> bytes:
    try:
        return stream.read(size)
    except (RuntimeError, ValueError) as error:  # what rapidgzip raises
        raise damaged(path, f"near byte {stream.tell():,} of its unpacked content") from error


def _streams(part: Part) -> Iterator[Chunk]:
    """From the streams of a packed file, one after the other."""
    make = _DECOMPRESSORS[part.path.suffix]
    with part.path.open("rb") as file:
        file.seek(part.start)
        began, packed = part.start, file.read(BLOCK // 4)
        while packed:
            inside = part.end is None or began < part.end
            decompressor = make()
            while not decompressor.eof:
                if not packed:
                    raise damaged(part.path, f"it ends at byte {began:,}, inside a stream")
                try:
                    data = decompressor.decompress(packed)
                except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
                    raise damaged(
                        part.path, f"in the stream that begins at byte {began:,}: {error}"
                    ) from error
                if data:
                    yield Chunk(data, inside)
                packed = decompressor.unused_data if decompressor.eof else file.read(BLOCK // 4)
                if not decompressor.eof:
                    continue
            began = file.tell() - len(packed)
            packed = packed or file.read(BLOCK // 4)


def open_indexed(path: Path, index: Path | None, *, threads: int = 1) -> Any:
    """Opens a packed file with rapidgzip; with an index it can jump at once."""
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
            pairs = json.loads(index.read_text(encoding="utf-8"))
            stream.set_block_offsets(dict(pairs))
    else:
        stream = rapidgzip.RapidgzipFile(str(path), parallelization=threads)
        if index is not None:
            stream.import_index(str(index))
    return stream


def damaged(path: Path, place: str) -> CorpusError:
    """The error about a file that cannot be unpacked."""
    return CorpusError(
        f"{path}: is damaged or was cut short ({place}). Fetch the file again, then give the "
        "command again: what is finished is kept."
    )
