"""`isoglot translate`, as it is typed, from a recipe to BLEU."""

from __future__ import annotations

import io
import shutil
import sys

import pytest
from rich.console import Console

from isoglot.api import pretrain
from isoglot.models.translator import Translator
from isoglot.results import Results

FEW = """\
extends: unmt-mass-tiny
name: few
model: {num_layers: 1, hidden_size: 32}
batch: {row_length: 64, rows: 4, micro_rows: 4}
stages:
  - steps: 2
    streams:
      text: {objectives: [mass], unit: sentence}
  - steps: 2
    streams:
      text: {objectives: [mass, backtranslate], unit: sentence}
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory, corpus):
    """A translation model, trained once for all tests of this file."""
    folder = tmp_path_factory.mktemp("translate")
    (folder / "few.yaml").write_text(FEW)
    pretrain(folder / "few.yaml", corpus, folder / "run", console=Console(quiet=True))
    return folder / "run"


@pytest.fixture
def run(workdir, trained):
    return shutil.copytree(trained, workdir / "run")


def typed(monkeypatch, text):
    content = text if isinstance(text, bytes) else text.encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


def test_lines_are_written_group_by_group(isoglot, run, monkeypatch):
    text = "kalo mitu.\n\nsera kalo\nmitu\nsera.\n"
    typed(monkeypatch, text)
    whole = isoglot("translate", "run", "--from", "aa", "--to", "bb")
    assert whole.code == 0, whole.err
    command = sys.modules["isoglot.cli.translate"]
    monkeypatch.setattr(command, "LINES_AT_ONCE", 2)
    typed(monkeypatch, text)
    assert isoglot("translate", "run", "--from", "aa", "--to", "bb").out == whole.out

    translated = Translator.translate
    calls = []

    def interrupted(self, lines, *args, **settings):
        calls.append(len(lines))
        if len(calls) == 3:
            raise KeyboardInterrupt
        return translated(self, lines, *args, **settings)

    monkeypatch.setattr(Translator, "translate", interrupted)
    typed(monkeypatch, text)
    said = isoglot("translate", "run", "--from", "aa", "--to", "bb")
    assert (said.code, calls) == (130, [2, 2, 1])
    assert said.out.split("\n") == [*whole.out.split("\n")[:4], ""]


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
    assert "translate ..." in said.err, "there is progress"
    scores = Results.read(run / "results.json").scores
    assert [score.metric for score in scores] == ["bleu", "multi-bleu"]
    assert all(score.language == "aa-bb" and score.count == 3 for score in scores)
    assert "version:" in str(scores[0].scenario)
    # another test, and another way of writing, have scores of their own
    for reference, settings in (("other.txt", ()), ("ref.txt", ("--set", "method=beam"))):
        typed(monkeypatch, "kalo mitu.\r\n\u2028\nsera")
        (run / reference).write_text("a b c d\r\n\u2028\n\n", newline="")
        arguments = ("--from", "aa", "--to", "bb", "-r", f"run/{reference}", *settings)
        said = isoglot("translate", "run", *arguments)
        assert said.code == 0, said.err
        assert said.out.count("\n") == 3
    drawn = []
    for seed in (1, 1, 2):
        typed(monkeypatch, "kalo mitu.\n\nsera")
        arguments = ("--from", "aa", "--to", "bb", "-r", "run/ref.txt", "--set", "method=sample")
        drawn.append(isoglot("translate", "run", *arguments, "--seed", seed).out)
    assert drawn[0] == drawn[1] != drawn[2]
    found = [str(score.scenario) for score in Results.read(run / "results.json").scores]
    tests = [one.split(";")[0] for one in found]
    assert tests[::2] == [
        "ref.txt, greedy",
        "other.txt, greedy",
        "ref.txt, beam",
        "ref.txt, sample, seed 1",
        "ref.txt, sample, seed 2",
    ]


def test_nothing_in_nothing_out(isoglot, run, monkeypatch):
    typed(monkeypatch, "")
    said = isoglot("translate", "run", "--from", "aa", "--to", "bb")
    assert (said.code, said.out) == (0, "")


def test_who_gives_no_file_is_told_what_is_waited_for(isoglot, run, monkeypatch):
    typed(monkeypatch, "kalo\n")
    assert "Ctrl-D" not in isoglot("translate", "run", "--from", "aa", "--to", "bb").err
    typed(monkeypatch, "kalo\n")
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    said = isoglot("translate", "run", "--from", "aa", "--to", "bb")
    assert "Type one sentence a line, then Ctrl-D" in said.err
    assert said.out.count("\n") == 1


def test_lines_that_are_too_long_are_named(isoglot, run, monkeypatch):
    typed(monkeypatch, f"kalo.\n{'kalo mitu ' * 200}\n")
    said = isoglot("translate", "run", "--from", "aa", "--to", "bb")
    assert said.code == 0, said.err
    assert said.out.count("\n") == 2
    assert "note: 1 of 2 lines have more than 94 tokens" in said.err


CASES = {
    "a language it does not know": (["--from", "aa", "--to", "xx"], "no language 'xx'"),
    "a setting that is none": (
        ["--from", "aa", "--to", "bb", "--set", "metod=beam"],
        "did you mean 'method'",
    ),
    "a reference that is missing": (
        ["--from", "aa", "--to", "bb", "-r", "nowhere.txt"],
        "nowhere.txt cannot be read: No such file or directory.",
    ),
    "a reference too many": (
        ["--from", "aa", "--to", "bb", "-r", "run/two.txt"],
        "1 sentences and 2 references",
    ),
}


def test_faults_are_sentences(isoglot, run, monkeypatch):
    (run / "two.txt").write_text("a\nb\n")
    for arguments, message in CASES.values():
        typed(monkeypatch, "kalo\n")
        said = isoglot("translate", "run", *arguments)
        assert said.code == 1
        assert message in said.err
        assert said.out == "", "faults are found before anything is translated"
        assert "Traceback" not in said.err
    typed(monkeypatch, "café\n".encode("latin-1"))
    said = isoglot("translate", "run", "--from", "aa", "--to", "bb")
    assert said.code == 1
    assert "standard input cannot be read: it is not UTF-8" in said.err
