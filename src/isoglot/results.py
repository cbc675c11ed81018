"""Scores as they are kept: each with its task's version, its count and its direction.

A results file is a JSON object with `schema`, what was scored (model, fingerprint, isoglot's
version) and a list of `Score`s. Scores of different task versions are not comparable.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from isoglot import __version__

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One number, and what is needed to compare it with another."""

    task: str
    version: int
    """Rises when scores of the task stop being comparable."""
    language: str
    metric: str
    value: float
    count: int
    """What the value is a mean over."""
    higher_is_better: bool = True
    layer: int | None = None
    """Layer of the encoder that was read, 0 for the embeddings; none where it does not apply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """All scores of one model."""

    model: str
    fingerprint: str
    """SHA-256 of the model's weights."""
    scores: tuple[Score, ...]

    def write(self, file: Path) -> None:
        """Write the results as JSON, whole or not at all."""
        content = {"schema": SCHEMA, "isoglot": __version__, **asdict(self)}
        file.parent.mkdir(parents=True, exist_ok=True)
        scratch = file.with_suffix(".writing")
        scratch.write_text(json.dumps(content, indent=1, ensure_ascii=False), encoding="utf-8")
        scratch.replace(file)
