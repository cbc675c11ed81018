"""`isoglot cooccurrence`, as it is typed."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

from tests.tiny_corpus import make_corpus, words


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return make_corpus(tmp_path_factory.mktemp("tiny")).folder


def test_count_says_what_there_is(isoglot, desk, corpus):
    said = isoglot("cooccurrence", "count", corpus, "--set", "window=3", "--set", "kept=float16")
    assert said.code == 0, said.err
    assert re.search(r"[\d,]+ pairs of 400 tokens; window 3", said.out)
    assert re.search(r"^aa +1\.000", said.out, flags=re.MULTILINE)
    assert "count pairs ..." in said.err
    again = isoglot("cooccurrence", "count", corpus, "--set", "window=3", "--set", "kept=float16")
    assert again.out == said.out
    assert not again.err, "it was there already"
    assert "window" in isoglot("cooccurrence", "count", corpus, "--set", "windows=3").err


def test_phrases_are_shown(isoglot, desk, corpus):
    said = isoglot("cooccurrence", "phrases", corpus, "-o", "phrases.npy", "--set", "least=4")
    assert said.code == 0, said.err
    assert (desk / "phrases.npy").exists()
    assert re.search(r"^2 +[1-9]", said.out, flags=re.MULTILINE)


def test_a_figure_is_drawn_from_each_source(isoglot, desk, corpus):
    first, second = words("aa"), words("bb")
    lexicon = [f"{a}\t{b}" for a, b in zip(first, second, strict=True)]
    (desk / "lexicon.txt").write_text("\n".join(lexicon), encoding="utf-8")
    said = isoglot(
        "cooccurrence", "draw", corpus, "-l", "aa-bb", "--lexicon", "lexicon.txt", "-o", "one.svg",
        "--windows", "1,2", "--bins", "4",
    )  # fmt: skip
    assert said.code == 0, said.err
    assert "n = 2, shuffled" in said.out
    assert "entries not of single tokens" in said.out
    figure = ET.fromstring((desk / "one.svg").read_text(encoding="utf-8"))  # noqa: S314
    assert len([e for e in figure.iter() if e.tag.endswith("svg")]) == 3
    table = [
        f"{a} {b} ||| {x} {y}"
        for a, x in zip(first, second, strict=True)
        for b, y in zip(first, second, strict=True)
    ]
    (desk / "table").write_text("\n".join(table), encoding="utf-8")
    said = isoglot(
        "cooccurrence", "draw", corpus, "-l", "aa-bb", "--phrase-table", "table", "-o", "two.svg",
        "--windows", "2", "--no-control",
    )  # fmt: skip
    assert said.code == 0, said.err
    assert "shuffled" not in said.out
    said = isoglot("cooccurrence", "draw", corpus, "-l", "aa-bb")
    assert "give one of --phrase-table, --lexicon and --aligned" in said.err


def test_one_compound_is_compared(isoglot, desk, corpus):
    (a, b), (x, y) = words("aa")[:2], words("bb")[:2]
    said = isoglot(
        "cooccurrence", "compare", corpus, f"{a} {b}", f"{x} {y}", "-l", "aa-bb",
        "--related", f"{x} {x}", "--windows", "2,3",
    )  # fmt: skip
    assert said.code == 0, said.err
    assert re.search(rf"^translation +{x} {y} +\d\.\d\d +\d\.\d\d", said.out, flags=re.MULTILINE)
    assert re.search(r"^average +of bb", said.out, flags=re.MULTILINE)
    wrong = isoglot("cooccurrence", "compare", corpus, f"{a}", f"{x} {y}", "-l", "aa-bb")
    assert "is not two words" in wrong.err


def test_frequencies_are_drawn(isoglot, desk, corpus):
    said = isoglot("cooccurrence", "frequencies", corpus, "-l", "aa,bb", "-o", "three.svg")
    assert said.code == 0, said.err
    assert "rank of the token" in (desk / "three.svg").read_text(encoding="utf-8")
