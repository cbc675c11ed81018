"""Text for `--small`: the testbed's English, in an alphabet of its own for each language.

A language here is English with its letters replaced one by one, by letters of the script that the
language is written in. So all languages are translations of each other, character by character: the
span of an answer or a mention is the same in all of them.
"""

from __future__ import annotations

import random
import string
import sys
import unicodedata
from functools import cache

from isoglot.corpus.scripts import scripts_of
from isoglot.testbed import World

WORLD = World(num_concepts=60, max_entities=24)
_LETTERS = string.ascii_lowercase


def said_in(language: str, text: str) -> str:
    """An English text in another language: as many characters, each at the same place."""
    return text if language == "en" else text.lower().translate(_alphabet(language))


@cache
def _alphabet(language: str) -> dict[int, int]:
    scripts = [script for script in scripts_of(language) if script != "LATIN"]
    letters = _letters_of(scripts[0]) if scripts else _LETTERS
    shuffled = random.Random(language).sample(letters, len(_LETTERS))  # noqa: S311 (no secret)
    return str.maketrans(_LETTERS, "".join(shuffled))


@cache
def _letters_of(script: str) -> str:
    found = (
        letter
        for letter in map(chr, range(0x370, min(sys.maxunicode, 0xFFFF)))
        if unicodedata.category(letter) in ("Ll", "Lo")
        and unicodedata.name(letter, "").startswith(f"{script} ")
        and unicodedata.normalize("NFKC", letter) == letter
    )
    return "".join(letter for letter, _ in zip(found, _LETTERS, strict=False))
