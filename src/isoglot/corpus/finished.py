"""What is finished, so that a run that was interrupted goes on where it stopped.

The result of a finished task is a small JSON file, written whole or not at all. With it goes a hash
of everything the task is: its settings, its inputs (by content) and the version of Isoglot. A task
that differs in anything finds nothing and is done. There is one result for each place that tasks
write to, gone as soon as another task begins to write there.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Generic, TypeVar

import cattrs

from isoglot import __version__
from isoglot.corpus.disk import write_atomically, writing

Task = TypeVar("Task")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Finished(Generic[Task, Result]):
    """The recorded results of one kind of task, a dataclass, in one folder."""

    folder: Path
    kind: type[Result]
    """The class of the results, a dataclass."""
    whole: Callable[[Task, Result], bool]
    """Whether all that the task wrote is still there."""
    place: Callable[[Task], object]
    """Where the task writes: tasks that write over each other's files have the same."""

    def load(self, task: Task) -> Result | None:
        """The result of this very task, if it is finished."""
        try:
            record = json.loads(self._path(task).read_text(encoding="utf-8"))
            if record["key"] != key_of(task):
                return None
            result = _converter().structure(record["result"], self.kind)
        except (OSError, ValueError, LookupError, TypeError, cattrs.BaseValidationError):
            return None
        return result if self.whole(task, result) else None

    def forget(self, task: Task) -> None:
        """Nothing is finished any more in the place where the task is about to write."""
        with writing(self._path(task)):
            self._path(task).unlink(missing_ok=True)

    def store(self, task: Task, result: Result) -> None:
        """Records that the task is finished."""
        record = {"key": key_of(task), "result": _converter().unstructure(result)}
        write_atomically(self._path(task), json.dumps(record, ensure_ascii=False).encode())

    def _path(self, task: Task) -> Path:
        place = f"{type(task).__qualname__}\n{self.place(task)}"
        return self.folder / f"{sha256(place.encode()).hexdigest()[:32]}.json"


def key_of(task: Any) -> str:
    """A hash of everything a task (a dataclass of plain values) is."""
    content = json.dumps(_converter().unstructure(task), sort_keys=True)
    return sha256(f"{__version__}\n{type(task).__qualname__}\n{content}".encode()).hexdigest()


@cache
def _converter() -> cattrs.Converter:
    converter = cattrs.Converter()
    converter.register_unstructure_hook(Path, str)
    converter.register_structure_hook(Path, _path)
    return converter


def _path(value: Any, _: Any) -> Path:
    return Path(value)
