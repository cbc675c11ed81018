"""Files of translations: columns of ids, identical texts, and lines that cannot be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from isoglot.errors import CorpusError
from isoglot.evaluation.pairs import read_pairs


def written(folder, name, rows):
    file = folder / name
    file.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    return file


def test_lines_of_pairs_that_cannot_be_read_are_told(tmp_path):
    file = tmp_path / "aa-bb.tsv"
    file.write_bytes(b"one\tuno\ntwo\nthree\ttr\xe9s\nfour\tcuatro\n")
    told: list[str] = []
    assert read_pairs([file], 10, note=told.append) == {
        "aa-bb": (["one", "four"], ["uno", "cuatro"])
    }
    (note,) = told
    assert "2 lines are left out" in note
    assert "2 read" in note
    with pytest.raises(CorpusError, match="another file is of aa-bb too"):
        read_pairs([file, file], 10)


def test_identical_and_repeated_pairs_are_left_out_and_told(tmp_path):
    rows = [("Paris", "Paris"), ("one", "uno"), ("NATO ", "nato"), ("one", "uno"), ("one", "un"),
            ("two", "dos"), ("three", "tres")]  # fmt: skip
    told: list[str] = []
    found = read_pairs([written(tmp_path, "en-es.tsv", rows)], 3, note=told.append)
    assert found == {"en-es": (["one", "one", "two"], ["uno", "un", "dos"])}
    (note,) = told
    assert "2 the same text in both languages, 1 repeated" in note
    with pytest.raises(CorpusError, match=r"no pair of sentences .*: 1 the same text in both"):
        read_pairs([written(tmp_path, "en-fr.tsv", rows[:1])], 3)


VERSES = [(f"GEN.1.{n}", f"first {n} said", f"second {n} dit") for n in range(1, 9)]


def test_a_column_of_ids_is_recognized_and_told(tmp_path):
    told: list[str] = []
    found = read_pairs([written(tmp_path, "en-fr.tsv", VERSES)], 2, note=told.append)
    assert found["en-fr"] == (["first 1 said", "first 2 said"], ["second 1 dit", "second 2 dit"])
    assert "column 1 has ids (GEN.1.1); sentences are read from columns 2 and 3" in told[0]
    last = [(b, c, a) for a, b, c in VERSES]
    found = read_pairs([written(tmp_path, "en-de.tsv", last)], 1)
    assert found["en-de"] == (["first 1 said"], ["second 1 dit"])


def test_ids_and_one_language_are_refused_with_the_remedy(tmp_path):
    for name, rows in (
        ("en-web.tsv", [row[:2] for row in VERSES]),
        ("en-kjv.tsv", [(f"Gen {n}:{n}", "a text of it") for n in range(5)]),
        ("en-x.tsv", [("a text", str(n)) for n in range(9)]),
    ):
        file = written(tmp_path, name, rows)
        with pytest.raises(CorpusError, match=r"has ids .* 1 of 2 columns have sentences") as error:
            read_pairs([file], 5)
        assert str(file) in str(error.value)
        assert "side by side" in str(error.value)


def test_short_sentences_are_no_ids(tmp_path):
    rows = [("Zwei", "2"), ("Drei", "3"), ("Vier", "four"), ("Ja", "yes"), ("Nein", "no")]
    found = read_pairs([written(tmp_path, "de-en.tsv", rows)], 9)
    assert len(found["de-en"][0]) == 5
    repeated = [(f"a text {n}", "1") for n in range(5)]
    assert read_pairs([written(tmp_path, "aa-bb.tsv", repeated)], 9), "an id occurs once"


def test_what_makes_a_column_of_ids(tmp_path):
    def columns(rows):
        file = written(tmp_path, "en-fr.tsv", rows)
        try:
            return len(read_pairs([file], 99)["en-fr"][0])
        except CorpusError as error:
            return str(error).partition(": ")[2][:16]

    texts = [(f"n{number}", f"a text, {number}") for number in range(10)]
    assert columns(texts) == "column 1 has ids"
    assert columns(texts[:2]) == "column 1 has ids"
    assert columns(texts[:1]) == 1, "one line says nothing"
    assert columns([("a b", "x"), *texts[1:]]) == "column 1 has ids", "nine of ten"
    assert columns([("a b", "x"), ("a c", "y"), *texts[2:]]) == 10, "eight of ten"
    assert columns([texts[1], *texts[1:9], ("n1", "other")]) == 9, "eight different ones of ten"
    assert columns([("n1", "other"), *texts[1:]]) == "column 1 has ids", "nine different ones"


def test_lines_that_are_not_in_utf_8_are_said_to_be_so(tmp_path):
    file = tmp_path / "en-de.tsv"
    file.write_bytes("a house\tein Haus\na door\teine Tür\n".encode("latin-1"))
    told: list[str] = []
    read_pairs([file], 99, note=told.append)
    assert told == [f"{file}: 1 lines are left out (1 not in UTF-8), 1 read."]


def test_lines_with_more_columns_than_ids_and_two_texts_are_left_out(tmp_path):
    rows = [*VERSES, ("GEN.2.1", "first", "second", "third")]
    told: list[str] = []
    found = read_pairs([written(tmp_path, "en-fr.tsv", rows)], 99, note=told.append)
    assert len(found["en-fr"][0]) == 8
    assert "1 lines are left out (1 with another number of columns)" in told[-1]
    middle = [(b, a, c, "x") for a, b, c in VERSES]
    with pytest.raises(CorpusError, match=r"column 2 has ids .* 3 of 4 columns have sentences"):
        read_pairs([written(tmp_path, "en-fr.tsv", middle)], 99)


def test_verses_of_the_bible(data_folder, tmp_path):
    source = data_folder / "parallel/bible/en-web.tsv.xz"
    link = tmp_path / source.name
    link.symlink_to(source)
    with pytest.raises(CorpusError, match=r"column 1 has ids \(GEN\.1\.1\)"):
        read_pairs([link], 5)


def test_languages_may_stand_before_a_file(tmp_path):
    file = tmp_path / "dev.tsv"
    file.write_text("one\tmoja\ntwo\tmbili\n", encoding="utf-8")
    assert read_pairs([Path(f"eng-sw={file}")], 9) == {"en-sw": (["one", "two"], ["moja", "mbili"])}
    with pytest.raises(CorpusError, match=f"or say them: en-de={file}."):
        read_pairs([file], 9)
    with pytest.raises(CorpusError, match=r"there is no such file; did you mean 'dev.tsv'\?"):
        read_pairs([Path(f"en-sw={tmp_path}/def.tsv")], 9)
    strange = tmp_path / "en-sw=x.tsv"  # the name of a file that exists is taken as it is
    file.rename(strange)
    with pytest.raises(CorpusError, match="name the file after"):
        read_pairs([strange], 9)


TABLES = {
    "en-de.csv": 'id;de;en\n1;ein Haus;"a; house"\n2;eine Katze;a cat\n',
    "en-de.jsonl": '{"en": "a; house", "de": "ein Haus"}\n{"en": "a cat", "de": "eine Katze"}\n',
    "en-de.tmx": "<tmx><body>"
    '<tu><tuv xml:lang="de"><seg>ein Haus</seg></tuv><tuv xml:lang="en"><seg>a; house</seg></tuv>'
    '</tu><tu><tuv xml:lang="EN"><seg>a cat</seg></tuv><tuv xml:lang="de"><seg>eine Katze</seg>'
    "</tuv></tu></body></tmx>",
}


@pytest.mark.parametrize("name", TABLES)
def test_tables_whose_columns_say_the_language(tmp_path, name):
    (tmp_path / name).write_text(TABLES[name])
    said: list[str] = []
    found = read_pairs([tmp_path / name], 9, note=said.append)
    assert found == {"en-de": (["a; house", "a cat"], ["ein Haus", "eine Katze"])}
    assert not said  # the first row of CSV is no line that is left out


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("en-de.csv", "en,fr\na,b\n", "has no column 'de'"),
        (
            "en-de.csv",
            "en,de\nx,x\na\n",
            r"has no pair of sentences \(in en-de\): 1 .*, 1 with another number",
        ),
        ("pairs.tsv", "a\tb\n", "name the file after its two languages"),
        ("en-de-fr.tsv", "a\tb\n", "name the file after its two languages"),
        ("en-de.tsv", "one column\n\n", "has no pair of sentences"),
        ("en-de.tsv", "", "has no pair of sentences"),
    ],
)
def test_files_that_are_no_pairs(tmp_path, name, content, message):
    file = tmp_path / name
    file.write_text(content, encoding="utf-8")
    with pytest.raises(CorpusError, match=message) as caught:
        read_pairs([file], 5)
    assert str(file) in str(caught.value)
