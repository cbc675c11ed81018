from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from isoglot.adaptation.formats import detect_format
from isoglot.corpus.reading.reader import Record
from isoglot.corpus.reading.registry import reader_for
from isoglot.errors import CorpusError

SENTENCES = ["The good teacher reads a letter.", "Nobody works at home today.", "It rains."]
OTHERS = ["Mwalimu mzuri anasoma barua.", "Hakuna anayefanya kazi leo.", "Mvua inanyesha."]
TMX = '<?xml version="1.0"?>\n<tmx version="1.4"><header/><body></body></tmx>\n'


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def tabbed(*columns: list[str]) -> list[str]:
    return ["\t".join(row) for row in zip(*columns, strict=True)]


TEXT = {
    "plain lines": ("a.txt", SENTENCES, ("lines", {})),
    "without an ending": ("a", SENTENCES, ("lines", {})),
    "JSON lines": ("a.txt", [json.dumps({"text": s, "id": "1"}) for s in SENTENCES], ("jsonl", {})),
    "another field": (
        "a.jsonl",
        [json.dumps({"content": s, "url": "u"}) for s in SENTENCES],
        ("jsonl", {"field": "content"}),
    ),
}
PAIRS = {
    "two columns": ("a.tsv", tabbed(SENTENCES, OTHERS), {}),
    "columns in the other order": (
        "a.tsv",
        tabbed(OTHERS * 9, SENTENCES * 9),
        {"first": 2, "second": 1},
    ),
    "codes before the texts": (
        "a.tsv",
        tabbed(["eng"] * 3, ["swh"] * 3, SENTENCES, OTHERS),
        {"first": 3, "second": 4},
    ),
    "a score after the texts": ("a", tabbed(SENTENCES, OTHERS, ["0.9"] * 3), {"more": True}),
    "a header": (
        "a.tsv",
        tabbed(["swa", *OTHERS], ["eng", *SENTENCES]),
        {"first": 2, "second": 1, "header": True},
    ),
}


@pytest.mark.parametrize("case", TEXT)
def test_text_of_one_language(case, tmp_path):
    name, lines, (format_, options) = TEXT[case]
    found = detect_format(write(tmp_path / name, lines), ("en",))
    assert (found.format, found.options, found.split) == (format_, options, "lines")


@pytest.mark.parametrize("case", PAIRS)
def test_pairs_in_columns(case, tmp_path):
    name, lines, options = PAIRS[case]
    found = detect_format(write(tmp_path / name, lines), ("en", "sw"))
    assert (found.format, found.options, found.single) == ("tsv", options, False)


CSV: dict[str, tuple[str, str, tuple[str, ...], dict[str, object]]] = {
    "text": ("a.csv", 'id,text\n1,"Hello, you"\n2,b\n', ("en",), {}),
    "another field": ("a.csv", "sentence;n\nIt rains, here;1\n", ("en",), {"column": "sentence"}),
    "the only text": ("a.csv", "id,review\n7,It rains\n", ("en",), {"column": "review"}),
    "one of two languages": ("a.csv", "en,sw\nIt rains,Mvua\n", ("sw",), {"column": "sw"}),
    "ids beside Indonesian": ("a.csv", "id,tweet\nx1,Hujan di sini\n", ("id",), {}),
    "one column, no name": (
        "a.csv",
        "It rains, here.\nNobody works.\nGood.\n",
        ("en",),
        {"header": False, "column": 1},
    ),
    "codes": ("a.csv", "sw|en\na|b\n", ("en", "sw"), {"first": "en", "second": "sw"}),
    "names": (
        "a.csv",
        "\ufeffSwahili text,English text\r\na,b\r\n",
        ("en", "sw"),
        {"first": "English text", "second": "Swahili text"},
    ),
    "src and tgt": (
        "a.csv",
        ",src,tgt,score\n0,a,b,0.9\n",
        ("en", "sw"),
        {"first": "src", "second": "tgt"},
    ),
    "the only two": (
        "a.csv",
        "original,translated\na,b\n",
        ("en", "sw"),
        {"first": "original", "second": "translated"},
    ),
    "no names": (
        "a.csv",
        "1\tIt rains.\tMvua inanyesha.\n",
        ("en", "sw"),
        {"header": False, "first": 2, "second": 3},
    ),
    "no ending": ("a", 'en,sw\na,"b, c"\nd,e\n', ("en", "sw"), {"first": "en", "second": "sw"}),
    "text without an ending": ("a.txt", "id;text\n1;a, b\n2;c\n", ("en",), {}),
}


@pytest.mark.parametrize("case", CSV)
def test_csv(case, tmp_path):
    name, content, languages, options = CSV[case]
    (tmp_path / name).write_text(content, newline="")
    if case == "ids beside Indonesian":
        with pytest.raises(CorpusError, match="which field holds text is not clear"):
            detect_format(tmp_path / name, languages)
        return
    found = detect_format(tmp_path / name, languages)
    assert (found.format, found.options) == ("csv", options)
    # and it is read so
    records = reader_for("csv", found.options, languages, "s").read([tmp_path / name])
    assert any(isinstance(one, Record) for one in records)


def test_csv_is_not_seen_in_text(tmp_path):
    """Only a first row of names, and the same commas in the rows below it, make CSV of a file."""
    for content in (
        "text, content\nand more\n",
        "text,sentence\n",
        "text, and then many other words.\nHello, you.\n",
        "sentence,text\na\n" * 9,
        "Hello, you\nMe, too\n",
    ):
        (tmp_path / "a.txt").write_text(content)
        assert detect_format(tmp_path / "a.txt", ("en",)).format == "lines"


def test_csv_in_the_other_order_is_told(tmp_path):
    rows = [f'"{other}","{text}"' for other, text in zip(OTHERS * 9, SENTENCES * 9, strict=True)]
    path = write(tmp_path / "a.csv", rows)
    found = detect_format(path, ("en", "sw"))
    assert found.options == {"header": False, "first": 2, "second": 1}
    assert found.note == f"{path}: column 2 looks like en and column 1 like sw; they are read so."


def test_quotes_and_a_header_of_a_table_with_tabs_are_read_as_before(tmp_path):
    lines = ["en\tsw", *tabbed([f'"{one}"' for one in SENTENCES], OTHERS)]
    found = detect_format(write(tmp_path / "a.tsv", lines), ("en", "sw"))
    assert (found.format, found.options) == ("tsv", {"header": True})
    records = list(reader_for("tsv", found.options, ("en", "sw"), "s").read([tmp_path / "a.tsv"]))
    assert records[1] == Record((f'"{SENTENCES[0]}"', OTHERS[0]))


def test_columns_in_the_other_order_are_told(tmp_path):
    path = write(tmp_path / "a.tsv", tabbed(OTHERS * 9, SENTENCES * 9))
    note = detect_format(path, ("en", "sw")).note
    assert note == f"{path}: column 2 looks like en and column 1 like sw; they are read so."


def test_paragraphs_are_split(tmp_path):
    found = detect_format(write(tmp_path / "a.txt", [" ".join(SENTENCES * 9)] * 4), ("en",))
    assert found.split == "punctuation"


def test_spaces_around_lines_make_no_paragraphs(tmp_path):
    padded = [f"{line:>400}" for line in SENTENCES]
    assert detect_format(write(tmp_path / "a.txt", padded), ("en",)).split == "lines"


def test_a_document_of_megabytes_on_its_first_line(tmp_path):
    long = json.dumps({"title": "t", "text": "\n".join(SENTENCES * 20_000)})
    assert detect_format(write(tmp_path / "a.jsonl", [long]), ("en",)).format == "jsonl"


def test_compressed_files_are_looked_into(tmp_path):
    (tmp_path / "a.gz").write_bytes(gzip.compress("\n".join(tabbed(SENTENCES, OTHERS)).encode()))
    assert detect_format(tmp_path / "a.gz", ("en", "sw")).format == "tsv"


@pytest.mark.parametrize(
    ("columns", "languages", "options"),
    [
        ({"text": SENTENCES, "n": [1, 2, 3]}, ("en",), {}),
        ({"sentence": SENTENCES}, ("en",), {"column": "sentence"}),
        ({"sw": OTHERS, "en": SENTENCES}, ("en", "sw"), {"first": "en", "second": "sw"}),
        (
            {"translation": [{"en": a, "sw": b} for a, b in zip(SENTENCES, OTHERS, strict=True)]},
            ("en", "sw"),
            {"first": "translation.en", "second": "translation.sw"},
        ),
        (
            {"sentence_eng": SENTENCES, "sentence_swh": OTHERS, "id": ["1", "2", "3"]},
            ("en", "sw"),
            {"first": "sentence_eng", "second": "sentence_swh"},
        ),
        (
            {"src": SENTENCES, "tgt": OTHERS, "id": ["1", "2", "3"]},
            ("en", "sw"),
            {"first": "src", "second": "tgt"},
        ),
    ],
)
def test_columns_of_tables(columns, languages, options, tmp_path):
    pq.write_table(pa.table(columns), tmp_path / "a.bin")
    found = detect_format(tmp_path / "a.bin", languages)
    assert (found.format, found.options) == ("parquet", options)


@pytest.mark.parametrize(
    ("first", "second", "options"),
    [
        ("src", "tgt", {"first": "tgt", "second": "src"}),
        ("one", "two", {"first": "two", "second": "one"}),
        ("en", "sw", {"first": "en", "second": "sw"}),  # names that say the language are believed
    ],
)
def test_fields_in_the_other_order_are_exchanged_and_told(first, second, options, tmp_path):
    pairs = zip(OTHERS * 9, SENTENCES * 9, strict=True)
    objects = [json.dumps({first: other, second: text}) for other, text in pairs]
    path = write(tmp_path / "a.jsonl", objects)
    found = detect_format(path, ("en", "sw"))
    assert (found.format, found.options) == ("jsonl", options)
    told = f"{path}: the field {second} looks like en and {first} like sw; they are read so."
    assert found.note == ("" if first == "en" else told)


@pytest.mark.parametrize("name", ["a.tmx", "a.xml"])
def test_translation_memories(name, tmp_path):
    (tmp_path / name).write_text(TMX)
    assert detect_format(tmp_path / name, ("en", "sw")).format == "tmx"
    with pytest.raises(CorpusError, match=r"is a translation memory. Give it with --pairs"):
        detect_format(tmp_path / name, ("sw",))


REFUSED: dict[str, tuple[str, bytes, str]] = {
    "empty": ("a.txt", b"", "is empty. Name a file with text"),
    "blank": ("a.txt", b"\n \n", "holds only blank lines"),
    "binary": ("a.txt", b"abc\0\1\2" * 9, "is a binary file. Name a file of UTF-8 text"),
    "ZIP": ("a.txt", b"PK\x03\x04" + b"x" * 9, "is a ZIP archive. Unpack it"),
    "gzip without .gz": ("a.txt", gzip.compress(b"text"), "Give its name the ending .gz"),
    "Latin-1": ("a.txt", "né à Évry\n".encode("latin-1") * 9, "is not UTF-8 text .9 of its first"),
    "UTF-16": ("a.txt", "text\n".encode("utf-16"), "is UTF-16 text. Write it as UTF-8: iconv"),
    "CSV without names": (
        "a.csv",
        b"It rains.,1,Nobody.\n" * 3,
        "2 columns with text, and no first",
    ),
    "CSV with other names": (
        "a.csv",
        b"a,b\nx,y\n",
        "which field holds text is not clear .*: a, b",
    ),
    "a title above": (
        "a.csv",
        b"Export\n" + b"id,text\n" * 20,
        "its first row has 1 cells, and most",
    ),
    "an open quote": ("a.csv", b'text,n\n"a,1\nb,2\n', "line 2: the quote .* is not closed"),
    "a list": ("a.json", b'[{"text": "a"}]\n', "is not JSON lines: .* jq -c"),
    "XML": ("a.xml", b"<?xml version='1.0'?><mediawiki>\n", "isoglot knowledge extract"),
    "columns": ("a.txt", b"GEN.1.1\tIn the beginning\n" * 3, "has 2 columns .* cut -f2 FILE > NEW"),
    "no field": (
        "a.jsonl",
        b'{"a": "x", "b": "y"}\n',
        "which field holds text is not clear .*text: a, b.*Rename it to text",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_files_that_cannot_be_read_as_they_are(case, tmp_path):
    name, content, said = REFUSED[case]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(CorpusError, match=said) as raised:
        detect_format(tmp_path / name, ("en",))
    assert str(raised.value).startswith((f"{tmp_path / name}: ", f"{tmp_path / name}, line "))


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (tabbed(SENTENCES, OTHERS, SENTENCES), "has 3 columns, and which two of them are"),
        ([f"{a} ||| {b}" for a, b in zip(SENTENCES, OTHERS, strict=True)], "Write tabs in its"),
    ],
)
def test_pairs_that_cannot_be_read_as_they_are(lines, said, tmp_path):
    with pytest.raises(CorpusError, match=said):
        detect_format(write(tmp_path / "a.tsv", lines), ("en", "sw"))
