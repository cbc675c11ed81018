"""Files that are made from a corpus, once for all processes: its index.

They lie in the folder `.index` of the corpus or, where that cannot be written, in
`$ISOGLOT_CACHE/index` (by default ~/.cache/isoglot/index). They may be removed at any time: whoever
needs one builds it again, one process at a time, while the others wait. A file that is damaged, or
of another corpus, is replaced.
"""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING

from isoglot.atomic import replace_file, write_errors
from isoglot.corpus.storage.array_file import ArrayFile, ArrayFileWriter, ArrayWriter
from isoglot.errors import CorpusError, WriteError
from isoglot.locks import lock_file
from isoglot.remote.cache import CACHE, cache_folder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from isoglot.corpus.storage.array_file import Arrays

INDEX = ".index"
"""Folder inside a corpus."""
KEPT_ROWS = 2**20
"""What is made from fewer rows is made in memory by every process: that takes milliseconds."""
_FORMAT = 1
_log = logging.getLogger(__name__)


def key_of_index(*parts: object) -> str:
    """What an index is made from, as one string: the corpus, the table, the settings."""
    return sha256(repr((_FORMAT, *parts)).encode()).hexdigest()


def open_index(
    corpus: Path,
    fingerprint: str,
    name: str,
    key: str,
    build: Callable[[ArrayWriter], None],
    *,
    num_rows: int,
) -> Arrays:
    """The arrays of a file of a corpus's index, mapped; built unless some process did before.

    Args:
        corpus: its folder.
        fingerprint: the corpus's.
        name: the file's path inside the index.
        key: what `key_of_index` gives.
        build: writes the arrays.
        num_rows: the rows of the corpus that they are made from; of few, they stay in memory.
    """
    places = (corpus / INDEX / name, cache_folder() / "index" / fingerprint[:16] / name)
    for path in places:
        if path.exists():
            with suppress(CorpusError):
                return ArrayFile(path, key)
    if num_rows < KEPT_ROWS:
        writer = ArrayWriter()
        build(writer)
        return writer.arrays()
    for path in places[:-1]:
        with suppress(WriteError):
            return build_file(path, key, build)
    try:
        return build_file(places[-1], key, build)
    except WriteError as error:
        raise WriteError(
            f"{corpus}: its index can be written neither there nor to {places[-1].parent}. Name a "
            f"folder with free space in the environment variable {CACHE}."
        ) from error


def build_file(path: Path, key: str, build: Callable[[ArrayWriter], None]) -> ArrayFile:
    """A file of an index, built unless it is there; other processes wait meanwhile.

    Raises:
        WriteError: the folder cannot be written.
    """
    with lock_file(path, wait=True):
        if path.exists():
            try:
                return ArrayFile(path, key)
            except CorpusError as error:
                _log.warning("%s It is built again.", error)
        with write_errors(path), replace_file(path) as partial, partial.open("wb") as file:
            writer = ArrayFileWriter(file, key)
            build(writer)
            writer.finish()
            file.flush()
            os.fsync(file.fileno())
        return ArrayFile(path, key)
