"""The hashes of the input files of a corpus, made in parallel.

A file is hashed once: a run that goes on after an interruption hashes only files whose size or time
of modification differ. The hash comes before any reading, because it names the finished work of an
interrupted run, and because the hash of a file cannot be made from its parts.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from isoglot import json_text
from isoglot.atomic import write_json
from isoglot.corpus.storage.shards import FileEntry

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from isoglot.corpus.engine.runner import StageRunner

_SMALL_BYTES = 1 << 26
"""Files that one thread hashes in less than a second."""
_HASHES = "inputs.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class HashTask:
    """A file to be hashed."""

    path: Path
    bytes: int
    modified: int
    """Its time of modification, in nanoseconds."""

    @classmethod
    def of(cls, path: Path) -> HashTask:
        """The file as it is now."""
        found = path.stat()
        return cls(path=path, bytes=found.st_size, modified=found.st_mtime_ns)

    def known_by(self) -> str:
        """What an unchanged file is recognized by."""
        return f"{self.path.absolute()}\n{self.bytes}\n{self.modified}"


def hash_file(task: HashTask) -> str:
    """The SHA-256 of a file."""
    return FileEntry.of(task.path, "").sha256


def hash_inputs(
    paths: Iterable[Path], base: Path, runner: StageRunner
) -> tuple[dict[Path, FileEntry], dict[str, str]]:
    """Every file that is read, as it is now; and what `remember_hashes` keeps of it."""
    tasks = [HashTask.of(path) for path in sorted(paths)]
    known = _known_hashes(runner.work)
    new = [task for task in tasks if task.known_by() not in known]
    sizes = [task.bytes for task in new]
    if new:
        small = sum(sizes) < _SMALL_BYTES
        hashes = runner.run(
            "hash files",
            hash_file,
            new,
            name=lambda task: str(task.path),
            sizes=sizes,
            small=small,
            # hashing releases the GIL
            pool="threads",
        )
        known |= {task.known_by(): found for task, found in zip(new, hashes, strict=True)}
    entries = {}
    for task in tasks:
        path = task.path
        file = (path.relative_to(base) if path.is_relative_to(base) else path).as_posix()
        entries[path] = FileEntry(file=file, bytes=task.bytes, sha256=known[task.known_by()])
    return entries, {task.known_by(): known[task.known_by()] for task in tasks}


def remember_hashes(work: Path, known: Mapping[str, str]) -> None:
    """Keeps the hashes for a run that goes on after an interruption."""
    write_json(work / _HASHES, dict(known))


def _known_hashes(work: Path) -> dict[str, str]:
    try:
        known = json_text.parse((work / _HASHES).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}
