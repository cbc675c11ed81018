"""`isoglot translate`, as it is typed, from a recipe to BLEU."""

from __future__ import annotations

import io
import sys

import pytest

from isoglot.results import Results

FEW = """\
extends: unmt-mass-tiny
name: few
model: {layers: 1, hidden: 32}
batch: {row_length: 64, rows: 4, micro_rows: 4}
stages:
  - steps: 2
    streams:
      text: {objectives: [mass], unit: sentence}
  - steps: 2
    streams:
      text: {objectives: [mass, backtranslate], unit: sentence}
"""


@pytest.fixture
def run(isoglot, desk, corpus):
    (desk / "few.yaml").write_text(FEW)
    said = isoglot("pretrain", "few.yaml", "--corpus", str(corpus.folder), "--out", "run")
    assert said.code == 0, said.err
    return desk / "run"


def typed(monkeypatch, text):
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))


def test_lines_in_lines_out_and_bleu(isoglot, run, monkeypatch):
    typed(monkeypatch, "kalo mitu.\n\nsera\n")
    (run / "ref.txt").write_text("a b c d\n\nе ж\n")
    said = isoglot("translate", "run", "--from", "aa", "--to", "bb", "-r", "run/ref.txt")
    assert said.code == 0, said.err
    lines = said.out.split("\n")[:-1]
    assert len(lines) == 3
    assert lines[1] == ""
    assert "aa-bb: BLEU" in said.err
    assert "tok:13a" in said.err
    scores = Results.read(run / "results.json").scores
    assert [score.metric for score in scores] == ["bleu", "multi-bleu"]
    assert all(score.language == "aa-bb" and score.count == 3 for score in scores)
    assert "version:" in str(scores[0].scenario)


CASES = {
    "a language it does not know": (["--from", "aa", "--to", "xx"], "no language 'xx'"),
    "a setting that is none": (
        ["--from", "aa", "--to", "bb", "--set", "metod=beam"],
        "did you mean 'method'",
    ),
    "a reference that is missing": (
        ["--from", "aa", "--to", "bb", "-r", "nowhere.txt"],
        "nowhere.txt cannot be read",
    ),
}


def test_faults_are_sentences(isoglot, run, monkeypatch):
    for arguments, message in CASES.values():
        typed(monkeypatch, "kalo\n")
        said = isoglot("translate", "run", *arguments)
        assert said.code == 1
        assert message in said.err
        assert "Traceback" not in said.err
