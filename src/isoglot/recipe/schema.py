"""What a recipe says: what a reader wants to know of it, and the settings of a pre-training run."""

from __future__ import annotations

from dataclasses import dataclass

from isoglot.pretrain.config import PretrainConfig


# without slots: a class cannot have two parents that both have them
@dataclass(frozen=True, kw_only=True)
class About:
    """What a recipe is, for its readers."""

    name: str
    """What it is called."""
    summary: str = ""
    """One line: what it trains."""
    paper: str = ""
    """The paper it follows."""
    differs: tuple[str, ...] = ()
    """Where it differs from the paper, and why."""
    corpus: str | None = None
    """The corpus it uses unless told otherwise; `testbed` makes one, as does
    `testbed-en` in English; `testbed-uneven` has words with favourite company."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe(PretrainConfig, About):
    """A pre-training run with a name."""
