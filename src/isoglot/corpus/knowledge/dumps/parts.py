"""Cuts a dump file into parts of about equal size, each of which can be read on its own.

plain text           at any byte
several bz2 streams  where a stream begins (multistream dumps, pbzip2); found by its signature,
                     so the index file that is distributed beside a dump is not needed
one bz2/gzip stream  at its blocks: rapidgzip reads the file once to find them
xz, or a small file  not at all
"""

from __future__ import annotations

import json
import mmap
import re
from typing import TYPE_CHECKING, Any

from isoglot.corpus.disk import PARTIAL, write_atomically, writing
from isoglot.corpus.knowledge.dumps.unpack import Part, damaged, is_packed, open_indexed

if TYPE_CHECKING:
    from pathlib import Path

_STREAM = re.compile(rb"BZh[1-9]\x31\x41\x59\x26\x53\x59")
"""How a bz2 stream with content begins: its header and the signature of its first block."""
_CUTTABLE = (".bz2", ".gz")


def cut(path: Path, size: int, index: Path, *, threads: int) -> list[Part]:
    """The parts of a file, each about `size` bytes on disk. `index` is where one may be kept."""
    total = path.stat().st_size
    if total <= size or (is_packed(path) and path.suffix not in _CUTTABLE):
        return [Part(path=path)]
    if not is_packed(path):
        return _between(path, list(range(size, total, size)))
    if path.suffix == ".bz2" and (streams := _stream_starts(path, size)):
        return _between(path, streams)
    return _between(path, _block_starts(path, size, index, threads), index)


def _between(path: Path, cuts: list[int], index: Path | None = None) -> list[Part]:
    """The parts that a list of cuts makes."""
    starts, ends = [0, *cuts], [*cuts, None]
    return [
        Part(path=path, start=start, end=end, index=index)
        for start, end in zip(starts, ends, strict=True)
    ]


def _stream_starts(path: Path, size: int) -> list[int]:
    """The first beginning of a stream behind each multiple of `size`."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        cuts: list[int] = []
        while (found := _STREAM.search(content, (cuts[-1] if cuts else 0) + size)) is not None:
            cuts.append(found.start())
        return cuts


def _block_starts(path: Path, size: int, index: Path, threads: int) -> list[int]:
    """Unpacked positions of the first block behind each multiple of `size`.

    Finding the blocks takes as long as unpacking the file; the index keeps them for the next time.
    """
    with open_indexed(path, index if index.exists() else None, threads=threads) as stream:
        try:
            blocks: dict[int, int] = stream.block_offsets()
        except (RuntimeError, ValueError) as error:
            reached = max(stream.available_block_offsets(), default=0) // 8
            raise damaged(path, f"behind byte {reached:,}") from error
        if not index.exists():
            _write_index(stream, path, blocks, index)
        whole = stream.size()
    cuts, wanted = [], size
    for bits, position in sorted(blocks.items()):
        if bits // 8 >= wanted and position < whole:
            cuts.append(position)
            wanted = bits // 8 + size
    return cuts


def _write_index(stream: Any, path: Path, blocks: dict[int, int], index: Path) -> None:
    """Keeps what `open_indexed` needs to jump into this file."""
    if path.suffix == ".bz2":
        write_atomically(index, json.dumps(list(blocks.items())).encode())
        return
    with writing(index):
        index.parent.mkdir(parents=True, exist_ok=True)
        partial = index.with_name(index.name + PARTIAL)
        stream.export_index(str(partial))
        partial.replace(index)
