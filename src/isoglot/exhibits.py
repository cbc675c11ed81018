"""What a report shows of a model beside its scores: a map of its sentences, and words that meet.

They need the model, so an evaluation makes them (`isoglot.evaluate.exhibits`) and keeps them in
exhibits.json beside results.json; a report only draws them.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import cattrs

from isoglot.errors import IsoglotError
from isoglot.whole_file import write_json

if TYPE_CHECKING:
    from pathlib import Path

FILE = "exhibits.json"
SCHEMA = 1


class ExhibitsError(IsoglotError):
    """An exhibits file is damaged, or comes from another version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """Sentences of several languages in two dimensions."""

    layer: int
    method: str
    """How the vectors were brought to two dimensions, in words."""
    points: dict[str, tuple[tuple[float, float], ...]]
    """Language -> its sentences' places."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """The words of a sentence against the words of its translation."""

    language: str
    """The pair: `en-sw`."""
    layer: int
    first: tuple[str, ...]
    second: tuple[str, ...]
    cosines: tuple[tuple[float, ...], ...]
    """One row for each word of the first sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exhibits:
    """Everything kept of one model."""

    fingerprint: str
    """SHA-256 of the model's weights, as in its results."""
    space: Space | None = None
    grids: tuple[Grid, ...] = ()

    def write(self, file: Path) -> None:
        """Write them as JSON, whole or not at all."""
        write_json(file, {"schema": SCHEMA, **asdict(self)})

    @classmethod
    def read(cls, file: Path) -> Exhibits:
        """Read them back.

        Raises:
            ExhibitsError: the file is damaged or of another schema.
        """
        try:
            content = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ExhibitsError(f"{file}: cannot be read ({error}). Evaluate again.") from error
        schema = content.pop("schema", None) if isinstance(content, dict) else None
        if schema != SCHEMA:
            raise ExhibitsError(
                f"{file}: has schema {schema}, this version reads {SCHEMA}. Evaluate again."
            )
        try:
            return cattrs.Converter(forbid_extra_keys=True).structure(content, cls)
        except cattrs.BaseValidationError as error:
            fault = "; ".join(cattrs.transform_error(error)[:3])
            raise ExhibitsError(f"{file}: is damaged ({fault}). Evaluate again.") from error
