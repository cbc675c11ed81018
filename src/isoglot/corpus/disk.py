"""Writing files so that an interruption or a full disk never leaves half of one under its name."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from isoglot.errors import CorpusError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PARTIAL = ".partial"
"""Suffix of a file that is still being written."""


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turns a failure to write into a message that names the file and the fix."""
    try:
        yield
    except OSError as error:
        raise CorpusError(
            f"{path}: cannot be written ({error.strerror or error}). Make room on that disk or "
            "choose another output folder, then run isoglot prepare again; finished work is kept."
        ) from error


def write_atomically(path: Path, data: bytes | memoryview) -> None:
    """Writes a whole file: either all of it appears under its name, or nothing does."""
    partial = path.with_name(path.name + PARTIAL)
    with writing(path):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with partial.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(path)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
