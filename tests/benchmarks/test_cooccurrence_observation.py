"""`python -m benchmarks.cooccurrence_observation`, as it is typed."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest
from benchmarks.cooccurrence_observation.__main__ import app
from typer.testing import CliRunner

from tests.tiny_corpus import make_corpus, words


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return make_corpus(tmp_path_factory.mktemp("tiny")).folder


@pytest.fixture
def observe(tmp_path, monkeypatch):
    """Runs the command line in an empty folder, in this process."""
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_a_figure_is_drawn_from_each_source(observe, tmp_path, corpus):
    first, second = words("aa"), words("bb")
    lexicon = [f"{a}\t{b}" for a, b in zip(first, second, strict=True)]
    (tmp_path / "lexicon.txt").write_text("\n".join(lexicon), encoding="utf-8")
    said = observe(
        "plot", corpus, "-l", "aa-bb", "--lexicon", "lexicon.txt", "-o", "one.svg",
        "--windows", "1,2", "--num-bins", "4",
    )  # fmt: skip
    assert said.exit_code == 0, said.stderr
    assert "n = 2, shuffled" in said.stdout
    assert "entries not of single tokens" in said.stdout
    figure = ET.fromstring((tmp_path / "one.svg").read_text(encoding="utf-8"))  # noqa: S314
    assert len([e for e in figure.iter() if e.tag.endswith("svg")]) == 3
    table = [
        f"{a} {b} ||| {x} {y}"
        for a, x in zip(first, second, strict=True)
        for b, y in zip(first, second, strict=True)
    ]
    (tmp_path / "table").write_text("\n".join(table), encoding="utf-8")
    said = observe(
        "plot", corpus, "-l", "aa-bb", "--phrase-table", "table", "-o", "two.svg",
        "--windows", "2", "--no-control",
    )  # fmt: skip
    assert said.exit_code == 0, said.stderr
    assert "shuffled" not in said.stdout
    said = observe("plot", corpus, "-l", "aa-bb")
    assert "give one of --phrase-table, --lexicon and --alignments" in said.stderr


def test_one_compound_is_compared(observe, tmp_path, corpus):
    (a, b), (x, y) = words("aa")[:2], words("bb")[:2]
    said = observe(
        "compare", corpus, f"{a} {b}", f"{x} {y}", "-l", "aa-bb",
        "--related", f"{x} {x}", "--windows", "2,3",
    )  # fmt: skip
    assert said.exit_code == 0, said.stderr
    assert re.search(rf"^translation +{x} {y} +\d\.\d\d +\d\.\d\d", said.stdout, flags=re.MULTILINE)
    assert re.search(r"^average +of bb", said.stdout, flags=re.MULTILINE)
    wrong = observe("compare", corpus, f"{a}", f"{x} {y}", "-l", "aa-bb")
    assert "is not two words" in wrong.stderr


def test_frequencies_are_drawn(observe, tmp_path, corpus):
    said = observe("frequencies", corpus, "-l", "aa,bb", "-o", "three.svg")
    assert said.exit_code == 0, said.stderr
    assert "rank of the token" in (tmp_path / "three.svg").read_text(encoding="utf-8")
