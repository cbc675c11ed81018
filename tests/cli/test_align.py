"""`isoglot align`: links on standard output or in a file, scores, and what is refused."""

from __future__ import annotations

import pytest

from isoglot.alignment.align import align, pharaoh
from isoglot.alignment.config import AlignConfig
from tests.evaluation.tiny_tokenizers import make_tokenizer, save_model

PAIRS = [("the quick fox", "rafiki yangu"), ("", ""), ("the lazy dog", "the lazy dog")]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return save_model(make_tokenizer("wordpiece"), tmp_path_factory.mktemp("model") / "model")


@pytest.fixture
def pairs(workdir):
    file = workdir / "en-sw.tsv"
    file.write_text("".join(f"{a}\t{b}\n" for a, b in PAIRS), encoding="utf-8")
    return file


def expected(model, **settings):
    links = align(PAIRS, model, config=AlignConfig(**settings))
    return "".join(f"{pharaoh(one)}\n" for one in links)


def test_standard_output_and_a_file(isoglot, model, pairs, workdir):
    said = isoglot("align", pairs, "--model", model)
    assert said.code == 0, said.err
    assert said.out == expected(model)
    assert said.out.splitlines()[1] == ""
    assert "3 pairs" in said.err
    assert "layer 1" in said.err
    other = isoglot("align", pairs, "-m", model, "--aligner", "argmax", "--layer", "2", "-o", "l")
    assert other.code == 0, other.err
    assert other.out == ""
    assert (workdir / "l").read_text() == expected(model, aligner="argmax", layer=2)


def test_two_files_and_bars(isoglot, model, workdir):
    for side, name in enumerate(("t.en", "t.sw")):
        lines = "".join(f"{pair[side]}\n" for pair in PAIRS)
        (workdir / name).write_text(lines, encoding="utf-8")
    assert isoglot("align", "t.en", "t.sw", "-m", model).out == expected(model)
    text = "".join(f"{a} ||| {b}\n" for a, b in PAIRS)
    (workdir / "pairs").write_text(text, encoding="utf-8")
    assert isoglot("align", "pairs", "-m", model).out == expected(model)


def test_gold_links(isoglot, model, pairs, workdir):
    links = expected(model)
    (workdir / "gold").write_text(links)
    said = isoglot("align", pairs, "-m", model, "--gold", "gold")
    assert said.code == 0, said.err
    assert "aer 0.0 %" in said.err
    assert "precision 100.0 %" in said.err
    (workdir / "short").write_text("0-0\n")
    short = isoglot("align", pairs, "-m", model, "--gold", "short", "--out", "links")
    assert short.code == 1
    assert "short has 1 lines, and there are more pairs" in short.err
    assert not (workdir / "links").exists(), "nothing half written"


@pytest.mark.slow  # jieba reads its dictionary
def test_words_by_rules(isoglot, model, workdir):
    (workdir / "en-zh.tsv").write_text("the dog, lazy\t我们的朋友来了\n", encoding="utf-8")
    asked = ["align", "en-zh.tsv", "-m", model, "--words-out", "words"]
    plain = isoglot(*asked)
    assert plain.code == 0, plain.err
    words = workdir / "words"
    assert words.read_text(encoding="utf-8") == "the dog, lazy ||| 我们的朋友来了\n"
    assert isoglot(*asked, "--pretokenize", "zh").code == 0
    first, _, second = words.read_text(encoding="utf-8").strip().partition(" ||| ")
    assert first == "the dog, lazy"
    assert len(second.split()) > 2
    assert isoglot(*asked, "--pretokenize", "en,zho").code == 0
    assert words.read_text(encoding="utf-8").startswith("the dog , lazy |||")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["none.tsv"], "none.tsv"),
        (["plain.txt"], "neither a tab nor |||"),
        (["en-sw.tsv", "plain.txt", "plain.txt"], "give one file of pairs, or two files"),
        (["en-sw.tsv", "--aligner", "magic"], "is not possible: write transport"),
        (["en-sw.tsv", "--layer", "9"], "--layer 9: the model has layers 0 to 2"),
        (["en-sw.tsv", "--languages", "en"], "Name those of the two sides"),
        (["en-sw.tsv", "--pretokenize", "zh"], "the sides are in en and sw"),
        (["en-sw.tsv", "-l", "en,ja", "--pretokenize", "ja"], "there are no rules for words of ja"),
        (["plain.tsv", "--pretokenize", "en"], "say the languages of the two sides"),
        (["en-sw.tsv", "--gold", "plain.txt"], "is not a link such as"),
        (["en-sw.tsv", "--encode-type", "half"], "is not possible: write float32"),
        (["short.txt", "plain.txt"], "has more"),
    ],
)
def test_what_is_refused(isoglot, model, pairs, workdir, options, message):
    (workdir / "plain.txt").write_text("one\ntwo\n")
    (workdir / "short.txt").write_text("one\n")
    (workdir / "plain.tsv").write_text("one\ttwo\n")
    said = isoglot("align", *options, "--model", model, "--out", "links")
    assert said.code in (1, 2)
    assert message in " ".join(said.err.replace("│", " ").split())
    assert "Traceback" not in said.err
    assert not (workdir / "links").exists()


def test_lines_that_are_no_pair_are_told(isoglot, model, workdir):
    (workdir / "en-sw.tsv").write_text("the fox\trafiki\nbroken\n")
    said = isoglot("align", "en-sw.tsv", "-m", model)
    assert said.code == 0
    assert said.out.splitlines()[1:] == [""]
    assert "1 of 2 lines (with fewer columns) are no pair" in said.err
