from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from isoglot.cli import main
from tests.tiny_corpus import LANGUAGES, write_raw

if TYPE_CHECKING:
    from pathlib import Path

PREPARE = f"""\
sources:
  text:
    kind: text
    format: lines
    files: {{{", ".join(f"{code}: [raw/text/{code}.txt]" for code in LANGUAGES)}}}
  pairs:
    kind: pairs
    format: tsv
    files: {{aa-bb: [raw/pairs/aa-bb.tsv], aa-cc: [raw/pairs/aa-cc.tsv]}}
tokenizer: {{size: 400}}
heldout_share: 0.05
"""

FEW_STEPS = """\
extends: tiny
name: few
batch: {row_length: 64, rows: 4, micro_rows: 2}
model: {layers: 2, hidden: 32, heads: 2}
checkpoints: {every: 2}
stages:
  - steps: 4
    streams:
      text: {objectives: [mlm], unit: sentence}
      parallel: {objectives: [tlm]}
"""


@dataclass(frozen=True)
class Said:
    """What a command left behind."""

    code: int
    out: str
    err: str


@pytest.fixture
def isoglot(monkeypatch, capsys):
    """Runs the command line in this process, as the `isoglot` script does."""

    def run(*arguments: object) -> Said:
        monkeypatch.setattr(sys, "argv", ["isoglot", *map(str, arguments)])
        monkeypatch.setenv("COLUMNS", "120")
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return Said(int(ended.value.code or 0), said.out, said.err)

    return run


@pytest.fixture
def desk(tmp_path, monkeypatch) -> Path:
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def raw(desk) -> Path:
    """A folder with raw text and a prepare file."""
    write_raw(desk / "raw", sentences=120, pairs=80)
    (desk / "prepare.yaml").write_text(PREPARE, encoding="utf-8")
    (desk / "few.yaml").write_text(FEW_STEPS, encoding="utf-8")
    return desk
