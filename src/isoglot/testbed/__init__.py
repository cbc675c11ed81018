"""A generated multilingual world with known truth: nine languages, five scripts, no downloads.

Reads nothing but its own lexicons and CLDR's names (through Babel); gives text, translations with
gold alignments, knowledge and data for every kind of task. See `World` and `write`.
"""

from __future__ import annotations

from isoglot.testbed.entities import Triple
from isoglot.testbed.languages import LANGUAGES
from isoglot.testbed.records import (
    Cloze,
    Description,
    Inference,
    Mentioned,
    Opinion,
    Paraphrase,
    Question,
    Tagged,
    Translation,
)
from isoglot.testbed.world import EVERYONE, NOBODY, World
from isoglot.testbed.write import write

__all__ = [
    "EVERYONE",
    "LANGUAGES",
    "NOBODY",
    "Cloze",
    "Description",
    "Inference",
    "Mentioned",
    "Opinion",
    "Paraphrase",
    "Question",
    "Tagged",
    "Translation",
    "Triple",
    "World",
    "write",
]
