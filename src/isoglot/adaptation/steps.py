"""Finished steps of an adaptation: what each was made from, what it gave, and how long it took.

    steps = StepRecords(folder.steps)
    scores = steps.run("before", inputs, lambda: ...)

A step's record is written when the step is done, so a step that was interrupted has none. The same
inputs give the recorded result, others run the step again. Inputs are hashes of contents, not time
stamps: a copied folder continues, too.
"""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isoglot import json_text
from isoglot.atomic import write_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

_VERSION = 1
"""Raised when a step gives something else for the same inputs: all steps run again."""

_MODEL_FILES = (".json", ".safetensors", ".txt", ".model")
"""Endings of configuration, weights and tokenizer; not cards and recipes."""


STEPS = {
    "before": "scoring before",
    "grow": "growing the vocabulary",
    "prepare": "preparing the corpus",
    "train": "training",
    "choose": "choosing layers on development pairs",
    "after": "scoring after",
    "link": "scoring entities and facts",
    "speed": "timing sentences per second",
    "export": "exporting",
    "page": "writing the page",
}
"""Name and title of each step after planning, as after `while`."""


@dataclass(frozen=True, slots=True)
class StepRecords:
    """The records of a folder, one file for each step."""

    folder: Path

    def run(
        self,
        name: str,
        inputs: Mapping[str, Any],
        work: Callable[[], dict[str, Any]],
        outputs: Sequence[Path] = (),
    ) -> dict[str, Any]:
        """The result of a step (JSON): recorded, if it was made from these inputs, or made now.

        A step whose `outputs`, files or folders, are gone is not done.
        """
        result = self.result(name, inputs, outputs)
        if result is not None:
            return result
        began = time.monotonic()
        result = work()
        self.finish(name, inputs, result, seconds=time.monotonic() - began)
        return result

    def result(
        self, name: str, inputs: Mapping[str, Any], outputs: Sequence[Path] = ()
    ) -> dict[str, Any] | None:
        """The recorded result of a step; none if it is not done, or was made from other inputs."""
        record = self._read(name)
        if record is None or record.get("inputs") != _key(inputs):
            return None
        if not all(path.exists() for path in outputs):
            return None
        result = record.get("result")
        return result if isinstance(result, dict) else None

    def finish(
        self, name: str, inputs: Mapping[str, Any], result: dict[str, Any], *, seconds: float
    ) -> None:
        """Record a step as done."""
        record = {"inputs": _key(inputs), "seconds": seconds, "result": result}
        write_json(self._file(name), record)

    def seconds(self, name: str) -> float | None:
        """How long a step took; none if it is not done."""
        record = self._read(name)
        found = None if record is None else record.get("seconds")
        return float(found) if isinstance(found, int | float) else None

    def _file(self, name: str) -> Path:
        return self.folder / f"{name}.json"

    def _read(self, name: str) -> dict[str, Any] | None:
        """The record of a step; a damaged one counts as none, and the step runs again."""
        try:
            record = json_text.parse(self._file(name).read_bytes())
        except (OSError, ValueError):
            return None
        return record if isinstance(record, dict) else None


def hash_files(files: Iterable[Path]) -> str:
    """SHA-256 over the names and contents of files, in order of their paths."""
    digest = hashlib.sha256()
    for file in sorted(files):
        about = file.stat()
        content = _hash_file(file.resolve(), about.st_size, about.st_mtime_ns)
        digest.update(f"{file.name}\0{content}\n".encode())
    return digest.hexdigest()


@cache
def _hash_file(file: Path, _size: int, _time: int) -> str:
    """SHA-256 of a file; a file that has not changed since is not read again by this process."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def hash_folder(folder: Path) -> str:
    """SHA-256 over all files below a folder."""
    return hash_files(path for path in folder.rglob("*") if path.is_file())


def hash_model(folder: Path) -> str:
    """SHA-256 over the files of a model folder that decide what it computes."""
    return hash_files(
        path
        for path in folder.iterdir()
        if path.suffix in _MODEL_FILES and path.name != "transplant.json"
    )


def hash_sentences(folder: Path) -> str:
    """As `hash_model`, with the modules of a sentence-transformers folder."""
    return hash_files(
        path for path in folder.rglob("*") if path.suffix in (".json", ".safetensors")
    )


def _key(inputs: Mapping[str, Any]) -> str:
    text = json.dumps({"version": _VERSION, **inputs}, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()
