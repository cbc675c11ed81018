"""Settings of a transplant, with the paper's choices as defaults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from isoglot.errors import require
from isoglot.models.transplant.dictionary import SourceColumn

Fallback = Literal["random", "pieces", "zero"]
Translations = Literal["mean", "first"]
Initialise = Literal["both", "body", "embeddings", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TransplantConfig:
    """How a model takes over another tokenizer's vocabulary."""

    initialise: Initialise = "both"
    """What comes from the source: the body, the embeddings (and the LM head's words), or both."""
    fallback: Fallback = "random"
    """A token without a match: drawn with the source's deviation, mean of its pieces, or zero."""
    translations: Translations = "mean"
    """A word with several translations: the mean of those that are found, or the first."""
    dictionaries: tuple[str, ...] = ()
    """Files of words and translations, or patterns for them: dictionaries/en-*.txt."""
    source_column: SourceColumn = "either"
    """The dictionaries' column with the words of the source model's language."""
    max_broken: float = 0.01
    """Share of a dictionary's lines that may be broken; more, and it is refused."""
    positions: int | None = None
    """Longest sequence of the new model; left out, the source's own."""
    seed: int = 0
    """Of all that is drawn at random."""

    def __post_init__(self) -> None:
        require(
            self.positions is None or self.positions > 0,
            f"positions: {self.positions} is no length. Give at least 1, or leave it out.",
        )
        require(0 <= self.max_broken <= 1, f"max_broken: {self.max_broken} is not in 0 to 1.")
