"""The objects of a file of JSON lines, and the texts in them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from isoglot.corpus.readers.base import Skipped
from isoglot.corpus.readers.files import read_lines

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def read_objects(path: Path) -> Iterator[tuple[int, dict[str, Any] | Skipped]]:
    """The number of each line, and its object, or why it is none."""
    for number, line in enumerate(read_lines(path), start=1):
        if isinstance(line, Skipped):
            yield number, line
        elif not line.strip():
            yield number, Skipped("blank", line, number)
        else:
            yield number, _object(line, number)


def text_at(found: dict[str, Any], name: str) -> str | None:
    """The text in a field; if there is none of this name, in a field inside others (`a.b`)."""
    value = found.get(name)
    if value is None:
        value = found
        for part in name.split("."):
            value = value.get(part) if isinstance(value, dict) else None
    return value if isinstance(value, str) else None


def _object(line: str, number: int) -> dict[str, Any] | Skipped:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return Skipped("not JSON", line, number)
    if not isinstance(found, dict):
        return Skipped("not JSON", line, number)
    if "\\ud" in line or "\\uD" in line:
        # an escape may stand for half a character, which is no text
        try:
            json.dumps(found, ensure_ascii=False).encode()
        except (UnicodeEncodeError, RecursionError):
            return Skipped("encoding", line, number)
    return found
