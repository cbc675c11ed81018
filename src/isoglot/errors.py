"""The errors a user can cause. Each message names the file and says the fix."""

from __future__ import annotations

import difflib
import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable


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


class CheckpointError(IsoglotError):
    """A checkpoint cannot be written or read, or belongs to another run."""


def require(condition: bool, message: str) -> None:  # noqa: FBT001 (reads like assert)
    """Refuse settings that cannot work."""
    if not condition:
        raise RecipeError(message)


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
    module, _, attribute = path.partition(":")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as reason:
        raise error(
            f"{subject} cannot be imported: {reason}. A module of your own must be on PYTHONPATH."
        ) from reason
    if not (isinstance(found, type) and issubclass(found, base)):
        raise error(f"{subject} is not a subclass of isoglot.{base.__name__}.")
    return found
