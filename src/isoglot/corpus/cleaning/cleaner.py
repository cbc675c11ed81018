"""Cleaning of records: settings, normalization and checks, and the reasons for dropping a line.

A check looks at a batch of records: a check of texts at one side of it (a text has one side, a pair
two), a check of pairs at both. The first check that drops a record names the reason, which is
counted into the manifest. A new check is one function, one entry in `TEXT_CHECKS` or `PAIR_CHECKS`,
and one in `DROP_REASONS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import numpy as np

from isoglot.corpus.cleaning.characters import (
    BROKEN,
    FOREIGN,
    MARK,
    NUM_CLASSES,
    SIGN,
    script_class,
    stability_table,
)
from isoglot.corpus.cleaning.sentences import UnicodeForm, normalize_text
from isoglot.corpus.scripts import scripts_of
from isoglot.errors import require
from isoglot.ranges import Probability, Range, check_ranges

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy.typing as npt

    from isoglot.types import BoolArray, LongArray

DROP_REASONS: dict[str, str] = {
    # readers
    "blank": "The line is blank; in format `lines` it ends a document.",
    "header": "The line names the columns.",
    "endless": "The line is longer than 64 MiB.",
    "columns": "The line has another number of columns (the source's `format`).",
    "quotes": "The row of a CSV file has text after a closing quote.",
    "not JSON": "The line is not a JSON object.",
    "no field": "The object or row has no text in the field that is read (the source's `options`).",
    "no text": "The sentence has no comment with its text.",
    "unmatched": "The id, or the text in one of the two languages, has no counterpart.",
    "repeated": "The id occurred before.",
    "untranslated": "The unit has no target.",
    "other languages": "The unit is in other languages than the pair's.",
    "unaligned": "The paragraph has no counterpart in the other document.",
    # cleaning
    "encoding": "The text is not UTF-8, or holds U+FFFD, the sign of an earlier wrong decoding.",
    "empty": "The text, or one side of the pair, is empty after normalization.",
    "too short": "A text is shorter than `clean.min_characters`.",
    "too long": "A text is longer than `clean.max_characters`.",
    "few letters": "A text is mostly digits and punctuation (`clean.min_letter_share`).",
    "script": "Most letters are of another script than the language's (`clean.min_script_share`).",
    "language": "The text is identified as another language (`clean.language_confidence`).",
    "identical": "Both sides of the pair are the same.",
    "near-empty": "One side of the pair is almost empty (`clean.near_empty_bytes`).",
    "length ratio": "One side of the pair is much longer than the other "
    "(`clean.max_length_ratio`).",
    # later stages
    "contaminated": "The text, or a side of the pair, is in an evaluation file (`exclude`).",
    "duplicate": "The same text or pair occurred before (`duplicates.scope`).",
    "near-duplicate": "Nearly the same text or pair occurred before (`duplicates.near`).",
    "special": "The tokenizer encodes a part of the text as a special token.",
    "no tokens": "The tokenizer gives no token for the text.",
}
"""Reason -> what it means."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanConfig:
    """How texts are normalized, and which records are dropped."""

    unicode: UnicodeForm = "NFC"
    """The Unicode form: composed (NFC), or with compatible characters unified as well (NFKC:
    full-width letters, ligatures, superscripts), as XLM-R's tokenizer does."""
    min_characters: Annotated[int, Range(0, 10**9)] = 1
    """Shortest text that is kept, in characters."""
    max_characters: Annotated[int, Range(1, 10**9)] = 5000
    """Longest text that is kept, in characters."""
    min_letter_share: Probability = 0.4
    """Smallest share of letters in a text, spaces not counted; the rest is digits and
    punctuation."""
    min_script_share: Probability = 0.2
    """Smallest share of a text's letters in the scripts of its language; names and code may be in
    others. A language whose scripts are not known is not checked."""
    language_confidence: Annotated[float | None, Range(0, 1)] = None
    """A text is dropped if it is identified as another language with this probability or more; none
    for no identification. Short sentences are easily mistaken: 0.9 is a good value."""
    max_length_ratio: Annotated[float, Range(1, 1e6)] = 5.0
    """A pair is dropped if one side is more than this many times as long as the other, in UTF-8
    bytes: in characters, Chinese would seem four times as short as English."""
    ratio_min_bytes: Annotated[int, Range(0, 10**9)] = 30
    """A side shorter than this many bytes counts as this long when sides are compared."""
    near_empty_bytes: Annotated[int, Range(0, 10**9)] = 3
    """A pair is dropped if one side has at most this many bytes and the other at least
    `ratio_min_bytes`."""

    def __post_init__(self) -> None:
        check_ranges(self)
        require(
            self.max_characters >= self.min_characters,
            "clean.max_characters must not be below clean.min_characters",
        )


class Cleaner:
    """The cleaning of one language, or of one pair of languages."""

    def __init__(self, config: CleanConfig, languages: Sequence[str]) -> None:
        """Languages are as the settings name them, in the order of the texts."""
        self._config = config
        self._languages = tuple(languages)
        self._identifier = None
        if config.language_confidence is not None:
            from isoglot.corpus.cleaning.language_id import LanguageIdentifier

            self._identifier = LanguageIdentifier.open()

    def clean(
        self, records: Sequence[tuple[str, ...]]
    ) -> tuple[list[tuple[str, ...]], list[str | None]]:
        """The normalized texts of each record, and the first reason to drop it; None to keep it.

        Normalized texts have no invisible characters, single spaces, and the Unicode form. Fast for
        a thousand records or more at a time; the results do not depend on how many.
        """
        found: list[str | None] = [None] * len(records)
        if not records:
            return [], found
        columns = zip(*records, strict=True)
        form = self._config.unicode
        sides = [
            Side(texts, code, form) for texts, code in zip(columns, self._languages, strict=True)
        ]
        for side in sides:
            side.normalize()
        left = np.ones(len(records), np.bool_)
        for reason, found_by_check in run_checks(sides, self._config):
            dropped = left & found_by_check
            for index in np.flatnonzero(dropped).tolist():
                found[index] = reason
            left &= ~dropped
        texts = list(zip(*(side.texts for side in sides), strict=True))
        self._identify(texts, found)
        return texts, found

    def _identify(self, records: Sequence[tuple[str, ...]], found: list[str | None]) -> None:
        """Language identification, the slowest check, of the records left."""
        confidence = self._config.language_confidence
        if self._identifier is None or confidence is None:
            return
        for side, language in enumerate(self._languages):
            left = [index for index, reason in enumerate(found) if reason is None]
            texts = [records[index][side] for index in left]
            other = self._identifier.is_other(texts, language, confidence)
            for index in np.flatnonzero(other).tolist():
                found[left[index]] = "language"


def run_checks(sides: Sequence[Side], config: CleanConfig) -> Iterator[tuple[str, BoolArray]]:
    """Reason -> which records it drops, in the order of the checks; a pair if either side is."""
    for reason, check in TEXT_CHECKS.items():
        yield reason, np.logical_or.reduce([check(side, config) for side in sides])
    if len(sides) == 2:
        for reason, check_pair in PAIR_CHECKS.items():
            yield reason, check_pair(sides[0], sides[1], config)


def few_letters(side: Side, config: CleanConfig) -> BoolArray:
    """A text is mostly digits and punctuation: a table, a formula, a menu."""
    letters = side.within(MARK)
    return letters < config.min_letter_share * (letters + side.within(BROKEN, SIGN))


def other_script(side: Side, config: CleanConfig) -> BoolArray:
    """Most letters of a text are of another script than its language's."""
    scripts = scripts_of(side.language)
    if not scripts:
        return np.zeros(len(side.texts), np.bool_)
    return side.of_scripts(scripts) < config.min_script_share * side.within(FOREIGN)


def identical(first: Side, second: Side, config: CleanConfig) -> BoolArray:
    """Both sides are the same: not translated."""
    del config
    pairs = zip(first.texts, second.texts, strict=True)
    return np.fromiter((one == other for one, other in pairs), np.bool_, len(first.texts))


def near_empty(first: Side, second: Side, config: CleanConfig) -> BoolArray:
    """One side is almost empty where the other has a sentence."""
    shorter, longer = _bytes(first, second)
    return (shorter <= config.near_empty_bytes) & (longer >= config.ratio_min_bytes)


def unequal(first: Side, second: Side, config: CleanConfig) -> BoolArray:
    """One side is much longer than the other: not a translation of it."""
    shorter, longer = _bytes(first, second)
    return longer > config.max_length_ratio * np.maximum(shorter, config.ratio_min_bytes)


def _bytes(first: Side, second: Side) -> tuple[LongArray, LongArray]:
    """The UTF-8 bytes of the shorter side of each pair, and of the longer."""
    one, other = first.bytes, second.bytes
    return np.minimum(one, other), np.maximum(one, other)


class Side:
    """The texts of one language of a batch, their characters counted by class.

    Every code point has a class of one byte. Texts are joined, and compiled code counts their
    characters: about 0.3 µs a sentence, where a loop in Python takes 10 µs.
    """

    def __init__(self, texts: Sequence[str], language: str, form: UnicodeForm = "NFC") -> None:
        """Texts may be empty; they are normalized only by `normalize`."""
        self.texts, self.language, self._form = list(texts), language, form
        self._counts, self.bytes, self._changes = _counted(self.texts, form)

    def normalize(self) -> None:
        """Normalizes the texts, and counts those again that this may change."""
        rows = np.flatnonzero(self._changes)
        if not len(rows):
            return
        changed = [normalize_text(self.texts[row], self._form) for row in rows.tolist()]
        for row, text in zip(rows.tolist(), changed, strict=True):
            self.texts[row] = text
        self._counts[rows], self.bytes[rows], _ = _counted(changed, self._form)

    @property
    def characters(self) -> LongArray:
        """The number of characters of each text."""
        return self.within(0)

    def within(self, first: int, last: int = NUM_CLASSES) -> LongArray:
        """How many characters of each text are of the classes from `first` to `last`."""
        found: LongArray = self._counts[:, first : last + 1].sum(axis=1, dtype=np.int64)
        return found

    def of_scripts(self, scripts: Sequence[str]) -> LongArray:
        """Letters of each text that belong to one of these scripts."""
        columns = [script_class(script) for script in scripts]
        found: LongArray = self._counts[:, columns].sum(axis=1, dtype=np.int64)
        return found


def _counted(
    texts: Sequence[str], form: UnicodeForm
) -> tuple[npt.NDArray[np.int32], LongArray, BoolArray]:
    # numba is loaded where texts are cleaned, not where settings are read
    from isoglot.corpus.cleaning.character_counts import count_characters

    return count_characters(texts, stability_table(form))


TEXT_CHECKS: dict[str, Callable[[Side, CleanConfig], BoolArray]] = {
    "empty": lambda side, _: side.characters == 0,
    "encoding": lambda side, _: side.within(BROKEN, BROKEN) > 0,
    "too short": lambda side, config: side.characters < config.min_characters,
    "too long": lambda side, config: side.characters > config.max_characters,
    "few letters": few_letters,
    "script": other_script,
}
"""Reason -> check, in the order in which they run."""

PAIR_CHECKS: dict[str, Callable[[Side, Side, CleanConfig], BoolArray]] = {
    "identical": identical,
    "near-empty": near_empty,
    "length ratio": unequal,
}
