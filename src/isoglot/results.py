"""Results files: scores with the task's version, the number of examples and the direction.

A results file is a JSON object with `schema`, the model (its folder, the fingerprint of its
weights), isoglot's version and a list of `Score`s. Scores of different task versions are not
comparable. Schema 3 to 5 are read: 5 added intervals and the hash of the data. In older files
commit and selection rule were not kept with each score, and they are refused.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from isoglot import __version__, json_text
from isoglot.atomic import write_json
from isoglot.errors import IsoglotError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from _typeshed import DataclassInstance

SCHEMA = 5
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
    low: float | None = None
    """2.5 % quantile of a bootstrap over the examples; none where it is not computed."""
    high: float | None = None
    """97.5 % quantile; none likewise."""
    chance: float | None = None
    """What the most frequent answer scores; none where a guess is worth nothing."""
    layer: int | None = None
    """Layer of the encoder, 0 for the embeddings; none: no layer, or the exported vectors."""
    seed: int | None = None
    """Random seed of the fine-tuning; none without fine-tuning."""
    scenario: str | None = None
    """Fine-tuning scenario (`zero-shot from en, xtreme`) or feature settings; none: defaults."""
    selection: str | None = None
    """Selection rule of the fine-tuned checkpoint; none without fine-tuning."""
    epoch: int | None = None
    """Epoch, from 1, of the model that was scored; none without fine-tuning."""
    halves: tuple[float, float] | None = None
    """Values over the even and the odd examples: a layer is chosen on one and scored on the other.
    """
    outcomes: str | None = None
    """The examples that are right, packed (`isoglot.intervals`), to compare two models in pairs."""
    data: str | None = None
    """Hash of the examples, so that a changed file is scored again; none in older files."""
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
        """These results with other scores added.

        They replace scores of the same thing, and all scores of a task in a language, scenario and
        seed that are of other data than theirs.
        """
        added = tuple(scores)
        again = {score_identity(score) for score in added}
        data = {_cell(score): score.data for score in added if score.data is not None}
        kept = (
            score
            for score in self.scores
            if score_identity(score) not in again and data.get(_cell(score)) in (None, score.data)
        )
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
            content = json_text.parse(file.read_text(encoding="utf-8"))
        except OSError as error:
            raise ResultsError(f"{file}: cannot be read ({error.strerror}).") from error
        except ValueError as error:
            raise ResultsError(f"{file}: is not JSON ({error}). Evaluate again.") from error
        schema = content.get("schema") if isinstance(content, dict) else None
        if not isinstance(schema, int):
            raise ResultsError(
                f"{file}: has no schema number, so it is not a results file of Isoglot."
            )
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
                model=str(content["model"]),
                fingerprint=str(content["fingerprint"]),
                scores=tuple(_score(score) for score in content["scores"]),
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ResultsError(
                f"{file}: does not hold what schema {schema} asks for ({error}). Evaluate again."
            ) from error


_TEXTS = ("task", "language", "metric")
_OPTIONAL_TEXTS = ("scenario", "selection", "outcomes", "data", "commit")
_NUMBERS = ("version", "count", "layer", "seed", "epoch")


def _score(content: dict[str, Any]) -> Score:
    """The score of a JSON object; a `TypeError` if a value has another type than written."""
    if content.get("halves") is not None:
        content["halves"] = tuple(map(float, content["halves"]))
    score = Score(**content)
    texts = [getattr(score, name) for name in _TEXTS]
    texts += [value for name in _OPTIONAL_TEXTS if (value := getattr(score, name)) is not None]
    numbers = [value for name in _NUMBERS if (value := getattr(score, name)) is not None]
    if not all(isinstance(text, str) for text in texts):
        raise TypeError("a name is not text")
    if not all(type(number) is int for number in numbers):
        raise TypeError("a count is not a whole number")
    values = [score.value, *(x for x in (score.low, score.high, score.chance) if x is not None)]
    if any(type(value) not in (int, float) for value in values):
        raise TypeError("a value is not a number")
    if not isinstance(score.higher_is_better, bool):
        raise TypeError("higher_is_better is neither true nor false")
    return score


def score_identity(score: Score) -> tuple[object, ...]:
    """What a score is of: equal for two scores of the same thing."""
    return tuple(getattr(score, name) for name in _IDENTITY)


def _cell(score: Score) -> tuple[object, ...]:
    return score.task, score.language, score.scenario, score.seed


_IDENTITY = (
    *("task", "version", "language", "metric", "higher_is_better", "layer", "seed", "scenario"),
)
