"""The records of a part of a dump: all that begin in it, whole even where they end in the next.

A record runs from a mark to the next end mark: `<page>` to `</page>`, or a line break to the next.
Of two neighbouring parts exactly one gives a record, wherever the cut between them falls.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from isoglot.corpus.knowledge.dumps.unpack import BLOCK, read_part

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isoglot.corpus.knowledge.dumps.unpack import Part


@dataclass(frozen=True, slots=True)
class Record:
    """One record, with both marks."""

    offset: int
    """Unpacked bytes between the start of the part and the record."""
    data: bytes
    whole: bool
    """Did its end mark come before the end of the file?"""


class Records:
    """Iterates over the records of a part, once; then `rest` is what lay behind the last."""

    def __init__(self, part: Part, begin: bytes, end: bytes, *, preceding: bytes = b"") -> None:
        """`preceding` is put before the first byte of the file, as if it had been there."""
        self._chunks = read_part(part)
        self._begin, self._end = begin, end
        self._buffer = preceding if part.start == 0 else b""
        self._base = -len(self._buffer)
        self._limit: int | None = None
        self.rest = b""

    def __iter__(self) -> Iterator[Record]:
        """The records, in order."""
        begin, end = self._begin, self._end
        at = 0
        while True:
            if at > BLOCK:
                self._buffer, self._base, at = self._buffer[at:], self._base + at, 0
            start = self._find(begin, at, bounded=True)
            if start is None:
                self.rest = self._buffer[at:]
                return
            stop = self._find(end, start + len(begin), bounded=False)
            offset = self._base + start
            if stop is None:
                yield Record(offset, self._buffer[start:], whole=False)
                return
            yield Record(offset, self._buffer[start : stop + len(end)], whole=True)
            # where both marks are the same, the end of one record begins the next
            at = stop if begin == end else stop + len(end)

    def _find(self, mark: bytes, at: int, *, bounded: bool) -> int | None:
        """Where the mark is in the buffer, which grows; if `bounded`, only inside the part."""
        while (found := self._buffer.find(mark, at)) < 0:
            at = max(at, len(self._buffer) - len(mark) + 1)
            if bounded and self._is_behind(at):
                return None
            chunk = next(self._chunks, None)
            if chunk is None:
                return None
            if not chunk.inside and self._limit is None:
                self._limit = self._base + len(self._buffer)
            self._buffer += chunk.data
        return None if bounded and self._is_behind(found) else found

    def _is_behind(self, at: int) -> bool:
        """Does this position of the buffer lie behind the end of the part?"""
        return self._limit is not None and self._base + at >= self._limit
