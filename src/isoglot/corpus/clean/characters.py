"""What kind of character each is, counted over many texts at once.

Every code point has a class of one byte: a space, a digit, a sign, a letter of a script. Texts are
joined, their characters looked up in one table, and the counts of each text read off cumulative
sums: about a microsecond for a sentence, where a loop over its characters takes ten.

A letter's script is the first word of its Unicode name, as in `isoglot.corpus.scripts`.
"""

from __future__ import annotations

import unicodedata
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from isoglot.corpus.languages import SCRIPTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from isoglot.types import BoolArray, LongArray

SPACE, BROKEN, DIGIT, SIGN, MARK, FOREIGN = range(6)
"""Classes. BROKEN: U+FFFD and halves of characters, left by an earlier wrong decoding. MARK: what
is written with letters of several scripts. FOREIGN: a letter of a script no language here has."""

SCRIPT_NAMES = tuple(sorted({script for scripts in SCRIPTS.values() for script in scripts}))
_FIRST_SCRIPT = FOREIGN + 1
_LAST = 0x32000  # all letters lie before it
_NO_SCRIPT = ("COMBINING", "MODIFIER", "MASCULINE", "FEMININE", "MICRO", "IDEOGRAPHIC", "DOUBLE")


class Counted:
    """The characters of some texts, by class."""

    def __init__(self, texts: Sequence[str]) -> None:
        """The texts of a batch, any number of them, empty ones too."""
        codes = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), np.uint32)
        self._classes = _table()[np.minimum(codes, _LAST)]
        self._ends = np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)))
        self.characters = np.diff(self._ends, prepend=0)
        self.bytes = self.characters + self._count(codes >= 0x80)
        self.bytes += self._count(codes >= 0x800) + self._count(codes >= 0x10000)

    def within(self, first: int, last: int) -> LongArray:
        """How many characters of each text are of the classes from `first` to `last`."""
        return self._count((self._classes >= first) & (self._classes <= last))

    def letters(self) -> LongArray:
        """Letters and marks of each text."""
        return self._count(self._classes >= MARK)

    def scripted(self) -> LongArray:
        """Letters of each text that belong to one script."""
        return self._count(self._classes >= FOREIGN)

    def of_scripts(self, scripts: Sequence[str]) -> LongArray:
        """Letters of each text that belong to one of these scripts."""
        wanted = np.zeros(_FIRST_SCRIPT + len(SCRIPT_NAMES), np.bool_)
        wanted[[_FIRST_SCRIPT + SCRIPT_NAMES.index(script) for script in scripts]] = True
        return self._count(wanted[self._classes])

    def _count(self, chosen: BoolArray) -> LongArray:
        """How many characters of each text are chosen."""
        sums = np.concatenate([[0], np.cumsum(chosen, dtype=np.int32)])[self._ends]
        return np.diff(sums, prepend=0)


@cache
def _table() -> npt.NDArray[np.uint8]:
    """The class of every code point; all after the last letters are signs."""
    table = np.full(_LAST + 1, SIGN, np.uint8)
    numbers = {script: _FIRST_SCRIPT + index for index, script in enumerate(SCRIPT_NAMES)}
    for code in range(_LAST):
        character = chr(code)
        if character.isspace():
            table[code] = SPACE
        elif character.isalpha():
            table[code] = numbers.get(_script(character), FOREIGN) if _script(character) else MARK
        elif character.isdigit():
            table[code] = DIGIT
        elif unicodedata.category(character) in ("Mn", "Mc", "Cf"):
            table[code] = MARK
    table[0xD800:0xE000] = BROKEN
    table[0xFFFD] = BROKEN
    return table


def _script(letter: str) -> str:
    """The script of a letter; nothing where several share it."""
    words = unicodedata.name(letter, "UNNAMED").replace("-", " ").split()
    if words[0] in ("FULLWIDTH", "HALFWIDTH"):
        return words[1]
    return "" if words[0] in _NO_SCRIPT else words[0]
