"""Atomic file and folder writing: a name holds the complete new content, or what it held before.

Content goes to a temporary sibling (`NAME.partial` for a file, `.NAME.partial` for a folder), which
is renamed when it is complete and removed after an error. The write functions turn an `OSError`
(disk full, no permission) into a `WriteError`; the context managers leave errors of their block
alone.
"""

from __future__ import annotations

import json
import os
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from isoglot.errors import WriteError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PARTIAL = ".partial"
"""Suffix of a file that is still being written."""


def write_bytes(path: Path, data: bytes | memoryview) -> None:
    """Writes a file and flushes it to disk; parent folders are made."""
    with write_errors(path), replace_file(path) as partial, partial.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def write_text(path: Path, text: str) -> None:
    """Writes a UTF-8 file."""
    write_bytes(path, text.encode())


def write_json(path: Path, content: Any, *, indent: int | None = None) -> None:
    """Writes JSON, a line end after it."""
    write_text(path, json.dumps(content, indent=indent, ensure_ascii=False) + "\n")


@contextmanager
def replace_file(path: Path) -> Iterator[Path]:
    """A temporary path for the block to write; renamed to `path` unless the block raises."""
    partial = path.with_name(path.name + PARTIAL)
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield partial
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


@contextmanager
def replace_folder(folder: Path, *, durable: bool = False) -> Iterator[Path]:
    """An empty temporary folder to fill; takes the place of `folder` unless the block raises.

    `durable` flushes its files (not those of folders inside it) and the renaming to disk.
    """
    partial = folder.with_name(f".{folder.name}{PARTIAL}")
    replaced = folder.with_name(f".{folder.name}.replaced")
    if replaced.exists() and not folder.exists():
        # the process was killed between the two renames below
        replaced.rename(folder)
    for leftover in (partial, replaced):
        shutil.rmtree(leftover, ignore_errors=True)
    try:
        partial.mkdir(parents=True)
        yield partial
        if durable:
            for file in partial.iterdir():
                _sync(file)
            _sync(partial)
        if folder.exists():
            folder.rename(replaced)
        partial.rename(folder)
        if durable:
            _sync(folder.parent)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    shutil.rmtree(replaced, ignore_errors=True)


@contextmanager
def write_errors(path: Path) -> Iterator[None]:
    """Turns an `OSError` of the block into a `WriteError` that names the file and the fix."""
    try:
        yield
    except WriteError:
        raise
    except OSError as error:
        raise WriteError(
            f"{path}: cannot be written ({error.strerror or error}). Free disk space there or "
            "choose another output folder, then run the command again; finished work is kept."
        ) from error


def _sync(path: Path) -> None:
    """Flushes a file, or the entries of a folder, to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
