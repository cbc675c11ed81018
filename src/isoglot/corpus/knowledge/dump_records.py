"""Cuts the content of a dump's slice into records: pages, or lines.

`Records` gives the records that start in a slice, complete even where they end in the next slice. A
record runs from a start mark to the next end mark: `<page>` to `</page>`, or line break to line
break. Of two neighboring slices exactly one gives a record, wherever the file is cut.

Memory is bounded: a record of more than 32 MiB is given without its content, and a file with 1 GiB
without the next mark is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from isoglot.corpus.knowledge.dump_files import BLOCK_BYTES, read_slice
from isoglot.errors import CorpusError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isoglot.corpus.knowledge.dump_files import FileSlice

MAX_RECORD_BYTES = 32 << 20
"""Bytes of the longest record that is read; Wikidata's longest items have about 4 MiB."""
_MAX_GAP_BYTES = 1 << 30
"""Bytes in which the next mark must come."""


@dataclass(frozen=True, slots=True)
class Record:
    """One record, with both marks."""

    offset: int
    """Decompressed bytes from the start of the slice."""
    data: bytes
    complete: bool
    """Did its end mark come before the end of the file?"""
    too_long: bool = False
    """Is it longer than `MAX_RECORD_BYTES`? `data` is empty then."""


@dataclass(frozen=True, slots=True)
class BrokenRecord:
    """A record that cannot be parsed."""

    offset: int
    """Decompressed bytes from the start of the slice."""
    fault: str
    too_long: bool = False


def too_long_record(record: Record) -> BrokenRecord:
    """A record that is passed over for its length."""
    fault = f"it has more than {MAX_RECORD_BYTES >> 20} MiB and is passed over"
    return BrokenRecord(record.offset, fault, too_long=True)


class Records:
    """Iterates over the records of a slice, once; then `rest` is the content behind the last."""

    def __init__(
        self, part: FileSlice, start_mark: bytes, end_mark: bytes, *, preceding: bytes = b""
    ) -> None:
        """`preceding` is prepended to the content of the file."""
        self._path, self._chunks = part.path, read_slice(part)
        self._start_mark, self._end_mark = start_mark, end_mark
        self._buffer = preceding if part.start == 0 else b""
        self._base = -len(self._buffer)
        self._limit: int | None = None
        self.rest = b""

    def __iter__(self) -> Iterator[Record]:
        """The records, in order."""
        start_mark, end_mark = self._start_mark, self._end_mark
        at = 0
        while True:
            if at > BLOCK_BYTES:
                self._drop(at)
                at = 0
            start = self._find(start_mark, at)
            if start is None:
                self.rest = self._buffer[at:]
                return
            self._drop(start)
            offset = self._base
            stop = self._find_end()
            size = self._base + (len(self._buffer) if stop is None else stop) - offset
            too_long = size > MAX_RECORD_BYTES
            end = None if stop is None else stop + len(end_mark)
            data = b"" if too_long else self._buffer[:end]
            yield Record(offset, data, complete=stop is not None, too_long=too_long)
            if stop is None:
                return
            # where both marks are the same, the end of one record starts the next
            at = stop if start_mark == end_mark else stop + len(end_mark)

    def _find(self, mark: bytes, at: int) -> int | None:
        """The place of a start mark in the growing buffer, inside the slice."""
        begin = self._base
        while (found := self._buffer.find(mark, at)) < 0:
            at = max(at, len(self._buffer) - len(mark) + 1)
            if self._is_behind(at):
                return None
            if at > 2 * BLOCK_BYTES:  # what is behind the last record is kept: the file's end
                dropped = at - BLOCK_BYTES
                self._drop(dropped)
                at -= dropped
            self._check_gap(begin, mark)
            if not self._grow():
                return None
        return None if self._is_behind(found) else found

    def _find_end(self) -> int | None:
        """The place of the end mark of the record at the buffer's start.

        The content of a record that is too long is dropped on the way.
        """
        mark, at, begin = self._end_mark, len(self._start_mark), self._base
        while (found := self._buffer.find(mark, at)) < 0:
            at = max(at, len(self._buffer) - len(mark) + 1)
            if self._base + at - begin > MAX_RECORD_BYTES:
                self._drop(at)
                at = 0
            self._check_gap(begin, mark)
            if not self._grow():
                return None
        return found

    def _drop(self, number: int) -> None:
        self._buffer, self._base = self._buffer[number:], self._base + number

    def _grow(self) -> bool:
        """Appends the next chunk; False at the end of the file."""
        chunk = next(self._chunks, None)
        if chunk is None:
            return False
        if not chunk.inside and self._limit is None:
            self._limit = self._base + len(self._buffer)
        self._buffer += chunk.data
        return True

    def _check_gap(self, begin: int, mark: bytes) -> None:
        """Raises if the mark has not come for too long: a compressed file may never end."""
        if self._base + len(self._buffer) - begin > _MAX_GAP_BYTES:
            name = mark.decode("ascii").replace("\n", "line end")
            raise CorpusError(
                f"{self._path}: has no {name} in {_MAX_GAP_BYTES >> 30} GiB of its decompressed "
                f"content, from byte {begin:,} on. It is not a dump, or is damaged: fetch it again."
            )

    def _is_behind(self, at: int) -> bool:
        """Is this place of the buffer behind the end of the slice?"""
        return self._limit is not None and self._base + at >= self._limit
