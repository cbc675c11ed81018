"""One choice of a plan, with its reason."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One choice of a plan."""

    topic: str
    """What is chosen: objectives, vocabulary, learning rate, ..."""
    choice: str
    reason: str
    """Why, with the number that decided."""
