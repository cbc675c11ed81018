"""Visualizations of a model in a report: maps of sentences and words, similarity grids of words.

They need the model, so an evaluation computes them (`isoglot.evaluation.visualize`) and writes them
next to its results file: visualizations.json beside results.json, NAME.visualizations.json beside
NAME.json. A report only draws them.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import cattrs

from isoglot import json_text
from isoglot.atomic import write_json
from isoglot.errors import IsoglotError

if TYPE_CHECKING:
    from pathlib import Path

FILE = "visualizations.json"
SCHEMA = 3
_OLDEST_SCHEMA = 2
"""Schema 2 had no map of words."""


class VisualizationsError(IsoglotError):
    """A visualizations file is damaged, or comes from another version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceMap:
    """Sentences, or words, of several languages in two dimensions."""

    layer: int | None
    """None: the embedding table."""
    method: str
    """The dimensionality reduction, in words."""
    points: dict[str, tuple[tuple[float, float], ...]]
    """Language -> coordinates of its sentences or words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarityGrid:
    """Cosines between the words of a sentence and the words of its translation."""

    language: str
    """The language pair: `en-sw`."""
    layer: int
    first: tuple[str, ...]
    second: tuple[str, ...]
    cosines: tuple[tuple[float, ...], ...]
    """One row for each word of the first sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Visualizations:
    """All visualizations of one model."""

    fingerprint: str
    """SHA-256 of the model's weights, as in its results."""
    sentence_map: SentenceMap | None = None
    word_map: SentenceMap | None = None
    """The words of dictionaries (MLM-GC, Figure 2)."""
    grids: tuple[SimilarityGrid, ...] = ()

    def write(self, file: Path) -> None:
        """Write the visualizations as JSON, atomically."""
        write_json(file, {"schema": SCHEMA, **asdict(self)})

    @classmethod
    def read(cls, file: Path) -> Visualizations:
        """Read a visualizations file; damage, or another schema, is a `VisualizationsError`."""
        try:
            content = json_text.parse(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise VisualizationsError(
                f"{file}: cannot be read ({error}). Evaluate again."
            ) from error
        schema = content.pop("schema", None) if isinstance(content, dict) else None
        if schema not in range(_OLDEST_SCHEMA, SCHEMA + 1):
            raise VisualizationsError(
                f"{file}: has schema {schema}, this version reads {_OLDEST_SCHEMA} to {SCHEMA}. "
                "Evaluate again."
            )
        try:
            return cattrs.Converter(forbid_extra_keys=True).structure(content, cls)
        except cattrs.BaseValidationError as error:
            fault = "; ".join(cattrs.transform_error(error)[:3])
            raise VisualizationsError(f"{file}: is damaged ({fault}). Evaluate again.") from error


def visualizations_file(results: Path) -> Path:
    """The visualizations beside a results file, so that those of two models do not share one."""
    own = FILE if results.name == "results.json" else f"{results.stem}.{FILE}"
    return results.with_name(own)
