"""Dictionaries: columns, directions, duplicates, and lines that are none."""

from __future__ import annotations

import pytest

from isoglot.errors import IsoglotError, ModelError, RecipeError
from isoglot.models.transplant.config import TransplantConfig
from isoglot.models.transplant.dictionary import expand_patterns, read_dictionaries


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
    both = read_dictionaries(files, source_column="either")
    assert both.translations("nyumba") == ["house"]
    assert both.translations("mbwa") == ["dog"]
    assert both.translations("dog") == ["mbwa"]


def test_the_column_of_the_source_is_found_in_each_file(tmp_path):
    """MUSE has en-sw.txt and sw-en.txt; a word of both languages decides nothing."""
    files = [
        written(tmp_path, "house nyumba\ndog mbwa\nat at\n"),
        written(tmp_path, "paka cat\nat at\nmbuzi goat\n", "sw-en.txt"),
        written(tmp_path, "qq ww\n", "none.txt"),
    ]
    read = read_dictionaries(files, is_source_word={"house", "dog", "cat", "at"}.__contains__)
    assert [one.source_column for one in read.counts] == ["first", "second", "first"]
    assert read.entries == {
        "nyumba": ["house"],
        "mbwa": ["dog"],
        "at": ["at"],
        "paka": ["cat"],
        "mbuzi": ["goat"],
        "ww": ["qq"],
    }


def test_either_order_goes_with_spelling_first():
    """Else the source's own words would become their translations."""
    with pytest.raises(RecipeError, match="source_column: with `either`"):
        TransplantConfig(source_column="either")
    assert TransplantConfig(source_column="either", order="spelling").order == "spelling"


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


def test_the_share_of_words_decides_the_column_not_their_number(tmp_path):
    """Four translations of each English word: more lines know a word of the second column."""
    lines = [f"house nyumba{n}\ndog mbwa{n}\n" for n in range(4)]
    file = written(tmp_path, "".join(lines) + "big at\nbig in\nbig on\n")
    english = {"house", "dog", "at", "in", "on"}
    read = read_dictionaries([file], source_column="auto", is_source_word=english.__contains__)
    assert read.translations("mbwa0") == ["dog"]
    assert read.translations("dog") == []


def test_patterns_name_the_files_that_match(tmp_path):
    first, second = (written(tmp_path, "a b\n", name) for name in ("en-de.txt", "en-sw.txt"))
    assert expand_patterns([str(tmp_path / "en-*.txt")]) == [first, second]
    assert expand_patterns([str(second)]) == [second]
    with pytest.raises(ModelError, match="no file matches"):
        expand_patterns([str(tmp_path / "fr-*.txt")])
