"""What is wrong with a recipe, as a list: each fault with its file, its line and its path."""

from __future__ import annotations

import dataclasses
import typing
from typing import TYPE_CHECKING, Any

import cattrs

from isoglot.errors import IsoglotError, RecipeError, nearest

if TYPE_CHECKING:
    from isoglot.recipe.document import Document, Key


class SettingError(ValueError):
    """One fault of one setting, in words for the user."""


def listed(error: Exception, document: Document) -> RecipeError:
    """One error that names all faults inside a (group of) errors.

    Raises:
        Exception: an error that is no fault of the document comes out as it is.
    """
    found = [(document.where(path), path, text) for path, text in _inside(error, ())]
    found.sort(key=lambda fault: _file_and_line(fault[0]))
    # a fault of settings that do not go together is that of the whole, which has no path
    lines = [
        ": ".join(filter(None, [place, ".".join(map(str, path)), text]))
        for place, path, text in found
    ]
    number = f"{len(lines)} faults" if len(lines) > 1 else "a fault"
    return RecipeError(f"{number} in the settings:\n  " + "\n  ".join(lines))


def _file_and_line(place: str) -> tuple[str, int]:
    file, _, line = place.rpartition(":")
    return (file, int(line)) if line.isdigit() else (place, 0)


def _inside(error: BaseException, path: Key) -> list[tuple[Key, str]]:
    """All faults inside a group of errors, each with its path."""
    if isinstance(error, cattrs.ClassValidationError | cattrs.IterableValidationError):
        noted, others = error.group_exceptions()
        found = []
        for inner, note in noted:
            key = note.name if isinstance(note, cattrs.AttributeValidationNote) else note.index
            found += _inside(inner, (*path, key))
        for inner in others:
            found += _inside(inner, path)
        return found
    if isinstance(error, cattrs.ForbiddenExtraKeysError):
        known = [field.name for field in dataclasses.fields(typing.cast("Any", error.cl))]
        return [
            ((*path, key), f"unknown setting; {nearest(key, known)}")
            for key in sorted(error.extra_fields)
        ]
    if isinstance(error, KeyError):
        return [(path, "this setting is needed and has no default")]
    if isinstance(error, IsoglotError | SettingError):
        return [(path, str(error))]
    raise error
