"""The errors a user can cause. Each message names the file and says the fix."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class IsoglotError(ValueError):
    """Something the user can mend. The command line prints the message alone and exits with 1."""


class RecipeError(IsoglotError):
    """A recipe or a prepare file says something impossible; lists every fault at once."""


class CorpusError(IsoglotError):
    """A raw file or a prepared corpus is missing, damaged, or not the one expected."""


class ModelError(IsoglotError):
    """A model folder cannot be opened, or its architecture cannot run packed rows."""


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
