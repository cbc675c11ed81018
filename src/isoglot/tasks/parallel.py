"""Files that belong together: of the same name but for its end, or in one folder."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from isoglot.tasks.lines import damaged, numbered_lines

if TYPE_CHECKING:
    from pathlib import Path


_PACKED = ("", ".xz", ".gz", ".bz2", ".zst")


def beside(path: Path, name: str) -> Path:
    """The file of a name in the folder of another, packed or not; as named if it is not there."""
    found = (path.with_name(name + ending) for ending in _PACKED)
    return next((file for file in found if file.is_file()), path.with_name(name))


def sibling(path: Path, ending: str, other: str) -> Path:
    """The file whose name ends in `.other` where this one's ends in `.ending`."""
    name = re.sub(rf"\.{re.escape(ending)}(\.(xz|gz|bz2|zst))?$", f".{other}", path.name)
    return beside(path, name)


def line_pairs(first: Path, second: Path) -> list[tuple[str, str]]:
    """The lines of two files, side by side."""
    sides = [[line for _, line in numbered_lines(path)] for path in (first, second)]
    lengths = [len(side) for side in sides]
    if lengths[0] != lengths[1]:
        where = min(lengths) + 1
        raise damaged(second, where, f"{lengths[1]} lines, but {first.name} has {lengths[0]}.")
    return list(zip(*sides, strict=True))
