"""What the commands are given: folders, each with the name that it has in tables and legends.

`FOLDER` is called by its folder's name, without the seed at its end (`runs/mlm-seed2` is `mlm`);
`NAME=FOLDER` says the name. Folders of one name are repetitions of one model: their mean is shown.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from isoglot.report.errors import ReportError

if TYPE_CHECKING:
    from collections.abc import Iterable

_SEED = re.compile(r"[-_.]seed[-_]?\d+$")


@dataclass(frozen=True, slots=True)
class Named:
    """A folder, or one of its files, and what it is called."""

    name: str
    path: Path

    @property
    def folder(self) -> Path:
        """The folder that is meant."""
        return self.path if self.path.is_dir() else self.path.parent


def named(argument: str) -> Named:
    """Read `FOLDER` or `NAME=FOLDER`; a file in the folder will do as well."""
    path = Path(argument)
    name = ""
    if not path.exists() and "=" in argument:
        name, _, rest = argument.partition("=")
        path = Path(rest)
    if not path.exists():
        raise ReportError(f"{path} does not exist. Give a run or a folder with a results.json.")
    if not name:
        # a single results file may have a telling name of its own: results/tlm-seed1.json
        telling = path.is_dir() or path.stem in {"results", "metrics", "exhibits"}
        folder = path.resolve() if path.is_dir() else path.resolve().parent
        name = _SEED.sub("", folder.name if telling else path.stem)
    return Named(name, path)


def by_name(inputs: Iterable[Named]) -> dict[str, list[Named]]:
    """Inputs of one name together, in the order in which the names first appear."""
    groups: dict[str, list[Named]] = defaultdict(list)
    for found in inputs:
        groups[found.name].append(found)
    return dict(groups)
