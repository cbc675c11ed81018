"""The records of a metrics.jsonl, also of a run that is still writing it.

The file is polled, so it may be on another machine's disk. Its last line may be half written. A
resumed run replaces the file by its beginning and writes on: then everything is read again. The
bytes before the place where reading ended are compared each time, so that a file which was cut and
has grown again is noticed, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isoglot import json_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    Record = dict[str, Any]

_CHUNK = 1 << 20
"""Bytes that are read at a time."""
_COMPARED = 1 << 10
"""Bytes before the place where reading ended that must be the same the next time."""


class RecordReader:
    """Reads the records that a file has got since the last time."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._restart()

    def _restart(self) -> None:
        self._end = 0
        """Place after the last line that was read."""
        self._tail = b""
        """The bytes before it."""
        self.lines = 0
        self.damaged: list[int] = []
        """Numbers of lines, from 1, that are no record."""
        self.rest = b""
        """The line after the last complete one, as far as it is written."""

    def restarted(self) -> bool:
        """Whether the file is another one than was read, or shorter: it is read again then.

        A file that is missing for the moment (it is being replaced) is not another one.
        """
        if not self._end:
            return False
        try:
            with self.file.open("rb") as stream:
                stream.seek(self._end - len(self._tail))
                same = stream.read(len(self._tail)) == self._tail
        except OSError:
            return False
        if not same:
            self._restart()
        return not same

    def read(self) -> Iterator[Record]:
        """The records of the complete lines that are new.

        Raises:
            OSError: the file cannot be read.
        """
        with self.file.open("rb") as stream:
            stream.seek(self._end)
            self.rest = b""
            while chunk := stream.read(_CHUNK):
                *lines, self.rest = (self.rest + chunk).split(b"\n")
                for line in lines:
                    self._end += len(line) + 1
                    self._tail = (self._tail + line + b"\n")[-_COMPARED:]
                    yield from self._parse(line)

    def _parse(self, line: bytes) -> Iterator[Record]:
        self.lines += 1
        record = parse_record(line)
        if record is None:
            self.damaged.append(self.lines)
        else:
            yield record


def parse_record(line: bytes) -> Record | None:
    """The record of a line; none if it has no record with a step."""
    try:
        record = json_text.parse(line)
    except ValueError:
        return None
    if not isinstance(record, dict) or not isinstance(record.get("step"), int):
        return None
    return record
