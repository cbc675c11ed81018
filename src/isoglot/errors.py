"""The errors a user can cause. Each message names the file and says the fix."""

from __future__ import annotations

import difflib
import importlib
import os
import re
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class IsoglotError(ValueError):
    """An error that the user can correct; the command line prints its message and exits with 1."""


class RecipeError(IsoglotError):
    """A recipe or a prepare file says something impossible; lists every error at once."""


class CorpusError(IsoglotError):
    """A raw file or a prepared corpus is missing, damaged, or not the one expected."""


class ModelError(IsoglotError):
    """A model folder cannot be opened, or its architecture cannot run packed rows."""


class WriteError(IsoglotError, OSError):
    """A file or folder cannot be written: the disk is full, or permission is missing."""


class LockedError(IsoglotError):
    """Another command is writing to the same folder or file."""


class FetchError(IsoglotError):
    """Data cannot be downloaded or unpacked, or is not what was expected."""


class CheckpointError(IsoglotError):
    """A checkpoint cannot be written or read, or belongs to another run."""


def require(condition: bool, message: str) -> None:  # noqa: FBT001 (reads like assert)
    """Refuse settings that cannot work."""
    if not condition:
        raise RecipeError(message)


_NAME = re.compile(r"[\w+][\w+=.,:@ -]*")
_MAX_NAME = 100


def is_name(name: str) -> bool:
    """Whether a name is safe as a file or folder: no `..`, no slash, no hidden file."""
    return len(name) <= _MAX_NAME and _NAME.fullmatch(name) is not None


def require_name(name: str, setting: str) -> None:
    """Refuse a name of which a folder is made and that would lead out of its place.

    A slash may divide it into folders, as in `ablations/mlm-gc-n1`.
    """
    require(
        all(map(is_name, name.split("/"))),
        f"{setting}: {name!r:.{_MAX_NAME}} cannot be a name. Folders are called by it: use at most "
        f"{_MAX_NAME} letters, digits and . _ + - =, beginning with a letter or a digit.",
    )


_NAMED = 60
"""Known names that a message lists."""


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown name: the nearest known one, or those there are."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if close:
        return f"did you mean {close[0]!r}?"
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return "known: " + ", ".join(names[:_NAMED]) + more


def import_class(
    path: str, base: Any, subject: str, error: type[IsoglotError] = RecipeError
) -> Any:
    """The class at `package.module:Class`, which must derive from `base`."""
    name, _, attribute = path.partition(":")
    try:
        module = importlib.import_module(name)
    except Exception as reason:
        fault = f"{subject} cannot be imported: {_import_fault(name, reason)}"
        raise error(fault) from reason
    found = getattr(module, attribute, None)
    if found is None:
        hint = nearest(attribute, [one for one in vars(module) if not one.startswith("_")])
        where = getattr(module, "__file__", None) or name
        raise error(f"{subject} cannot be imported: {where} has no {attribute!r}; {hint}")
    if not (isinstance(found, type) and issubclass(found, base)):
        raise error(f"{subject} is not a subclass of isoglot.{base.__name__}.")
    return found


def _import_fault(name: str, reason: Exception) -> str:
    """Why a module cannot be imported, and where Python looks for modules."""
    missing = getattr(reason, "name", None) if isinstance(reason, ModuleNotFoundError) else None
    if missing is None or not (name == missing or name.startswith(f"{missing}.")):
        return f"the module {name!r} fails ({type(reason).__name__}: {reason})."
    here = Path.cwd()
    file = here.joinpath(*name.split("."))
    if file.with_suffix(".py").is_file() or file.is_dir():
        return f"{reason}. It is in {here}, which Python does not search: set PYTHONPATH=."
    searched = os.environ.get("PYTHONPATH") or "which is not set"
    return (
        f"{reason}. A module of your own is searched in the folders of PYTHONPATH ({searched}); "
        "add the folder that holds it."
    )


@contextmanager
def library_errors(kind: type[IsoglotError], message: str, fix: str = "") -> Iterator[None]:
    """Turn any error that a library raises for a damaged file into one sentence.

    The sentence is the message, the first line of the error, then the fix. Libraries written in
    Rust also raise `PanicException`, which is no `Exception`. Isoglot's own errors pass.
    """
    try:
        yield
    except IsoglotError:
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        lines = str(error).strip().split("\n")
        reason = lines[0].rstrip(".") or type(error).__name__
        raise kind(f"{message} ({reason}).{' ' if fix else ''}{fix}") from error
