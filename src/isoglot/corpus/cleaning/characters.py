"""Classes of characters: spaces, digits, signs, marks, and letters by script.

A character is stable if no text of stable characters changes in normalization (`sentences`), apart
from its spaces: it is neither invisible nor white space other than a space, is its own Unicode
form, and combines with no character before it. Most texts are of stable characters with single
spaces between words; they need not be normalized.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from isoglot.corpus.cleaning.sentences import INVISIBLE
from isoglot.corpus.scripts import SCRIPTS
from isoglot.corpus.tokenization.vocabulary import SPACE_MARK

if TYPE_CHECKING:
    import numpy.typing as npt

    from isoglot.corpus.cleaning.sentences import UnicodeForm

SPACE, BROKEN, DIGIT, SIGN, MARK, FOREIGN = range(6)
"""Classes. BROKEN: U+FFFD and lone surrogates, from an earlier wrong decoding. MARK: combining with
letters of several scripts. FOREIGN: a letter of a script of no known language."""

SCRIPT_NAMES = tuple(sorted({script for scripts in SCRIPTS.values() for script in scripts}))
_FIRST_SCRIPT = FOREIGN + 1
NUM_CLASSES = _FIRST_SCRIPT + len(SCRIPT_NAMES)
LAST_CODE = 0x32000
"""All letters lie before it."""
CHANGES = 64
"""Added to the class of a character that is not stable."""
_JAMO = (*range(0x1161, 0x1176), *range(0x11A8, 0x11C3))
"""Vowels and final consonants of Korean, which combine with what is before them."""
_SHARED = ("COMBINING", "MODIFIER", "MASCULINE", "FEMININE", "MICRO", "IDEOGRAPHIC", "DOUBLE")


def script_class(script: str) -> int:
    """The class of the letters of a script."""
    return _FIRST_SCRIPT + SCRIPT_NAMES.index(script)


@cache
def class_table() -> npt.NDArray[np.uint8]:
    """The class of every code point up to `LAST_CODE`, which stands for all after it: signs."""
    table = np.full(LAST_CODE + 1, SIGN, np.uint8)
    numbers = {script: script_class(script) for script in SCRIPT_NAMES}
    for code in range(LAST_CODE):
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
    """The script of a letter: the first word of its Unicode name; empty where several share it."""
    words = unicodedata.name(letter, "UNNAMED").replace("-", " ").split()
    if words[0] in ("FULLWIDTH", "HALFWIDTH"):
        return words[1]
    return "" if words[0] in _SHARED else words[0]


@cache
def stability_table(form: UnicodeForm) -> npt.NDArray[np.uint8]:
    """`class_table`, with `CHANGES` added where a character is not stable in this Unicode form."""
    table = class_table().copy()
    characters = "".join(map(chr, range(LAST_CODE)))
    unstable = {*_JAMO, ord(SPACE_MARK), *map(ord, re.findall(INVISIBLE, characters))}
    unstable.update(code for code in np.flatnonzero(table == SPACE).tolist() if code != ord(" "))
    for code, character in enumerate(characters):
        if unicodedata.combining(character) or unicodedata.normalize(form, character) != character:
            unstable.add(code)
        found = unicodedata.decomposition(character)
        if found and not found.startswith("<"):
            # the second character of a pair may combine with a first one before it
            unstable.update(int(part, 16) for part in found.split()[1:])
    table[sorted(unstable)] += CHANGES
    return table
