from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isoglot.corpus.reading.paragraph_alignment import align_paragraphs
from isoglot.corpus.reading.parallel import ComparableReader, KeyedReader, MosesReader, TsvReader
from isoglot.corpus.reading.reader import Record, Skipped
from isoglot.errors import CorpusError


def test_pairs_want_exactly_two_columns(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("a\tb\na\na\tb\tc\n\n\tb\n")
    assert list(TsvReader().read([path])) == [
        Record(("a", "b")),
        Skipped("columns"),
        Skipped("columns"),
        Skipped("blank"),
        Record(("", "b")),
    ]


def test_columns_can_be_chosen(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text(
        "l1\tl2\tfirst\tsecond\neng\tdeu\thouse\tHaus\nref\neng\tdeu\tcat\tKatze\t0.9\n"
    )
    chosen = TsvReader(first=4, second=3, header=True)
    assert list(chosen.read([path])) == [
        Skipped("header"),
        Record(("Haus", "house")),
        Skipped("columns"),
        Skipped("columns"),
    ]
    longer = TsvReader(first=3, second=4, more=True)
    assert list(longer.read([path]))[-1] == Record(("cat", "Katze"))


def test_keyed_files_are_joined_and_every_line_is_accounted_for(tmp_path):
    first, second = tmp_path / "en.tsv", tmp_path / "de.tsv"
    first.write_text("1\tone\n2\ttwo\n2\ttwo again\n3\tthree\nno tab\n")
    second.write_text("3\tdrei\n1\teins\n4\tvier\n")
    records = list(KeyedReader().read([first, second]))
    assert [r for r in records if isinstance(r, Record)] == [
        Record(("one", "eins")),
        Record(("three", "drei")),
    ]
    skipped = {(r.reason, r.text, r.file, r.line) for r in records if isinstance(r, Skipped)}
    assert skipped == {
        ("columns", "no tab", 0, 5),
        ("repeated", "2\ttwo again", 0, 3),
        ("unmatched", "2\ttwo", 0, 2),
        ("unmatched", "4\tvier", 1, 3),
    }
    assert KeyedReader().check_files([first]) is not None


def test_moses_files_are_parallel(tmp_path):
    first, second = tmp_path / "x.en", tmp_path / "x.de"
    first.write_bytes(b"one\n\n\xff\nfour\n\n")
    second.write_bytes(b"eins\n\ndrei\n\xff\nfunf\n")
    found = list(MosesReader().read([first, second]))
    assert found == [
        Record(("one", "eins")),
        Skipped("blank"),
        Skipped("encoding"),
        Skipped("encoding"),
        Record(("", "funf")),
    ]
    assert [item.file for item in found] == [0, 0, 0, 1, 0]


@pytest.mark.parametrize(("one", "other"), [(5, 1200), (1200, 5), (0, 1)])
def test_moses_files_of_different_lengths_are_refused(tmp_path, one, other):
    first, second = tmp_path / "x.en", tmp_path / "x.de"
    first.write_text("a\n" * one)
    second.write_text("b\n" * other)
    with pytest.raises(CorpusError, match=rf"x\.en: has {one:,} lines, .*x\.de has {other:,}\."):
        list(MosesReader().read([first, second]))


@pytest.mark.parametrize("reader", [MosesReader, KeyedReader, ComparableReader])
@pytest.mark.parametrize(
    ("names", "fault"),
    [
        (["a.en", "a.de"], None),
        (["a.en", "a.de", "b.en", "b.de"], None),
        (["dev.de-en.en", "dev.de-en.de"], None),
        (["source.txt", "target.txt"], None),
        (["a.de", "a.en"], "a.de is in the place of a file of 'en'"),
        (["a.en", "b.en", "a.de", "b.de"], "b.en is in the place of a file of 'de'"),
        (["a.en"], "reads two files at a time"),
    ],
)
def test_files_in_the_wrong_order_are_noticed(reader, names, fault):
    found = reader(languages=("en", "de")).check_files([Path(name) for name in names])
    assert (found is None) if fault is None else (fault in str(found))


def paragraphs(*words: int) -> list[str]:
    """Paragraphs of this many words."""
    return ["word " * number for number in words]


@pytest.mark.parametrize(
    ("first", "second", "pairs"),
    [
        ((10, 50, 20), (11, 55, 21), [(0, 0), (1, 1), (2, 2)]),
        ((10, 50, 200, 20), (10, 200, 20), [(0, 0), (2, 1), (3, 2)]),
        ((10, 200, 20), (10, 50, 200, 20), [(0, 0), (1, 2), (2, 3)]),
        ((10, 100, 300), (10, 50, 50, 300), [(0, 0), (2, 3)]),
        ((), (10,), []),
        ((), (), []),
    ],
)
def test_paragraphs_are_aligned_by_their_lengths(first, second, pairs):
    assert align_paragraphs(paragraphs(*first), paragraphs(*second)) == pairs


@given(lengths=st.lists(st.tuples(st.integers(1, 400), st.integers(1, 400)), max_size=12))
@settings(max_examples=50, deadline=None)
def test_alignment_goes_forward_and_takes_each_paragraph_once(lengths):
    first, second = paragraphs(*(a for a, _ in lengths)), paragraphs(*(b for _, b in lengths))
    found = align_paragraphs(first, second)
    assert [i for i, _ in found] == sorted({i for i, _ in found})
    assert [j for _, j in found] == sorted({j for _, j in found})
    assert align_paragraphs(first, first) == [(i, i) for i in range(len(first))]


def test_comparable_documents_give_pairs_of_paragraphs(tmp_path):
    short, long, middle = paragraphs(5, 80, 30)
    english = {"a": f"{short}\n\n{long}", "b": f"{short}\n{long}\n{middle}", "c": "Alone.", "d": ""}
    german = {"d": "", "a": f"{short}\n{long}\n", "b": f"{short}\n{middle}", "e": "Allein."}
    first, second = tmp_path / "en.jsonl", tmp_path / "de.jsonl"
    for path, documents in ((first, english), (second, german)):
        rows = [{"id": key, "text": text} for key, text in documents.items()]
        path.write_text("".join(json.dumps(row) + "\n" for row in [*rows, rows[0]]), "utf-8")
    found = list(ComparableReader(languages=("en", "de")).read([first, second]))
    assert [(i.texts[0], i.document) for i in found if isinstance(i, Record)] == [
        (short, 0),
        (long, 0),
        (short, 1),
        (middle, 1),
    ]
    assert all(i.texts[0] == i.texts[1] for i in found if isinstance(i, Record))
    assert {(i.reason, i.text, i.file, i.line) for i in found if isinstance(i, Skipped)} == {
        ("repeated", "a", 0, 5),
        ("repeated", "d", 1, 5),
        ("unaligned", long, 0, 2),
        ("unaligned", "", 0, 4),
        ("unmatched", "c", 0, 3),
        ("unmatched", "e", 1, 4),
    }
