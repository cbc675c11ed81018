"""What a saved model, or a folder of predictions, was made from: `finetune.json` in it.

A folder with another record, or without one, is refused: files of another model, with other
settings or from other data, are never taken for those of this training.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from isoglot import json_text
from isoglot.atomic import write_json
from isoglot.errors import ModelError
from isoglot.locks import has_files
from isoglot.tasks.data_files import files_fingerprint

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

RECORD = "finetune.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class FinetuneRecord:
    """One training: the model it started from, its settings and its data."""

    model: str
    """The folder of the model; where it lies may change."""
    fingerprint: str
    """SHA-256 of the model's weights."""
    task: str
    version: int
    scenario: str
    """The scenario of the scores: languages, protocol and changed settings."""
    seed: int
    settings: dict[str, Any]
    """All hyperparameters, as the protocol has them now."""
    train_data: str
    """SHA-256 of the files that were trained on, and of those that selected the epoch."""
    test_data: dict[str, str] = field(default_factory=dict)
    """Language -> SHA-256 of its test files, for predictions."""

    def write(self, folder: Path) -> None:
        """Write the record into a folder."""
        write_json(folder / RECORD, asdict(self), indent=1)

    def add_test_data(self, folder: Path, language: str, files: Iterable[Path]) -> None:
        """Record the test files of predictions that were written into a folder."""
        found = _read(folder)
        known = {} if found is None else found.test_data
        replace(self, test_data={**known, language: files_fingerprint(files)}).write(folder)

    def in_folder(self, folder: Path, option: str) -> FinetuneRecord | None:
        """The record in a folder of the same training; none if there is no such folder.

        A folder of another training is refused; `option` is where its name was given.
        """
        if not has_files(folder):
            return None
        found = _read(folder)
        difference = (
            f"does not say what it was made from (no {RECORD})"
            if found is None
            else self._difference(found)
        )
        if difference:
            raise ModelError(
                f"{folder} exists and {difference}. Name another folder with {option}, or remove "
                "this one."
            )
        return found

    def _difference(self, other: FinetuneRecord) -> str | None:
        """How the other training differs, if it does."""
        if other.fingerprint != self.fingerprint:
            return f"is of another model ({other.model}), or of earlier weights of this one"
        if (other.task, other.version, other.seed) != (self.task, self.version, self.seed):
            return f"is of {other.task} (version {other.version}), seed {other.seed}"
        if other.scenario != self.scenario:
            return f"is of another scenario ({other.scenario})"
        # as JSON has them: lists, not tuples
        mine = json_text.parse(json.dumps(self.settings))
        theirs = other.settings
        changed = [name for name in {**mine, **theirs} if mine.get(name) != theirs.get(name)]
        if changed:
            return f"was made with other settings ({', '.join(changed)})"
        if other.train_data != self.train_data:
            return "was trained on other data: the files have changed"
        return None


def _read(folder: Path) -> FinetuneRecord | None:
    try:
        return FinetuneRecord(**json_text.parse((folder / RECORD).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
