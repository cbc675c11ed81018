"""Scores as they are kept: each with its task's version, its count and its direction.

A results file is a JSON object with `schema`, what was scored (model, fingerprint, isoglot's
version) and a list of `Score`s. Scores of different task versions are not comparable. Schema 2
added a score's seed and scenario, and the commit and the selection rule of the whole file; schema 3
keeps these two with each score, since a file grows over time; schema 4 added the epoch. Files of
all schemas are read.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from isoglot import __version__
from isoglot.errors import IsoglotError
from isoglot.whole_file import write_json

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from _typeshed import DataclassInstance

SCHEMA = 4


class ResultsError(IsoglotError):
    """A results file cannot be read, or is of another model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One number, and what is needed to compare it with another."""

    task: str
    version: int
    """Rises when scores of the task stop being comparable."""
    language: str
    metric: str
    value: float
    """A share is between 0 and 1, also where official scripts print percent."""
    count: int
    """What the value is a mean over."""
    higher_is_better: bool = True
    layer: int | None = None
    """Layer of the encoder that was read, 0 for the embeddings; none where it does not apply."""
    seed: int | None = None
    """Seed of the fine-tuning; none where nothing was trained."""
    scenario: str | None = None
    """What was trained on (zero-shot, ...), or how features were read; none: in the usual way."""
    selection: str | None = None
    """How the checkpoint of the fine-tuning was chosen; none where nothing was trained."""
    epoch: int | None = None
    """Epoch, from 1, whose model was scored; none where nothing was trained."""
    commit: str | None = None
    """Commit of the code that scored, where it is known."""


_OF_A_SCORE = tuple(field.name for field in fields(Score))


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """All scores of one model."""

    model: str
    fingerprint: str
    """SHA-256 of the model's weights."""
    scores: tuple[Score, ...]

    def write(self, file: Path, *, averages: Iterable[DataclassInstance] = ()) -> None:
        """Write the results as JSON, whole or not at all.

        Averages (`evaluate.averages`) are for whoever reads the file; `read` leaves them, as they
        follow from the scores.
        """
        content = {
            "schema": SCHEMA,
            "isoglot": __version__,
            "model": self.model,
            "fingerprint": self.fingerprint,
            # there may be many thousands, and all they hold is plain: asdict would copy deeply
            "scores": [{name: getattr(each, name) for name in _OF_A_SCORE} for each in self.scores],
            "averages": [asdict(average) for average in averages],
        }
        write_json(file, content, indent=1)

    @classmethod
    def read(cls, file: Path) -> Results:
        """Read a results file of this schema or an earlier one.

        Raises:
            ResultsError: the file is missing, is no results file, or comes from a later version.
        """
        try:
            content = json.loads(file.read_text(encoding="utf-8"))
        except OSError as error:
            raise ResultsError(f"{file}: cannot be read ({error.strerror}).") from error
        except ValueError as error:
            raise ResultsError(f"{file}: is not JSON ({error}). Evaluate again.") from error
        schema = content.get("schema") if isinstance(content, dict) else None
        if not isinstance(schema, int):
            raise ResultsError(f"{file}: has no schema number, so it is no results file.")
        if schema > SCHEMA:
            raise ResultsError(
                f"{file}: has schema {schema} and this version reads up to {SCHEMA}. "
                f"It was written by isoglot {content.get('isoglot')}; install that one."
            )
        try:
            return cls(
                model=content["model"],
                fingerprint=content["fingerprint"],
                scores=tuple(_score(score, content) for score in content["scores"]),
            )
        except (KeyError, TypeError) as error:
            raise ResultsError(
                f"{file}: does not hold what schema {schema} asks for ({error}). Evaluate again."
            ) from error


def _score(said: dict[str, Any], content: dict[str, Any]) -> Score:
    """One score; what schema 2 says of the whole file is said of it."""
    whole = {"commit": content.get("commit")}
    if said.get("seed") is not None:
        whole["selection"] = content.get("selection")
    return Score(**{**whole, **said})
