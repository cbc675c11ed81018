"""Makes the texts of a source normal, and says why the records it drops are dropped."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isoglot.corpus.clean.checks import PAIR_CHECKS, TEXT_CHECKS, Side
from isoglot.corpus.clean.normal import normalise
from isoglot.corpus.identify import Identifier

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isoglot.corpus.clean.settings import CleanConfig


class Cleaner:
    """The cleaning of one language, or of one pair of languages."""

    def __init__(self, config: CleanConfig, languages: Sequence[str]) -> None:
        """Languages are as the settings name them, in the order of the texts."""
        self._config = config
        self._languages = tuple(languages)
        self._checks = PAIR_CHECKS if len(languages) == 2 else TEXT_CHECKS
        self._identifier = None if config.language_confidence is None else Identifier.open()

    def normalise(self, text: str) -> str:
        """The text without unseen characters, with single spaces, in the chosen Unicode form."""
        return normalise(text, self._config.unicode)

    def reasons(self, records: Sequence[tuple[str, ...]]) -> list[str | None]:
        """Why each record of normalised texts is dropped: the first reason; None to keep it.

        Quick for a thousand records or more at a time; the reasons do not depend on how many.
        """
        found: list[str | None] = [None] * len(records)
        if not records:
            return found
        columns = zip(*records, strict=True)
        sides = [Side(texts, code) for texts, code in zip(columns, self._languages, strict=True)]
        left = np.ones(len(records), np.bool_)
        for reason, check in self._checks.items():
            dropped = left & check(sides, self._config)
            for index in np.flatnonzero(dropped).tolist():
                found[index] = reason
            left &= ~dropped
        self._identify(records, found)
        return found

    def _identify(self, records: Sequence[tuple[str, ...]], found: list[str | None]) -> None:
        """Language identification, the slowest check, of what is left."""
        least = self._config.language_confidence
        if self._identifier is None or least is None:
            return
        for side, language in enumerate(self._languages):
            left = [index for index, reason in enumerate(found) if reason is None]
            texts = [records[index][side] for index in left]
            other = self._identifier.is_other(texts, language, least)
            for index in np.flatnonzero(other).tolist():
                found[left[index]] = "language"


def why_dropped(
    texts: tuple[str, ...], config: CleanConfig, languages: Sequence[str] = ()
) -> str | None:
    """The reason to drop one record of normalised texts; None to keep it."""
    known = languages or ("",) * len(texts)
    return Cleaner(config, known).reasons([texts])[0]
