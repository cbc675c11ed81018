"""The lines of a raw file, plain or packed, as text.

Lines end with LF, CR LF or CR; a byte order mark at the start is removed. A line that is not UTF-8
comes back as `Skipped("encoding")`; one of more than 64 MiB, which is no text, as
`Skipped("endless")`, so that memory stays bounded.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from isoglot.corpus.readers.base import MOST_SHOWN, Skipped
from isoglot.corpus.readers.packed import read_blocks, require

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

__all__ = ["LONGEST", "read_lines", "require"]

LONGEST = 64 << 20
"""Bytes of the longest line that is read."""

_LINE_END = re.compile(rb"\r\n|\n|\r")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def read_lines(path: Path) -> Iterator[str | Skipped]:
    """The lines of one file, without their ends."""
    number = 0
    for data, endless in _whole_lines(read_blocks(path)):
        lines: Iterable[str | bytes] = [data] if endless else _lines(data, first=number == 0)
        for line in lines:
            number += 1
            if isinstance(line, str):
                yield line
            else:
                shown = line[: 4 * MOST_SHOWN].decode("utf-8", errors="replace")
                yield Skipped("endless" if endless else "encoding", shown, number)


def _whole_lines(blocks: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
    """The same bytes in parts that end where a line does; of an endless line, its beginning."""
    pending: list[bytes] = []
    size = 0
    held = b""
    for more in blocks:
        block = held + more
        held = b"\r" if block.endswith(b"\r") else b""  # it may be half of a CR LF
        block = block.removesuffix(held)
        end = max(block.rfind(b"\n"), block.rfind(b"\r")) + 1
        if not end:
            if size <= LONGEST:
                pending.append(block)
            size += len(block)
            continue
        start = 0
        if size > LONGEST:
            yield pending[0], True
            pending, start = [], _first_end(block)
        yield b"".join([*pending, block[start:end]]), False
        pending, size = [block[end:]], len(block) - end
    if size > LONGEST:
        yield pending[0], True
    elif size or held:
        yield b"".join([*pending, held]), False


def _first_end(block: bytes) -> int:
    """Where the first line of a block is over."""
    match = _LINE_END.search(block)
    assert match is not None, "it holds an end"
    return match.end()


def _lines(data: bytes, *, first: bool) -> Iterable[str | bytes]:
    """The lines of some bytes; those that are not UTF-8 as they are."""
    if first:
        data = data.removeprefix(_BYTE_ORDER_MARK)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return map(_decoded, data.splitlines())
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def _decoded(line: bytes) -> str | bytes:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        return line
