"""What a recipe says: the settings of a pre-training run, and what a reader wants to know of it."""

from __future__ import annotations

from dataclasses import dataclass

from isoglot.pretrain.config import PretrainConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe(PretrainConfig):
    """A pre-training run with a name."""

    name: str
    """What it is called."""
    summary: str = ""
    """One line: what it trains."""
    paper: str = ""
    """The paper it follows."""
    differs: tuple[str, ...] = ()
    """Where it differs from the paper, and why."""
    corpus: str | None = None
    """The prepared corpus it uses unless told otherwise; `testbed` makes one."""
