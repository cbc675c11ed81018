"""Every file of real text and translations is read, line for line as its own records say."""

from __future__ import annotations

import os
import re
from collections import Counter
from pathlib import Path

import pytest

from isoglot.corpus.cleaning.cleaner import DROP_REASONS
from isoglot.corpus.reading.reader import Record, Skipped
from isoglot.corpus.reading.registry import Option, reader_for

DATA = os.environ.get("ISOGLOT_DATA")
pytestmark = [
    pytest.mark.skipif(DATA is None, reason="ISOGLOT_DATA names no folder"),
    pytest.mark.slow,
]
BASE = Path(DATA or ".")

# folder -> format, its options
PAIRS: dict[str, tuple[str, dict[str, Option]]] = {
    "parallel/bible": ("tsv", {}),  # an id and a verse; joined below
    "parallel/mafand": ("tsv", {}),
    "parallel/tatoeba-challenge": ("tsv", {"first": 3, "second": 4}),
    "parallel/wmt": ("tsv", {"more": True}),
}


def counts_on_record() -> dict[str, tuple[int, int]]:
    """Folder -> lines and records, from the table of the data's own description."""
    found = {}
    for line in (BASE / "README.md").read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if re.fullmatch(r"`(parallel|mono)/[\w-]+`", cells[1] if len(cells) > 11 else ""):
            found[cells[1].strip("`")] = (
                int(cells[8].replace(",", "")),
                int(cells[9].replace(",", "")),
            )
    return found


RECORDED = counts_on_record() if DATA is not None else {"none": (0, 0)}


@pytest.mark.parametrize("folder", RECORDED)
def test_every_file_is_read(folder):
    lines = records = 0
    files = sorted((BASE / folder).iterdir())
    assert files
    for path in files:
        format_, options = PAIRS.get(folder, ("jsonl" if ".jsonl" in path.name else "lines", {}))
        reader = reader_for(format_, options, ("en", "de") if folder in PAIRS else ("en",), "test")
        reasons: Counter[str] = Counter()
        for item in reader.read(reader.files_of(path)):
            lines += 1
            records += isinstance(item, Record)
            if isinstance(item, Skipped):
                reasons[item.reason] += 1
        assert set(reasons) <= {"blank"}, path
    assert (lines, records) == RECORDED[folder]


@pytest.mark.parametrize("language", ["de", "zh", "ro-Cyrl"])
def test_verses_are_joined(language):
    folder = BASE / "parallel" / "bible"
    reader = reader_for("keyed", {}, ("en", language), "test")
    found = list(reader.read([folder / "en-web.tsv.xz", folder / f"{language}.tsv.xz"]))
    pairs = sum(isinstance(item, Record) for item in found)
    assert pairs > 7500
    sizes = [
        sum(1 for _ in reader_for("lines", {}, ("x",), "t").read([folder / f"{name}.tsv.xz"]))
        for name in ("en-web", language)
    ]
    assert len(found) == sum(sizes) - pairs


def test_lines_are_paired():
    folder = BASE / "parallel" / "multi30k"
    reader = reader_for("moses", {}, ("en", "de"), "test")
    files = [folder / f"train.{code}.txt.xz" for code in ("en", "de")]
    assert reader.check_files(files) is None
    assert sum(isinstance(item, Record) for item in reader.read(files)) == 29_000


@pytest.mark.parametrize(("source", "code", "least"), [("mdn", "fr", 3000), ("k8s", "zh", 1000)])
def test_documents_are_joined(source, code, least):
    folder = BASE / "mono" / source
    reader = reader_for("comparable", {}, ("en", code), "test")
    found = list(reader.read([folder / "en.jsonl.xz", folder / f"{code}.jsonl.xz"]))
    assert sum(isinstance(item, Record) for item in found) > least
    assert {item.reason for item in found if isinstance(item, Skipped)} <= set(DROP_REASONS)
