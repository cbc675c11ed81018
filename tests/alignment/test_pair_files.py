"""Pairs of files of every format, a pair for each line."""

from __future__ import annotations

import lzma

import pytest

from isoglot.alignment.pair_files import PairFiles
from isoglot.errors import CorpusError


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_a_tab_or_bars(tmp_path):
    expected = [("a b", "c d"), ("", ""), ("e", "f")]
    tsv = PairFiles([write(tmp_path / "en-de.tsv", "a b\tc d\n\ne\tf\n")])
    assert list(tsv) == expected
    bars = PairFiles([write(tmp_path / "pairs", "a b ||| c d\n\ne ||| f")])
    assert [(a.strip(), b.strip()) for a, b in bars] == expected
    assert not tsv.faults + bars.faults


def test_bars_without_a_side(tmp_path):
    found = PairFiles([write(tmp_path / "pairs", "a ||| b\n ||| c\nd |||\n")])
    assert [(a.strip(), b.strip()) for a, b in found] == [("a", "b"), ("", "c"), ("d", "")]


def test_a_column_of_ids(tmp_path):
    notes: list[str] = []
    text = "".join(f"GEN.1.{n}\tfirst {n} of\tzweite {n} von\n" for n in range(1, 9))
    found = PairFiles([write(tmp_path / "x.tsv", text)], note=notes.append)
    assert next(iter(found)) == ("first 1 of", "zweite 1 von")
    assert "columns 2 and 3" in notes[0]


def test_two_files(tmp_path):
    files = [write(tmp_path / "t.en", "a\n\nb\n"), tmp_path / "t.de.xz"]
    files[1].write_bytes(lzma.compress(b"c\nd\ne"))
    found = PairFiles(files)
    assert list(found) == [("a", "c"), ("", "d"), ("b", "e")]
    assert found.languages() == ("en", "de")
    assert found.num_lines() == 3
    assert PairFiles(files[::-1]).num_lines() is None


@pytest.mark.parametrize(("first", "second"), [("a\nb\n", "c\n"), ("a\n", "b\nc\n")])
def test_two_files_of_different_lengths(tmp_path, first, second):
    files = [write(tmp_path / "t.en", first), write(tmp_path / "t.de", second)]
    with pytest.raises(CorpusError, match=r"has 1 lines, and .* has more"):
        list(PairFiles(files))


def test_lines_that_are_no_pair_are_counted(tmp_path):
    file = tmp_path / "en-de.tsv"
    file.write_bytes(b"a\tb\nonly one\n\xff\xfe\tc\nd\te\n")
    found = PairFiles([file])
    assert list(found) == [("a", "b"), ("", ""), ("", ""), ("d", "e")]
    assert found.faults == {"with fewer columns": 1, "not UTF-8, or too long": 1}
    bars = PairFiles([write(tmp_path / "x", "a ||| b\nnone\n")])
    assert list(bars)[1] == ("", "")
    assert bars.faults == {"without |||": 1}


def test_a_file_that_has_no_pairs(tmp_path):
    with pytest.raises(CorpusError, match="neither a tab nor"):
        PairFiles([write(tmp_path / "x", "a b c\n")])
    with pytest.raises(CorpusError, match="missing"):
        PairFiles([tmp_path / "missing"])
    with pytest.raises(
        CorpusError, match=r"is CSV by its ending, .* a pair with a tab between on each"
    ):
        PairFiles([write(tmp_path / "x.csv", "en,de\na,b\n")])
    assert list(PairFiles([write(tmp_path / "empty", "")])) == []


@pytest.mark.parametrize(
    ("names", "languages"),
    [
        (["en-de.tsv"], ("en", "de")),
        (["eng-zh_Hant.tsv.xz"], ("en", "zh_Hant")),
        (["news.tsv"], None),
        (["a.en", "a.sw"], ("en", "sw")),
        (["first.text", "second.textfile"], None),
    ],
)
def test_languages_in_names(tmp_path, names, languages):
    files = [write(tmp_path / name, "a\tb\n") for name in names if not name.endswith("xz")]
    for name in names:
        if name.endswith("xz"):
            (tmp_path / name).write_bytes(lzma.compress(b"a\tb\n"))
            files.append(tmp_path / name)
    assert PairFiles(files).languages() == languages
