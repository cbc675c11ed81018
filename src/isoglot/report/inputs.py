"""The folders that a report reads, and the names they have in tables and legends.

`FOLDER` has its own name without a seed at the end (`runs/mlm-seed2` is `mlm`); `NAME=FOLDER` sets
the name. Folders are repetitions of one model, whose mean is shown, if they are given the same name
or differ in the seed alone. Two other folders of one name are two models: `a/mlm` and `b/mlm`.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from isoglot.errors import IsoglotError
from isoglot.folders import no_folder, run_folder
from isoglot.results import Results, score_identity
from isoglot.visualizations import FILE as VISUALIZATIONS_FILE
from isoglot.visualizations import Visualizations, visualizations_file

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SEED = re.compile(r"[-_.]seed[-_]?\d+$")
_STANDARD = {"results", "metrics", Path(VISUALIZATIONS_FILE).stem}
"""Names of files that are called after their folder."""
_FILES = ("results.json", "metrics.jsonl", VISUALIZATIONS_FILE, "manifest.json")
"""Files that a report reads."""


class ReportError(IsoglotError):
    """A file of a report is missing, damaged or empty."""


@dataclass(frozen=True, slots=True)
class NamedFolder:
    """A folder, or a file in it, and its name."""

    name: str
    path: Path
    is_given: bool = True
    """Whether the name was given; otherwise it is the folder's own."""

    @property
    def folder(self) -> Path:
        """The folder itself, or that of the file."""
        return self.path if self.path.is_dir() else self.path.parent


def parse_named_folder(argument: str) -> NamedFolder:
    """Parse `FOLDER` or `NAME=FOLDER`; a file in the folder works too."""
    path, name = _split_name(argument)
    if not path.exists():
        raise ReportError(
            f"{path} does not exist: {no_folder(path)} Give a run or a folder with a results.json."
        )
    return _named(path, name)


def parse_named_folders(argument: str) -> list[NamedFolder]:
    """Parse `FOLDER` or `NAME=FOLDER`; a folder of runs or of results stands for all in it.

    `results`, `runs` and `studies/NAME` are such folders. The folder of `isoglot adapt` stands for
    its run, under its own name.
    """
    one = parse_named_folder(argument)
    if one.is_given or not one.path.is_dir() or _has_files(one.path):
        return [one]
    if _has_files(one.path / "run"):
        return [replace(one, path=one.path / "run", is_given=True)]
    inside = [folder for folder in sorted(one.path.iterdir()) if _has_files(folder)]
    return [_named(folder, "") for folder in inside] or [one]


def _has_files(folder: Path) -> bool:
    """Whether a folder has a file that a report reads."""
    return any((folder / name).is_file() for name in _FILES)


def parse_named_run(argument: str) -> NamedFolder:
    """Parse `RUN` or `NAME=RUN`: a run's folder, its model/, a file in it, a folder of `adapt`."""
    path, name = _split_name(argument)
    if path.is_file():
        return _named(path, name)
    folder = run_folder(path)
    named = _named(folder, name)
    # the run of `isoglot adapt --out sw` is sw/run, and called sw
    of_adapt = not name and folder.parent == path
    return replace(named, name=path.resolve().name) if of_adapt else named


def _split_name(argument: str) -> tuple[Path, str]:
    """The path and the name of `FOLDER` or `NAME=FOLDER`; the name may be empty."""
    path = Path(argument)
    # os.path.exists is false for names that are too long, where Path.exists raises
    if "=" in argument and not os.path.exists(argument):  # noqa: PTH110
        name, _, rest = argument.partition("=")
        return Path(rest), name
    return path, ""


def _named(path: Path, name: str) -> NamedFolder:
    """A path under its name, which its folder gives unless it is set."""
    if not name:
        # a results file may have a name of its own: results/tlm-seed1.json
        is_standard = path.stem in _STANDARD
        folder = path.resolve() if path.is_dir() else path.resolve().parent
        name = _SEED.sub("", folder.name if path.is_dir() or is_standard else path.stem)
        return NamedFolder(name, path, is_given=False)
    return NamedFolder(name, path)


def group_by_name(inputs: Sequence[NamedFolder]) -> dict[str, list[NamedFolder]]:
    """Name -> its folders, in the order in which the names first appear."""
    groups: dict[str, list[NamedFolder]] = defaultdict(list)
    for one in with_distinct_names(inputs):
        groups[one.name].append(one)
    return dict(groups)


def with_distinct_names(inputs: Sequence[NamedFolder]) -> list[NamedFolder]:
    """The folders; those whose own name is another's too are named by more of their path."""
    found = []
    for one in inputs:
        rivals = [
            other
            for other in inputs
            if other.name == one.name and _model_key(other) != _model_key(one)
        ]
        if one.is_given or not rivals:
            found.append(one)
            continue
        parts = _model_key(one)
        taken = [_model_key(other) for other in rivals]
        length = next(
            (n for n in range(2, len(parts)) if all(t[-n:] != parts[-n:] for t in taken)),
            len(parts),
        )
        found.append(replace(one, name="/".join(parts[-length:])))
    return found


def _model_key(one: NamedFolder) -> tuple[str, ...]:
    """Equal for repetitions of a model: its given name, or its path without the seed."""
    if one.is_given:
        return ("", one.name)
    path = one.path.resolve()
    is_results = path.is_file() and path.stem in _STANDARD
    place = path.parent if is_results else path.with_suffix("") if path.is_file() else path
    *parents, last = place.parts
    return (*parents, _SEED.sub("", last))


def read_results(groups: Mapping[str, Sequence[NamedFolder]]) -> dict[str, list[Results]]:
    """Name -> the results of its folders, for names with a results file."""
    results = {}
    for name, group in groups.items():
        files = [file for one in group if (file := _results_file(one)) is not None]
        if files:
            results[name] = [Results.read(file) for file in files]
            _check_repetitions(files, results[name])
    return results


def _check_repetitions(files: Sequence[Path], results: Sequence[Results]) -> None:
    """Refuse two files with the same scores of the same weights: they are no repetitions."""
    seen: dict[tuple[object, ...], Path] = {}
    for file, found in zip(files, results, strict=True):
        for score in found.scores:
            key = found.fingerprint, *score_identity(score)
            if seen.setdefault(key, file) != file:
                raise ReportError(
                    f"{seen[key]} and {file} have the same scores of the same weights, so they are "
                    "not repetitions of a model. Give one of them, or a name to each (NAME=DIR)."
                )


def read_visualizations(
    groups: Mapping[str, Sequence[NamedFolder]], results: Mapping[str, Sequence[Results]]
) -> dict[str, Visualizations]:
    """Name -> the visualizations of the first of its folders that has any.

    Visualizations of other weights than the results of the same name are refused.
    """
    visualizations: dict[str, Visualizations] = {}
    for name, group in groups.items():
        for one in group:
            scored = _results_file(one)
            own = one.folder / VISUALIZATIONS_FILE
            file = own if scored is None else visualizations_file(scored)
            if not file.is_file() or name in visualizations:
                continue
            found = Visualizations.read(file)
            weights = {read.fingerprint for read in results.get(name, ())}
            if scored is not None and found.fingerprint not in weights:
                raise ReportError(
                    f"{file} is of other weights than {scored}. Remove it, or evaluate again with "
                    "--visualizations."
                )
            visualizations[name] = found
    return visualizations


def _results_file(one: NamedFolder) -> Path | None:
    is_json = one.path.is_file() and one.path.suffix == ".json"
    if is_json and not one.path.name.endswith(VISUALIZATIONS_FILE):
        return one.path
    file = one.path / "results.json"
    return file if file.is_file() else None
