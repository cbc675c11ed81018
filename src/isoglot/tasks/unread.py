"""Files that lie where a task's files are looked for, and that no layout reads.

A file with another name or format is passed over by `Task.splits`; here it is found, so that
messages can name it.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from isoglot.fetching.registry import how_to_get
from isoglot.tasks import all_tasks
from isoglot.tasks.base import data_folders
from isoglot.tasks.layouts import FileTask, compile_pattern, data_root, to_glob

if TYPE_CHECKING:
    import re
    from pathlib import Path

    from isoglot.tasks.base import DataFolders, Task

_SHOWN = 3
_OF_NO_TASK = ("readme", "license", "licence", "dataset_info", "dataset_dict", "state.json", ".")
"""Beginnings of names, in lower case, of files that come with data and are none."""


def unread_files(task: Task[Any, Any], data: DataFolders) -> list[Path]:
    """The files in the folders of a task's layouts that are read by no task."""
    if not isinstance(task, FileTask):
        return []
    found: list[Path] = []
    for folder in data_folders(data):
        splits = task.splits(folder)
        used = {file for split in splits for file in split.files}
        have = {(split.language, split.name) for split in splits}
        root = data_root(folder)
        # of two layouts with the same split one is read
        used |= {
            path
            for layout in task.layouts
            for language, split, path in layout.find(root)
            if (language, split) in have
        }
        foreign = _patterns_of_others(type(task))
        found += [
            path
            for path in _beside(task, root)
            if path not in used
            and not path.name.lower().startswith(_OF_NO_TASK)
            and not any(each.fullmatch(path.relative_to(root).as_posix()) for each in foreign)
        ]
    return found


def missing_note(task: Task[Any, Any], data: DataFolders) -> str:
    """What lies there and is not read, or how to get the data."""
    return unread_note(task, data) or how_to_get(task.name, data_folders(data)[0])


def unread_note(task: Task[Any, Any], data: DataFolders) -> str | None:
    """A sentence that names the files that are there and not read, if there are any."""
    files = unread_files(task, data)
    if not files:
        return None
    more = f" and {len(files) - _SHOWN:,} more" if len(files) > _SHOWN else ""
    names = ", ".join(map(str, files[:_SHOWN])) + more
    return (
        f"There, and not read as {task.name}: {names}. docs/tasks.md lists the names, formats and "
        "companion files that are read."
    )


def _beside(task: FileTask[Any, Any], root: Path) -> list[Path]:
    """All files in the folders in which a layout of the task looks for files."""
    parents = {layout.pattern.rpartition("/")[0] for layout in task.layouts} - {""}
    folders = {folder for parent in parents for folder in root.glob(to_glob(parent))}
    return sorted(
        path for folder in folders if folder.is_dir() for path in folder.iterdir() if path.is_file()
    )


@cache
def _patterns_of_others(own: type[Any]) -> list[re.Pattern[str]]:
    """The patterns of other tasks' files, and of all companions."""
    kinds = [kind for kind in {*all_tasks(), own} if issubclass(kind, FileTask)]
    patterns = [pattern for kind in kinds for pattern in kind.companions]
    # a task over part of another's files, such as one category of reviews, leaves the rest alone
    patterns += [layout.pattern for kind in kinds if kind is not own for layout in kind.layouts]
    own_patterns = {layout.pattern for layout in own.layouts}
    return [compile_pattern(pattern) for pattern in patterns if pattern not in own_patterns]
