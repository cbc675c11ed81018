"""The checks: each looks at many records at once and says which of them to drop.

A check is a function of the sides of a batch (one for text, two for pairs) and the settings. The
first check that drops a record names the reason, which is counted into the manifest. A new check is
one function and one entry in `TEXT_CHECKS` or `PAIR_CHECKS`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from isoglot.corpus.clean.characters import BROKEN, SIGN, Counted
from isoglot.corpus.clean.settings import CleanConfig
from isoglot.corpus.languages import scripts_of
from isoglot.types import BoolArray, LongArray


class Side:
    """The normalised texts of one language of a batch, and what is counted in them."""

    def __init__(self, texts: Sequence[str], language: str) -> None:
        """Counting waits until a check asks."""
        self.texts = texts
        self.language = language

    @cached_property
    def counted(self) -> Counted:
        """The characters of each text, by class."""
        return Counted(self.texts)

    @cached_property
    def letters(self) -> LongArray:
        """Letters of each text."""
        return self.counted.letters()


Check = Callable[[Sequence[Side], CleanConfig], BoolArray]


def empty(sides: Sequence[Side], config: CleanConfig) -> BoolArray:
    """Nothing is left of the text, or of one side of the pair."""
    del config
    return _any([side.counted.characters == 0 for side in sides])


def broken(sides: Sequence[Side], config: CleanConfig) -> BoolArray:
    """The text holds a sign that a decoder puts where it could not read."""
    del config
    return _any([side.counted.within(BROKEN, BROKEN) > 0 for side in sides])


def too_short(sides: Sequence[Side], config: CleanConfig) -> BoolArray:
    """A text is shorter than `min_characters`."""
    return _any([side.counted.characters < config.min_characters for side in sides])


def too_long(sides: Sequence[Side], config: CleanConfig) -> BoolArray:
    """A text is longer than `max_characters`: most often not a sentence at all."""
    return _any([side.counted.characters > config.max_characters for side in sides])


def few_letters(sides: Sequence[Side], config: CleanConfig) -> BoolArray:
    """A text is mostly digits and punctuation: a table, a formula, a menu."""
    return _any(
        [
            side.letters < config.min_letters * (side.letters + side.counted.within(BROKEN, SIGN))
            for side in sides
        ]
    )


def other_script(sides: Sequence[Side], config: CleanConfig) -> BoolArray:
    """Most letters of a text are of another script than its language's."""
    found = []
    for side in sides:
        scripts = scripts_of(side.language)
        if scripts:
            own, all_ = side.counted.of_scripts(scripts), side.counted.scripted()
            found.append(own < config.min_script * all_)
    return _any(found) if found else np.zeros(len(sides[0].texts), np.bool_)


def identical(sides: Sequence[Side], config: CleanConfig) -> BoolArray:
    """Both sides are the same: not translated."""
    del config
    pairs = zip(sides[0].texts, sides[1].texts, strict=True)
    return np.fromiter((one == other for one, other in pairs), np.bool_, len(sides[0].texts))


def near_empty(sides: Sequence[Side], config: CleanConfig) -> BoolArray:
    """One side has next to nothing where the other has a sentence."""
    shorter, longer = _bytes(sides)
    return (shorter <= config.near_empty) & (longer >= config.ratio_floor)


def unequal(sides: Sequence[Side], config: CleanConfig) -> BoolArray:
    """One side is much longer than the other: not a translation of it."""
    shorter, longer = _bytes(sides)
    return np.asarray(longer > config.max_ratio * np.maximum(shorter, config.ratio_floor))


TEXT_CHECKS: dict[str, Check] = {
    "empty": empty,
    "encoding": broken,
    "too short": too_short,
    "too long": too_long,
    "few letters": few_letters,
    "script": other_script,
}
"""Reason -> check, in the order in which they are made."""

PAIR_CHECKS: dict[str, Check] = {
    **TEXT_CHECKS,
    "identical": identical,
    "near-empty": near_empty,
    "length ratio": unequal,
}


def _bytes(sides: Sequence[Side]) -> tuple[LongArray, LongArray]:
    """The UTF-8 bytes of the shorter side of each pair, and of the longer."""
    one, other = (side.counted.bytes for side in sides)
    return np.minimum(one, other), np.maximum(one, other)


def _any(found: list[BoolArray]) -> BoolArray:
    return np.asarray(np.logical_or.reduce(found))
