"""Dropped lines, written out with their reasons for those who want to look at them.

    {"source": ..., "language": ..., "file": ..., "line": ..., "reason": ..., "text": [...]}

One gzip file of JSON lines for each piece of the work, the same bytes however it is divided among
workers. Lines that are dropped before cleaning are as they were read, the others as cleaned.
"""

from __future__ import annotations

import gzip
import json
from contextlib import ExitStack
from typing import TYPE_CHECKING

from isoglot.corpus.clean import REASONS
from isoglot.corpus.disk import PARTIAL, writing

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path
    from types import TracebackType

    from isoglot.corpus.cells import Cell


ALL_REASONS: dict[str, str] = {
    **REASONS,
    "contaminated": "The text, or a side of the pair, is in an evaluation file (`exclude`).",
    "duplicate": "The same text or pair came before (`duplicates.scope`).",
    "near-duplicate": "Nearly the same text or pair came before (`duplicates.near`).",
    "special": "The tokenizer takes a part of the text for a special token.",
    "no tokens": "The tokenizer leaves nothing of the text.",
}
"""Reason -> what it means: those of reading, cleaning and all that comes after."""


ENDINGS = (CLEANING, ENCODING) = (".cleaning.jsonl.gz", ".encoding.jsonl.gz")
"""How the files of lines end that were dropped in cleaning, and after it."""


class DroppedLines:
    """A file of dropped lines; without a path, nothing is written."""

    def __init__(self, path: Path | None, cell: Cell) -> None:
        self._path = path
        self._head = {"source": cell.source, "language": cell.language}
        self._file: gzip.GzipFile | None = None
        self._closing = ExitStack()

    def __enter__(self) -> DroppedLines:
        """Begins afresh: lines of an earlier attempt go."""
        if self._path is not None:
            with writing(self._path):
                self._path.unlink(missing_ok=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._file is None or self._path is None:
            return
        with writing(self._path):
            self._closing.close()
            if kind is None:
                _partial(self._path).replace(self._path)
            else:
                _partial(self._path).unlink()

    def write(self, file: Path, line: int, reason: str, texts: Sequence[str]) -> None:
        """Adds a line; the file is made with the first."""
        if self._path is None:
            return
        row = {**self._head, "file": str(file), "line": line, "reason": reason, "text": [*texts]}
        with writing(self._path):
            if self._file is None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                # no name and no date, so that equal lines give equal bytes
                stream = self._closing.enter_context(_partial(self._path).open("wb"))
                packed = gzip.GzipFile("", "wb", compresslevel=3, fileobj=stream, mtime=0)
                self._file = self._closing.enter_context(packed)
            text = json.dumps(row, ensure_ascii=False) + "\n"
            self._file.write(text.encode("utf-8", "replace"))


def remove_others(paths: Iterable[Path]) -> None:
    """Removes, from the folders of these files, those of an earlier run with other settings."""
    wanted = set(paths)
    for folder in {path.parent for path in wanted}:
        for ending in ENDINGS:
            for path in folder.glob(f"*{ending}"):
                if path not in wanted:
                    with writing(path):
                        path.unlink()


def _partial(path: Path) -> Path:
    return path.with_name(path.name + PARTIAL)
