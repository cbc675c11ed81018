"""The results and exhibits that the inputs hold, under the names of their models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isoglot.exhibits import FILE as EXHIBITS
from isoglot.exhibits import Exhibits
from isoglot.results import Results

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from isoglot.report.inputs import Named


def results_of(groups: Mapping[str, Sequence[Named]]) -> dict[str, list[Results]]:
    """Name -> the results of its folders, for the names that have some."""
    found = {}
    for name, group in groups.items():
        files = [file for one in group if (file := _results_file(one)) is not None]
        if files:
            found[name] = [Results.read(file) for file in files]
    return found


def exhibits_of(groups: Mapping[str, Sequence[Named]]) -> dict[str, Exhibits]:
    """Name -> the first exhibits among its folders: repetitions look alike."""
    found = {}
    for name, group in groups.items():
        for one in group:
            file = one.folder / EXHIBITS
            if file.is_file() and name not in found:
                found[name] = Exhibits.read(file)
    return found


def _results_file(one: Named) -> Path | None:
    if one.path.is_file() and one.path.suffix == ".json" and one.path.name != EXHIBITS:
        return one.path
    file = one.path / "results.json"
    return file if file.is_file() else None
