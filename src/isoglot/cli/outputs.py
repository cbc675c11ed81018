"""Checks of output options, before any work: a folder or file that can be written.

Every option that names an output has one of the callbacks of this file; what goes wrong later (a
disk that fills up) is an error of `isoglot.atomic`, or of `main`.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Literal

import typer

_TEMPORARY = len(".") + len(".replaced")
"""Characters that temporary names have more than the name itself (`isoglot.atomic`)."""
_NAME_MAX = 255
"""Bytes of a name on most file systems."""


def output_folder(path: Path | None) -> Path | None:
    """Callback of an option that names a folder to write: it, or where it will be made."""
    return None if path is None else check_output(path, "folder")


def output_file(path: Path | None) -> Path | None:
    """Callback of an option that names a file to write."""
    return None if path is None else check_output(path, "file")


def output_svg(path: Path | None) -> Path | None:
    """Callback of an option that names a figure to write, which is SVG whatever its name."""
    if path is not None and path.suffix.lower() != ".svg":
        raise typer.BadParameter(f"{path}: figures are SVG. Name a file that ends in .svg.")
    return output_file(path)


def output_file_or_folder(path: Path | None) -> Path | None:
    """Callback of an option that names a file, or a folder for a file of a fixed name."""
    return None if path is None else check_output(path, "file or folder")


def check_output(
    path: Path, kind: Literal["file", "folder", "file or folder"], option: str | None = None
) -> Path:
    """The path with its home folder; one that cannot be written is refused."""
    try:
        path = path.expanduser()
        problem = _problem(path, kind)
    except RuntimeError:
        problem = f"{path}: there is no home folder for ~. Give the whole path."
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        problem = f"{str(path)[:60]}...: no such path can be written ({reason}). Name another one."
    if problem is not None:
        raise typer.BadParameter(problem, param_hint=option)
    return path


def _problem(path: Path, kind: str) -> str | None:
    if "\0" in str(path):
        raise ValueError("null byte")
    if len(os.fsencode(path.name)) + _TEMPORARY > _NAME_MAX:
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
    if path.is_dir() and kind == "file":
        return f"{path} is a folder. Name a file in it."
    if path.exists() and not path.is_dir():
        if kind == "folder":
            return f"{path} is a file. Name a folder."
        if not path.is_file():
            return f"{path} is a device or a pipe. Name a file."
    there = next(place for place in (path, *path.absolute().parents) if place.exists())
    if there != path and not there.is_dir():
        return f"{there} is a file, so {path} cannot be made. Name another path."
    # a file is replaced by a new one, for which its folder must be writable
    place = there if there.is_dir() else there.absolute().parent
    if not os.access(place, os.W_OK | os.X_OK):
        return f"{path} cannot be written: no permission to write in {place}. Name another path."
    return None
