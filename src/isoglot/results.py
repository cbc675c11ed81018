"""Results files: scores with the task's version, the number of examples and the direction.

A results file is a JSON object with `schema`, the model (its folder, the fingerprint of its
weights), isoglot's version and a list of `Score`s. Scores of different task versions are not
comparable. Schema 3 and 4 are read; in older files commit and selection rule were not kept with
each score, and they are refused.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING

from isoglot import __version__
from isoglot.atomic import write_json
from isoglot.errors import IsoglotError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from _typeshed import DataclassInstance

SCHEMA = 4
_OLDEST_SCHEMA = 3


class ResultsError(IsoglotError):
    """A results file cannot be read, or has scores of another model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One number, and what is needed to compare it with another."""

    task: str
    version: int
    """Version of the task; scores of different versions are not comparable."""
    language: str
    metric: str
    value: float
    """Shares are between 0 and 1, also where official scripts print percent."""
    count: int
    """Number of examples that the value is a mean over."""
    higher_is_better: bool = True
    layer: int | None = None
    """Layer of the encoder, 0 for the embeddings; none if no layer was chosen."""
    seed: int | None = None
    """Random seed of the fine-tuning; none without fine-tuning."""
    scenario: str | None = None
    """Fine-tuning scenario (`zero-shot from en, xtreme`) or feature settings; none: defaults."""
    selection: str | None = None
    """Selection rule of the fine-tuned checkpoint; none without fine-tuning."""
    epoch: int | None = None
    """Epoch, from 1, of the model that was scored; none without fine-tuning."""
    commit: str | None = None
    """Git commit of the code that scored, if known."""


_SCORE_FIELDS = tuple(field.name for field in fields(Score))


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """All scores of one model."""

    model: str
    fingerprint: str
    """SHA-256 of the model's weights."""
    scores: tuple[Score, ...]

    def merged(self, scores: Iterable[Score]) -> Results:
        """These results with other scores added; they replace scores of the same thing."""
        added = tuple(scores)
        again = {_identity(score) for score in added}
        kept = (score for score in self.scores if _identity(score) not in again)
        return replace(self, scores=(*kept, *added))

    def write(self, file: Path, *, averages: Iterable[DataclassInstance] = ()) -> None:
        """Write the results as JSON, atomically; averages are for people, `read` ignores them."""
        content = {
            "schema": SCHEMA,
            "isoglot": __version__,
            "model": self.model,
            "fingerprint": self.fingerprint,
            # asdict copies deeply, which is slow for thousands of flat scores
            "scores": [{name: getattr(s, name) for name in _SCORE_FIELDS} for s in self.scores],
            "averages": [asdict(average) for average in averages],
        }
        write_json(file, content, indent=1)

    @classmethod
    def read(cls, file: Path) -> Results:
        """Read a results file; a damaged file, or another schema, is a `ResultsError`."""
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
        if schema < _OLDEST_SCHEMA:
            raise ResultsError(
                f"{file}: has schema {schema} and this version reads {_OLDEST_SCHEMA} to {SCHEMA}. "
                "Evaluate again."
            )
        try:
            return cls(
                model=content["model"],
                fingerprint=content["fingerprint"],
                scores=tuple(Score(**score) for score in content["scores"]),
            )
        except (KeyError, TypeError) as error:
            raise ResultsError(
                f"{file}: does not hold what schema {schema} asks for ({error}). Evaluate again."
            ) from error


def _identity(score: Score) -> Score:
    """A score without its value: equal for two scores of the same thing."""
    return replace(score, value=0.0, count=0, commit=None, selection=None, epoch=None)
