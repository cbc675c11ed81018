"""A generated multilingual world with known truth: nine languages, five scripts, no downloads.

Reads nothing but its own lexicons and CLDR's names (through Babel); gives text, translations with
gold alignments, knowledge and data for every kind of task. See `World` and `write_raw_files`.
"""

from __future__ import annotations

from isoglot.testbed.languages import LANGUAGES
from isoglot.testbed.raw_files import write_raw_files
from isoglot.testbed.world import ALL_LANGUAGES, NO_LANGUAGE, World

__all__ = ["ALL_LANGUAGES", "LANGUAGES", "NO_LANGUAGE", "World", "write_raw_files"]
