"""Atomic file and folder writing: a name holds the complete new content, or what it held before.

Content goes to a temporary sibling (`NAME.partial` for a file, `.NAME.partial` for a folder), which
is renamed when it is complete and removed after an error. A fault of the disk (full, over quota,
read-only), from whichever library, becomes a `WriteError` that names the file; other errors of a
block are left alone. Faults outside of this file are told by the command line's `main`.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

from isoglot.errors import WriteError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import numpy.typing as npt

PARTIAL = ".partial"
"""Suffix of a file that is still being written."""


_DISK_FAULTS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG, errno.EIO)
_OF_A_LIBRARY = re.compile(r"os error (\d+)|\d+ requested and \d+ written|No space left")
"""How libraries in Rust, numpy and others say it in errors without a number."""


def disk_fault(error: BaseException) -> str | None:
    """What is wrong with the disk (`No space left on device`), if that is what an error says."""
    if isinstance(error, OSError) and error.errno is not None:
        return os.strerror(error.errno) if error.errno in _DISK_FAULTS else None
    found = _OF_A_LIBRARY.search(str(error))
    if found is None:
        return None
    number = int(found[1]) if found[1] else errno.ENOSPC
    return os.strerror(number) if number in _DISK_FAULTS else None


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


def save_array(path: Path, array: npt.NDArray[Any]) -> None:
    """As `np.save`, but a full disk is an error.

    numpy writes to a file through a C buffer and does not see that its last flush fails: the file
    lacks up to 4 KiB, without an error. Other streams it passes bytes to.
    """
    import numpy as np

    with path.open("wb") as file:
        np.save(_Bytes(file), array)


def write_array(file: IO[bytes], array: npt.NDArray[Any]) -> None:
    """As `array.tofile`, but a full disk is an error (see `save_array`)."""
    import numpy as np

    file.write(np.ascontiguousarray(array).view(np.uint8).data)


class _Bytes:
    """A stream in which numpy does not recognize a file."""

    def __init__(self, file: IO[bytes]) -> None:
        self.write = file.write


@contextmanager
def replace_file(path: Path) -> Iterator[Path]:
    """A temporary path for the block to write; renamed to `path` unless the block raises.

    Raises:
        WriteError: the disk is full, or cannot be written for another reason.
    """
    partial = path.with_name(path.name + PARTIAL)
    with _disk_faults(path):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            yield partial
            partial.replace(path)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise


def partial_folder(folder: Path) -> Path:
    """The temporary folder that `replace_folder` fills."""
    return folder.with_name(f".{folder.name}{PARTIAL}")


@contextmanager
def replace_folder(folder: Path, *, durable: bool = False) -> Iterator[Path]:
    """An empty temporary folder to fill; takes the place of `folder` unless the block raises.

    `durable` flushes its files (not those of folders inside it) and the renaming to disk.

    Raises:
        WriteError: the disk is full, or cannot be written for another reason.
    """
    with _disk_faults(folder), _replace_folder(folder, durable=durable) as partial:
        yield partial


@contextmanager
def _replace_folder(folder: Path, *, durable: bool) -> Iterator[Path]:
    partial = partial_folder(folder)
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
                sync(file)
            sync(partial)
        if folder.exists():
            folder.rename(replaced)
        partial.rename(folder)
        if durable:
            sync(folder.parent)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    shutil.rmtree(replaced, ignore_errors=True)


@contextmanager
def write_errors(path: Path) -> Iterator[None]:
    """Turns an `OSError` of the block into a `WriteError` that names the file and the fix."""
    with _disk_faults(path):
        try:
            yield
        except WriteError:
            raise
        except OSError as error:
            raise WriteError(write_error_message(path, error.strerror or str(error))) from error


@contextmanager
def _disk_faults(path: Path) -> Iterator[None]:
    """Turns a fault of the disk, from whichever library, into a `WriteError`."""
    try:
        yield
    except WriteError:
        raise
    except Exception as error:
        fault = disk_fault(error)
        if fault is None:
            raise
        raise WriteError(write_error_message(path, fault)) from error


def write_error_message(path: object, reason: str) -> str:
    """The sentence of a `WriteError`."""
    return (
        f"{path}: cannot be written ({reason}). Free disk space there or choose another output "
        "folder, then run the command again; finished work is kept."
    )


def sync(path: Path) -> None:
    """Flushes a file, or the entries of a folder, to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
