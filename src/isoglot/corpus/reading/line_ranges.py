"""Ranges of the lines of one file, so that several tasks can read a large file.

    find_starts      bytes of the file at which a task may begin to read
    count_lines      lines of each part between two of them
    LineRange        the lines of one task, with their numbers in the file

A task may begin at any byte of a plain file, and at the start of a stream of a compressed one:
blocks of bgzip, streams of bz2, frames of zstd. The line that holds such a byte, up to its LF,
belongs to the part before it. One gzip, bz2 or xz stream, and one zstd frame, can only be read from
its start.
"""

from __future__ import annotations

import mmap
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from isoglot.remote.paths import RemotePath

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
"""Suffixes of compressed files."""
BZ2_STREAM = re.compile(rb"BZh[1-9]\x31\x41\x59\x26\x53\x59")
"""The start of a bz2 stream with content: its header and the signature of its first block."""
_BGZIP_BLOCK = re.compile(rb"\x1f\x8b\x08\x04.{6}\x06\x00BC\x02\x00(..)", re.DOTALL)
"""The start of a block of bgzip: a gzip header with the size of the block - 1 in a field."""
_ZSTD_FRAME, _ZSTD_SKIPPABLE = 0xFD2FB528, 0x184D2A50
_ZSTD_RLE, _ZSTD_RESERVED = 1, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class LineRange:
    """Consecutive lines of a file, and where to begin to read."""

    start: int = 0
    """Byte on disk: 0, or one of `find_starts`."""
    end: int | None = None
    """The same for what follows; None: the end of the file."""
    lines_before: int = 0
    """Lines of the file before the first that is read from `start`."""
    skip: int = 0
    """Lines to pass over."""
    lines: int | None = None
    """Most lines to give."""

    @property
    def first(self) -> int:
        """The number of its first line in the file, counted from 1."""
        return self.lines_before + self.skip + 1


WHOLE = LineRange()
"""All lines of a file."""


def find_starts(path: Path, size: int) -> tuple[int, ...]:
    """Bytes of a file, at least `size` apart, at which reading may begin; none where only at 0.

    A remote file has none: its lines would have to be counted first, which reads it twice.
    """
    if isinstance(path, RemotePath):
        return ()
    total = path.stat().st_size
    if total <= size:
        return ()
    if path.suffix not in COMPRESSED:
        return tuple(range(size, total, size))
    find: dict[str, Callable[[mmap.mmap, int], Iterator[int]]] = {
        ".bz2": _bz2_streams,
        ".gz": _bgzip_blocks,
        ".zst": _zstd_frames,
    }
    if path.suffix not in find:
        return ()
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return tuple(find[path.suffix](content, size))


def _bz2_streams(content: mmap.mmap, size: int) -> Iterator[int]:
    """The first stream behind each `size` bytes."""
    position = size
    while (found := BZ2_STREAM.search(content, position)) is not None:
        yield found.start()
        position = found.start() + size


def _bgzip_blocks(content: mmap.mmap, size: int) -> Iterator[int]:
    """The first block of bgzip behind each `size` bytes; none in other gzip files."""
    if _BGZIP_BLOCK.match(content) is None:
        return
    position = size
    while (found := _BGZIP_BLOCK.search(content, position)) is not None:
        start = found.start()
        follows = start + int.from_bytes(found[1], "little") + 1
        # compressed bytes may look like a header: then no block follows
        if _BGZIP_BLOCK.match(content, follows) is not None or follows == len(content):
            yield start
            position = start + size
        else:
            position = start + 1


def _zstd_frames(content: mmap.mmap, size: int) -> Iterator[int]:
    """The first frame behind each `size` bytes, found by the sizes of all blocks before it."""
    position, wanted = 0, size
    while position + 8 <= len(content):
        magic = _number(content, position, 4)
        if magic & 0xFFFFFFF0 == _ZSTD_SKIPPABLE:
            position += 8 + _number(content, position + 4, 4)
            continue
        if magic != _ZSTD_FRAME:
            return
        if position >= wanted:
            yield position
            wanted = position + size
        end = _zstd_frame_end(content, position)
        if end is None:
            return
        position = end


def _zstd_frame_end(content: mmap.mmap, start: int) -> int | None:
    """The end of a frame (RFC 8878, section 3.1.1); None where it is cut short or damaged."""
    descriptor = content[start + 4]
    single_segment = bool(descriptor & 0x20)
    sizes = (1 if single_segment else 0, 2, 4, 8)
    header = (not single_segment) + (0, 1, 2, 4)[descriptor & 3] + sizes[descriptor >> 6]
    position = start + 5 + header
    while position + 3 <= len(content):
        block = _number(content, position, 3)
        kind, size = block >> 1 & 3, block >> 3
        if kind == _ZSTD_RESERVED:
            return None
        position += 3 + (1 if kind == _ZSTD_RLE else size)
        if block & 1:
            end = position + (4 if descriptor & 4 else 0)
            return end if end <= len(content) else None
    return None


def _number(content: mmap.mmap, start: int, size: int) -> int:
    return int.from_bytes(content[start : start + size], "little")
