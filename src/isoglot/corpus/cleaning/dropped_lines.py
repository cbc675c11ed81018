"""Files of dropped lines with their reasons (`isoglot prepare --dropped`)."""

from __future__ import annotations

import gzip
import json
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from isoglot.atomic import replace_file, write_errors

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from isoglot.corpus.reading.sources import Subset

SUFFIXES = (CLEANING, ENCODING) = (".cleaning.jsonl.gz", ".encoding.jsonl.gz")
"""Suffixes of the files of lines that were dropped in cleaning, and after it."""


class DroppedLines:
    """A file of dropped lines (`isoglot prepare --dropped`), in a `with` block; a path may be None.

        {"source": ..., "language": ..., "file": ..., "line": ..., "reason": ..., "text": [...]}

    Gzipped JSON lines, one file for each task, the same bytes for any number of workers. Lines
    dropped before cleaning are as they were read, the others as cleaned.
    """

    def __init__(self, path: Path | None, subset: Subset) -> None:
        self._path = path
        self._head = {"source": subset.source, "language": subset.language}
        self._file: gzip.GzipFile | None = None
        self._closing = ExitStack()

    def __enter__(self) -> DroppedLines:
        """Removes the lines of an earlier attempt."""
        if self._path is not None:
            with write_errors(self._path):
                self._path.unlink(missing_ok=True)
        return self

    def __exit__(self, *error: Any) -> None:
        if self._path is not None:
            with write_errors(self._path):
                self._closing.__exit__(*error)

    def write(self, file: Path, line: int, reason: str, texts: Sequence[str]) -> None:
        """Adds a line; the file is created with the first."""
        if self._path is None:
            return
        row = {**self._head, "file": str(file), "line": line, "reason": reason, "text": [*texts]}
        with write_errors(self._path):
            if self._file is None:
                partial = self._closing.enter_context(replace_file(self._path))
                stream = self._closing.enter_context(partial.open("wb"))
                # no name and no date: equal lines give equal bytes
                compressed = gzip.GzipFile("", "wb", compresslevel=3, fileobj=stream, mtime=0)
                self._file = self._closing.enter_context(compressed)
            text = json.dumps(row, ensure_ascii=False) + "\n"
            self._file.write(text.encode("utf-8", "replace"))


def remove_others(paths: Iterable[Path]) -> None:
    """Removes from the folders of these files those of an earlier run with other settings."""
    wanted = set(paths)
    for folder in {path.parent for path in wanted}:
        for path in folder.glob("*"):  # there is no folder where nothing was dropped
            if path.name.endswith(SUFFIXES) and path not in wanted:
                with write_errors(path):
                    path.unlink()
