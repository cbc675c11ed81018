"""The glossary: its paths exist, and it has the words of ours that README and docs use."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in (ROOT / "docs/glossary.md").read_text("utf-8").splitlines()
    if line.startswith("| **")
]
NEEDED = """
prepare file, corpus, fingerprint, source, stage, stream, share, alpha, held-out data,
development data, control, arm, cell, recipe, protocol, scenario, intermediate export, results file,
testbed, transfer gap, delivered, best layer, beyond noise, row, sequence, micro-batch, slot
"""


def test_every_row_says_where_its_word_is_defined():
    assert len(ROWS) > 50
    for word, meaning, place in ROWS:
        assert meaning, word
        for path in re.findall(r"`([^`]+)`", place):
            folder = ROOT if path.startswith("benchmarks/") else ROOT / "src/isoglot"
            assert (folder / path).exists(), (word, path)


def test_words_of_ours_are_there():
    bold = (word for row in ROWS for text in row for word in re.findall(r"\*\*(.+?)\*\*", text))
    words = {word.lower() for word in bold}
    assert {word.strip() for word in NEEDED.replace("\n", " ").split(",")} <= words
