"""Settings of a transplant; the defaults are MetaXLM's (Chi et al., 2021)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from isoglot.errors import require

Fallback = Literal["random", "subwords", "zero"]
Translations = Literal["mean", "first"]
SourceColumn = Literal["first", "second", "either"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TransplantConfig:
    """How a model takes over the vocabulary of another tokenizer."""

    initialize: Literal["both", "body", "embeddings", "none"] = "both"
    """What comes from the source: the body, the embeddings (and the LM head's bias), or both."""
    fallback: Fallback = "random"
    """A token without a match: normally distributed like the source's, mean of its subwords, 0."""
    translations: Translations = "mean"
    """A word with several translations: the mean of those that are found, or the first."""
    dictionaries: tuple[str, ...] = ()
    """Files of words and translations, or patterns of files: dictionaries/en-*.txt."""
    source_column: SourceColumn = "either"
    """The dictionaries' column with the words of the source model's language."""
    max_malformed_ratio: float = 0.01
    """Share of a dictionary's lines that may be malformed; with more it is refused."""
    max_positions: int | None = None
    """Position embeddings of the new model; none: as many as the source's."""
    seed: int = 0
    """Random seed of new embeddings."""

    def __post_init__(self) -> None:
        require(
            self.max_positions is None or self.max_positions > 0,
            f"max_positions: {self.max_positions} must be 1 or more, or left out.",
        )
        require(
            0 <= self.max_malformed_ratio <= 1,
            f"max_malformed_ratio: {self.max_malformed_ratio} is not in 0 to 1.",
        )
