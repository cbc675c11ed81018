"""The folders that a report reads, and the names they have in tables and legends.

`FOLDER` has its own name without a seed at the end (`runs/mlm-seed2` is `mlm`); `NAME=FOLDER` sets
the name. Folders of the same name are repetitions of one model: their mean is shown.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from isoglot.errors import IsoglotError
from isoglot.results import Results
from isoglot.visualizations import FILE as VISUALIZATIONS_FILE
from isoglot.visualizations import Visualizations

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_SEED = re.compile(r"[-_.]seed[-_]?\d+$")


class ReportError(IsoglotError):
    """A file of a report is missing, damaged or empty."""


@dataclass(frozen=True, slots=True)
class NamedFolder:
    """A folder, or a file in it, and its name."""

    name: str
    path: Path

    @property
    def folder(self) -> Path:
        """The folder itself, or that of the file."""
        return self.path if self.path.is_dir() else self.path.parent


def parse_named_folder(argument: str) -> NamedFolder:
    """Parse `FOLDER` or `NAME=FOLDER`; a file in the folder works too."""
    path = Path(argument)
    name = ""
    if not path.exists() and "=" in argument:
        name, _, rest = argument.partition("=")
        path = Path(rest)
    if not path.exists():
        raise ReportError(f"{path} does not exist. Give a run or a folder with a results.json.")
    if not name:
        # a results file may have a name of its own: results/tlm-seed1.json
        is_standard = path.stem in {"results", "metrics", Path(VISUALIZATIONS_FILE).stem}
        folder = path.resolve() if path.is_dir() else path.resolve().parent
        name = _SEED.sub("", folder.name if path.is_dir() or is_standard else path.stem)
    return NamedFolder(name, path)


def group_by_name(inputs: Iterable[NamedFolder]) -> dict[str, list[NamedFolder]]:
    """Name -> its folders, in the order in which the names first appear."""
    groups: dict[str, list[NamedFolder]] = defaultdict(list)
    for one in inputs:
        groups[one.name].append(one)
    return dict(groups)


def read_results(groups: Mapping[str, Sequence[NamedFolder]]) -> dict[str, list[Results]]:
    """Name -> the results of its folders, for names with a results file."""
    results = {}
    for name, group in groups.items():
        files = [file for one in group if (file := _results_file(one)) is not None]
        if files:
            results[name] = [Results.read(file) for file in files]
    return results


def read_visualizations(groups: Mapping[str, Sequence[NamedFolder]]) -> dict[str, Visualizations]:
    """Name -> the visualizations of the first of its folders that has any."""
    visualizations = {}
    for name, group in groups.items():
        for one in group:
            file = one.folder / VISUALIZATIONS_FILE
            if file.is_file() and name not in visualizations:
                visualizations[name] = Visualizations.read(file)
    return visualizations


def _results_file(one: NamedFolder) -> Path | None:
    is_json = one.path.is_file() and one.path.suffix == ".json"
    if is_json and one.path.name != VISUALIZATIONS_FILE:
        return one.path
    file = one.path / "results.json"
    return file if file.is_file() else None
