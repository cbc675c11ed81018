from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
import typer.main

from isoglot.cli import app, load_commands, main
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
tokenizer: {{vocab_size: 400}}
heldout_share: 0.05
"""

FEW_STEPS = """\
extends: tiny
name: few
batch: {row_length: 64, rows: 4, micro_rows: 2}
model: {num_layers: 2, hidden_size: 32, num_heads: 2}
checkpoint: {every_steps: 2}
stages:
  - steps: 4
    streams:
      text: {objectives: [mlm], unit: sentence}
      parallel: {objectives: [tlm]}
"""


SILENT = {
    *(f"show {what}" for what in ("recipes", "objectives", "streams", "tasks", "protocols")),
    *("show recipe", "show protocol", "show objective", "show template", "show model", "watch"),
}
"""Commands that write nothing."""
SERVING = {"explore"}
"""Commands that serve a page until Ctrl-C: tests/explore."""


def all_commands() -> set[str]:
    """Every command with its group: `evaluate`, `knowledge link`."""
    load_commands()
    command = typer.main.get_command(app)
    found = set()
    for name, one in command.commands.items():  # type: ignore[attr-defined]
        inner = getattr(one, "commands", None)
        found |= {name} if inner is None else {f"{name} {other}" for other in inner}
    return found


@dataclass(frozen=True)
class CommandOutput:
    """The exit code, standard output and standard error of a command."""

    code: int
    out: str
    err: str


@pytest.fixture
def isoglot(monkeypatch, capsys):
    """Runs the command line in this process, as the `isoglot` script does."""

    def run(*arguments: object, columns: int = 120) -> CommandOutput:
        monkeypatch.setattr(sys, "argv", ["isoglot", *map(str, arguments)])
        monkeypatch.setenv("COLUMNS", str(columns))
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return CommandOutput(int(ended.value.code or 0), said.out, said.err)

    return run


@pytest.fixture
def workdir(tmp_path, monkeypatch) -> Path:
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def raw(workdir) -> Path:
    """A folder with raw text and a prepare file."""
    write_raw(workdir / "raw", sentences=120, pairs=80)
    (workdir / "prepare.yaml").write_text(PREPARE, encoding="utf-8")
    (workdir / "few.yaml").write_text(FEW_STEPS, encoding="utf-8")
    return workdir


@pytest.fixture(scope="module")
def tiny_model(corpus, tmp_path_factory) -> Path:
    """An encoder of one layer with the tokenizer of `corpus`, shared: do not write into it."""
    import torch

    from isoglot.models.config import ModelConfig
    from isoglot.models.encoder import Encoder
    from isoglot.models.export import export_encoder

    torch.manual_seed(0)
    settings = ModelConfig(size="tiny", num_layers=1, hidden_size=32, num_heads=2, max_positions=40)
    encoder = Encoder.build(settings, corpus.vocabulary)
    folder: Path = tmp_path_factory.mktemp("tiny") / "model"
    export_encoder(encoder, folder, tokenizer_folder=corpus.tokenizer_folder, card="")
    return folder
