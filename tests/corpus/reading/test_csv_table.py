from __future__ import annotations

import csv
import gzip
import io
import random
import re
from itertools import product
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isoglot.corpus.reading import csv_table
from isoglot.corpus.reading.csv_table import CsvReader, look_at, rows_of
from isoglot.corpus.reading.files import read_lines
from isoglot.corpus.reading.reader import LineReader, Record, Skipped
from isoglot.corpus.reading.registry import reader_for
from isoglot.errors import CorpusError, RecipeError

CELLS = st.lists(
    st.sampled_from(["a", "é", "字", " ", ",", ";", "\t", '"', "\n", "\r\n"]), max_size=8
).map("".join)
TABLES = st.integers(1, 4).flatmap(
    lambda width: st.lists(
        st.lists(CELLS, min_size=width, max_size=width).filter(lambda row: "".join(row).strip()),
        min_size=1,
        max_size=6,
    )
)


def parsed(path: Path, delimiter: str) -> list[list[str] | Skipped]:
    lines = enumerate(read_lines(path), start=1)
    return [cells for _, cells in rows_of(path, lines, delimiter)]


def with_lf(rows: list[list[str]]) -> list[list[str]]:
    return [[re.sub("\r\n?", "\n", cell) for cell in row] for row in rows]


@settings(max_examples=200, deadline=None)
@given(
    table=TABLES,
    delimiter=st.sampled_from(csv_table.DELIMITERS),
    quoting=st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL, csv.QUOTE_NONNUMERIC]),
    end=st.sampled_from(["\n", "\r\n"]),
    mark=st.booleans(),
)
def test_what_is_written_is_read(tmp_path_factory, table, delimiter, quoting, end, mark):
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, quoting=quoting, lineterminator=end).writerows(table)
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    path.write_bytes(b"\xef\xbb\xbf" * mark + text.getvalue().encode())
    found = parsed(path, delimiter)
    assert found == with_lf(table)


@pytest.mark.parametrize("delimiter", csv_table.DELIMITERS)
def test_a_table_is_that_of_polars(tmp_path, delimiter):
    """Cells of random signs, a thousand rows; polars has no value for an empty cell."""
    rng = random.Random(0)
    signs = ["a", "é", "字", " ", ",", ";", "\t", '"', '"', "\n", "\r\n"]
    with (tmp_path / "a.csv").open("w", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter, quoting=csv.QUOTE_MINIMAL)
        for number in range(1000):
            cells = ["".join(rng.choices(signs, k=rng.randrange(9))) for _ in range(2)]
            writer.writerow([number, *cells])
    frame = pl.read_csv(
        tmp_path / "a.csv", separator=delimiter, has_header=False, infer_schema=False
    )
    expected = [[cell or "" for cell in row] for row in frame.rows()]
    assert parsed(tmp_path / "a.csv", delimiter) == with_lf(expected)


@settings(max_examples=400, deadline=None)
@given(text=st.text(st.sampled_from(["a", "b", ",", '"', '"', "\n", "\r"]), max_size=24))
def test_any_text_is_read_as_python_reads_it_or_refused(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    path.write_text(text, newline="")
    expected: list[list[str]] | None
    try:
        expected = [row for row in csv.reader(io.StringIO(text, newline=""), strict=True) if row]
    except csv.Error:
        expected = None
    try:
        found = parsed(path, ",")
    except CorpusError:
        found = [Skipped("quotes")]
    reasons = {cells.reason for cells in found if isinstance(cells, Skipped)}
    assert (expected is None) == ("quotes" in reasons)
    assert reasons <= {"quotes", "blank"}
    if expected is not None:
        assert [cells for cells in found if isinstance(cells, list)] == with_lf(expected)


SENTENCES = [
    "Hello, you; there",
    'He said "no", and left',
    "One, two | three",
    "two\nlines",
    "It rains",
]


@pytest.mark.parametrize(
    ("delimiter", "quoting", "header"),
    [*product(csv_table.DELIMITERS, [csv.QUOTE_ALL, csv.QUOTE_MINIMAL], [True, False])],
)
def test_the_delimiter_is_found(tmp_path, delimiter, quoting, header):
    with (tmp_path / "a.csv").open("w", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter, quoting=quoting)
        rows = [[str(n), text, text[::-1]] for n, text in enumerate(SENTENCES * 2)]
        writer.writerows([["id", "en", "sw"]] * header + rows)
    table = look_at(tmp_path / "a.csv")
    assert (table.delimiter, table.width, len(table.rows)) == (delimiter, 3, 10 + header)


@pytest.mark.parametrize(
    "text", ["text\nOne, two\nthree\n", 'text\n"One, two"\n"a; b"\n', "text\n"]
)
def test_a_table_of_one_column(tmp_path, text):
    (tmp_path / "a.csv").write_text(text)
    found = list(CsvReader(languages=("en",)).read([tmp_path / "a.csv"]))
    assert found[0] == Skipped("header")
    texts = [one.texts[0] for one in found[1:] if isinstance(one, Record)]
    assert texts == [line.strip('"') for line in text.splitlines()[1:]]


def test_rows_that_do_not_fit_are_counted_with_their_lines(tmp_path):
    rows = 'en,sw,note\na,b,\n"two\nlines",c,d\n\nx,y\n"bad" q,r,s\nlast,"row",""\n'
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"\xef\xbb\xbf" + rows.encode()))
    found = list(CsvReader(languages=("sw", "en")).read([tmp_path / "a.csv.gz"]))
    assert found == [
        Skipped("header"),
        Record(("b", "a")),
        Record(("c", "two\nlines")),
        Skipped("blank"),
        Skipped("columns"),
        Skipped("quotes"),
        Record(("row", "last")),
    ]
    assert [one.line for one in found] == [1, 2, 3, 5, 6, 7, 8]


def test_columns_by_number_and_documents(tmp_path):
    (tmp_path / "a.csv").write_text("1;eins;one\n2;zwei;two\n")
    options: dict[str, Any] = {"first": 3, "second": 2, "header": False}
    pairs = reader_for("csv", options, ("en", "de"), "s").read([tmp_path / "a.csv"])
    assert list(pairs) == [Record(("one", "eins")), Record(("two", "zwei"))]
    texts = reader_for("csv", {"column": 2}, ("de",), "s").read([tmp_path / "a.csv"] * 2)
    assert list(texts) == [
        Skipped("header"),
        Record(("zwei",), document=0),
        Skipped("header"),
        Record(("zwei",), document=1),
    ]


def test_bytes_that_are_not_text_spoil_their_row_alone(tmp_path):
    (tmp_path / "a.csv").write_bytes(b'text,n\na,1\n\xff,2\n"b\n\xff\nc",3\nd\0d,4\n')
    found = list(CsvReader(languages=("en",)).read([tmp_path / "a.csv"]))
    assert found == [
        Skipped("header"),
        Record(("a",), document=0),
        Skipped("encoding"),
        Skipped("encoding"),
        Record(("d\0d",), document=1),
    ]


FAULTS = {
    "not closed": ('en,de\na,b\nc,"d\ne,f\n', r"a\.csv, line 3: the quote .* is not closed"),
    "closed later": ('en,de\n"a\nb"c,d\n', r"line 2: the quote .* is closed in line 3, where text"),
    "no such column": ("en,fr\na,b\n", r"a\.csv: has no column 'de'; .*en"),
    "two of a name": ("en,de,de\na,b,c\n", r"has 2 columns 'de'\. Name the one to read by its num"),
    "names not UTF-8": ("en,d\udcff\na,b\n", r"line 1: the row with the names .* is not UTF-8"),
    "names in quotes": ('"e"n,de\na,b\n', r"line 1: the row with the names .* follows a closing"),
}  # fmt: skip


@pytest.mark.parametrize("case", FAULTS)
def test_faults_of_a_file_are_one_sentence_with_file_and_line(tmp_path, case):
    text, message = FAULTS[case]
    (tmp_path / "a.csv").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(CorpusError, match=message):
        list(CsvReader(languages=("en", "de")).read([tmp_path / "a.csv"]))


def test_a_column_that_is_not_there(tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n")
    with pytest.raises(CorpusError, match=r"a\.csv: has 2 columns, and column 3 is to be read"):
        list(CsvReader(languages=("en",), column=3, header=False).read([tmp_path / "a.csv"]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delimiter": "||"}, r"delimiter: expected one character, got '\|\|'"),
        ({"delimiter": '"'}, "delimiter: expected one character"),
        ({"first": 0}, "first must be from 1 to 10,000, not 0"),
        ({"header": False}, "without a header, columns are numbers: first: 1, second: 2"),
        ({"first": "de"}, "first and second name the same column"),
        ({"first": True}, "expected text or a whole number, got True"),
    ],
)
def test_options_that_cannot_work_are_refused(options, message):
    with pytest.raises(RecipeError, match=message):
        reader_for("csv", options, ("en", "de"), "sources.s")


def test_a_cell_without_end_is_refused_in_bounded_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_table, "MAX_LINE_BYTES", 1000)
    (tmp_path / "a.csv").write_text('text\n"' + "abc\n" * 5000 + '"\n')
    with pytest.raises(CorpusError, match="line 2: the quote that opens a cell here is not closed"):
        list(CsvReader(languages=("en",)).read([tmp_path / "a.csv"]))


def test_a_file_is_read_by_one_task():
    """A part that begins inside of quotes could not be told from one that does not."""
    assert not issubclass(CsvReader, LineReader)
