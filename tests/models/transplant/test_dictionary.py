"""Dictionaries: columns, directions, duplicates, and lines that are none."""

from __future__ import annotations

import pytest

from isoglot.errors import IsoglotError, ModelError
from isoglot.models.transplant.dictionary import read_dictionaries


def written(folder, text, name="en-sw.txt"):
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def test_spaces_tabs_and_words_of_many_words(tmp_path):
    file = written(tmp_path, "house nyumba\nice cream\tbarafu\nhome\tnyumba\nbig  kubwa\n")
    read = read_dictionaries([file], source_column="first")
    assert read.translations("nyumba") == ["house", "home"]
    assert read.translations("NYUMBA") == ["house", "home"]
    assert read.translations("barafu") == ["ice cream"]
    assert read.translations("kubwa") == ["big"]
    assert read.translations("house") == []


def test_directions(tmp_path):
    files = [written(tmp_path, "house nyumba\n"), written(tmp_path, "mbwa dog\n", "sw-en.txt")]
    assert read_dictionaries(files[1:], source_column="second").translations("mbwa") == ["dog"]
    both = read_dictionaries(files)
    assert both.translations("nyumba") == ["house"]
    assert both.translations("mbwa") == ["dog"]
    assert both.translations("dog") == ["mbwa"]


def test_duplicates_and_blanks_are_counted(tmp_path):
    first = written(tmp_path, "house nyumba\n\nhouse nyumba\nHouse Nyumba\n")
    second = written(tmp_path, "house\tnyumba\nhome\tnyumba\n", "more.txt")
    read = read_dictionaries([first, second], source_column="first")
    assert read.translations("nyumba") == ["house", "House", "home"]
    one, two = read.counts
    assert (one.entries, one.dropped) == (2, {"blank": 1, "duplicate": 1})
    assert (two.entries, two.dropped) == (1, {"duplicate": 1})


BROKEN = {
    "house\n": "one column",
    "house\t\n": "one column",
    "a big house\n": "more than two words and no tab",
    "a\tb\tc\n": "more than two columns",
}


@pytest.mark.parametrize("line", BROKEN)
def test_broken_lines_are_refused_with_their_place(tmp_path, line):
    file = written(tmp_path, "house nyumba\n" + line)
    with pytest.raises(ModelError, match=rf"en-sw.txt:2: 1 of 2 lines .*{BROKEN[line]}.*two col"):
        read_dictionaries([file])


def test_a_few_broken_lines_are_counted(tmp_path):
    lines = [f"w{number} t{number}\n" for number in range(200)]
    file = tmp_path / "d.txt"
    file.write_bytes("".join(lines).encode() + b"\xff\xfe oh\n")
    read = read_dictionaries([file])
    assert read.counts[0].entries == 200
    assert read.counts[0].dropped == {"encoding": 1}
    with pytest.raises(ModelError, match=r"d\.txt:201: 1 of 201 lines"):
        read_dictionaries([file], max_malformed_ratio=0.0)


def test_files_that_are_missing_or_empty(tmp_path):
    with pytest.raises(ModelError, match=r"e\.txt is empty"):
        read_dictionaries([written(tmp_path, "", "e.txt")])
    with pytest.raises(IsoglotError, match=r"no such file; did you mean 'e.txt'"):
        read_dictionaries([tmp_path / "ee.txt"])


def test_real_dictionaries(data_folder):
    files = sorted((data_folder / "eval/bli").rglob("*.tsv*"))
    if not files:
        pytest.skip("no dictionaries there")
    read = read_dictionaries(files, source_column="first")
    assert len(read.counts) == len(files)
    assert len(read.entries) > 1000
    # the smaller files repeat entries of the larger ones
    assert {reason for counts in read.counts for reason in counts.dropped} <= {"duplicate"}
