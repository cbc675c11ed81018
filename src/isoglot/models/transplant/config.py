"""Settings of a transplant; the defaults are MetaXLM's (Chi et al., 2021)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from isoglot.errors import require
from isoglot.ranges import Probability, Range, Seed, check_ranges

Fallback = Literal["random", "subwords", "zero"]
Translations = Literal["mean", "first"]
SourceColumn = Literal["auto", "first", "second", "either"]
Order = Literal["dictionary", "spelling"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TransplantConfig:
    """How a model takes over the vocabulary of another tokenizer."""

    initialize: Literal["both", "body", "embeddings", "none"] = "both"
    """What comes from the source: the body, the embeddings (and the LM head's bias), or both."""
    fallback: Fallback = "random"
    """A token without a match: normally distributed like the source's, mean of its subwords, 0."""
    translations: Translations = "mean"
    """A word with several translations: the mean of those that are found, or the first."""
    order: Order = "dictionary"
    """What a word is looked up by first: the dictionaries (+Dict), or its spelling."""
    boundary: bool = True
    """Match tokens of equal text of which only one begins a word."""
    translation_subwords: bool = True
    """A translation that is no token of the source becomes the mean of its subwords."""
    strict: bool = False
    """Only exact and normalized matches, as MetaXLM says: the two settings above are off."""
    dictionaries: tuple[str, ...] = ()
    """Files of words and translations, or patterns of files: dictionaries/en-*.txt."""
    source_column: SourceColumn = "auto"
    """The dictionaries' column with the words of the source model's language; auto: in each file
    the one more of whose words are tokens of the source; either: both orders in one file."""
    max_malformed_ratio: Probability = 0.01
    """Share of a dictionary's lines that may be malformed; with more it is refused."""
    max_positions: Annotated[int | None, Range(8, 2**20)] = None
    """Position embeddings of the new model; none: as many as the source's."""
    seed: Seed = 0
    """Random seed of new embeddings."""

    def __post_init__(self) -> None:
        check_ranges(self)
        require(
            self.source_column != "either" or self.order == "spelling",
            "source_column: with `either` the source's own words are looked up in the dictionaries "
            "too and would become their translations. Set order=spelling, or name the column.",
        )
