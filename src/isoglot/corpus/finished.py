"""What is finished, so that a run that was interrupted goes on where it stopped.

The result of a finished task is a small JSON file, written whole or not at all, under a name that
is a hash of everything the task is: its settings, its inputs (by content) and the version of
Isoglot. A task that differs in anything finds nothing and is done.
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
from isoglot.corpus.disk import write_atomically

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

    def load(self, task: Task) -> Result | None:
        """The result of this very task, if it is finished."""
        try:
            text = self._path(task).read_text(encoding="utf-8")
            result = _converter().structure(json.loads(text), self.kind)
        except (OSError, ValueError, cattrs.BaseValidationError):
            return None
        return result if self.whole(task, result) else None

    def store(self, task: Task, result: Result) -> None:
        """Records that the task is finished."""
        text = json.dumps(_converter().unstructure(result), ensure_ascii=False)
        write_atomically(self._path(task), text.encode())

    def _path(self, task: Task) -> Path:
        return self.folder / f"{key_of(task)[:32]}.json"


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
