"""Settings of `isoglot adapt`: what a user gives, and nothing that can be found out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Literal

from isoglot.errors import RecipeError, nearest, require
from isoglot.languages import (
    NAMES,
    canonical,
    code_of_name,
    is_language,
    language_sides,
    plain_code,
    split_pair,
)
from isoglot.ranges import Range, Seed, check_ranges

if TYPE_CHECKING:
    from collections.abc import Mapping

_RARE_CODE = 3
"""Letters of codes of ISO 639-3, most of which have no name in our table; all of two letters do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptConfig:
    """One adaptation: an encoder and the data of its languages."""

    encoder: str
    """The encoder to start from: a Hugging Face folder, a run or a name on the hub."""
    text: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Running text of each language: files, patterns, folders, URLs, hub datasets or names that
    `isoglot fetch` knows."""
    pairs: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Translations by pair of languages (en-sw), named as text is."""
    dictionaries: tuple[str, ...] = ()
    """Bilingual dictionaries (a word and its translation on each line), to initialize new words."""
    knowledge: str | None = None
    """Folder of tables with entities, mentions and facts, of `isoglot knowledge extract` or
    `graph`."""
    tests: tuple[str, ...] = ()
    """Files of test sets: their lines are kept out of training."""
    alignments: tuple[str, ...] = ()
    """Folders with gold word alignments to score before and after."""
    hours: Annotated[float | None, Range(0, 10_000, above=True)] = None
    """Time for everything; none: as many passes over the data as its size suggests."""
    vocabulary: Annotated[Literal["auto", "keep"] | int, Range(1, 10**6)] = "auto"
    """Words to add to the vocabulary; auto: where words of a language are split too finely."""
    heldout: Annotated[int, Range(10, 10**6)] = 1000
    """Lines of each language, and pairs, that are held out for the scores before and after."""
    early_stopping: bool = False
    """Stop when held-out scores no longer improve, and export the best checkpoint."""
    license: str | None = None
    """License of the model that is written, for its card."""
    workers: Annotated[int | None, Range(1, 1024)] = None
    """Processes that prepare the data; none: one for each core."""
    seed: Seed = 0
    """Random seed of the held-out lines and of training."""

    def __post_init__(self) -> None:
        check_ranges(self)
        object.__setattr__(self, "text", by_language(self.text))
        object.__setattr__(self, "pairs", by_pair(self.pairs))
        require(
            bool(self.text or self.pairs),
            "there is nothing to learn from: give text (--text sw=FILE) or pairs (--pairs "
            "en-sw=FILE).",
        )

    @property
    def languages(self) -> tuple[str, ...]:
        """All languages, in the order in which they are named."""
        sides = (code for pair in self.pairs for code in language_sides(pair))
        return tuple(dict.fromkeys((*self.text, *sides)))


def by_language(given: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Names of data by the code of their language; two spellings of one language are joined."""
    found: dict[str, tuple[str, ...]] = {}
    for spelled, names in given.items():
        code = _language(spelled, f"text: {spelled!r}")
        found[code] = (*found.get(code, ()), *names)
    return found


def by_pair(given: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Names of data by the code of their pair of languages, in the order of its two sides."""
    found: dict[str, tuple[str, ...]] = {}
    for spelled, names in given.items():
        sides = split_pair(spelled)
        codes = () if sides is None else tuple(_language(s, f"pairs: {spelled!r}") for s in sides)
        require(
            len(set(codes)) == 2,
            f"pairs: {spelled!r} does not name two languages. Write --pairs en-sw=FILE, the "
            "language of the first column or file first.",
        )
        reverse = "-".join(reversed(codes))
        require(
            reverse not in found,
            f"pairs: {spelled!r} is also given as {reverse!r}. Give all pairs of two languages in "
            "one order, the language of the first column or file first.",
        )
        code = "-".join(codes)
        found[code] = (*found.get(code, ()), *names)
    return found


def _language(spelled: str, where: str) -> str:
    """The code of a language by its code in any spelling, or by its English name."""
    code = code_of_name(spelled) or canonical(spelled)
    known = plain_code(code) in NAMES or len(plain_code(code)) == _RARE_CODE
    if not (is_language(spelled) and known):
        raise RecipeError(
            f"{where} is no code of a language: write the one of BCP 47 or ISO 639, such as sw or "
            f"pt_BR, or its English name; {nearest(spelled, [*NAMES.values()])}"
        )
    return code
