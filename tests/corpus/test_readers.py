from __future__ import annotations

import bz2
import gzip
import lzma

import pytest
import zstandard

from isoglot.corpus.readers import READERS, Record, Skipped
from isoglot.corpus.readers.files import read_lines
from isoglot.corpus.readers.keyed import KeyedReader
from isoglot.corpus.readers.lines import LinesReader
from isoglot.corpus.readers.pairs import PairsReader
from isoglot.errors import CorpusError

TEXT = "".join(f"line {number} – строка\n" for number in range(20_000))
PACKERS = {
    ".txt": lambda data: data,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.compress,
}


@pytest.mark.parametrize("suffix", PACKERS)
def test_every_packing_gives_the_same_lines(tmp_path, suffix):
    path = tmp_path / f"text{suffix}"
    path.write_bytes(PACKERS[suffix](TEXT.encode()))
    assert list(read_lines(path)) == TEXT.splitlines()


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ".zst"])
def test_several_packed_parts_in_one_file_are_all_read(tmp_path, suffix):
    path = tmp_path / f"text{suffix}"
    path.write_bytes(PACKERS[suffix](b"one\n") + PACKERS[suffix](b"two\n"))
    assert list(read_lines(path)) == ["one", "two"]


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ".zst"])
@pytest.mark.parametrize("damage", ["cut", "not packed", "flipped"])
def test_a_damaged_file_is_named(tmp_path, suffix, damage):
    packed = PACKERS[suffix](TEXT.encode())
    if damage == "cut":
        packed = packed[: len(packed) // 2]
    elif damage == "flipped":
        middle = len(packed) // 2
        packed = packed[:middle] + bytes(255 - byte for byte in packed[middle : middle + 64])
    else:
        packed = TEXT.encode()
    path = tmp_path / f"text{suffix}"
    path.write_bytes(packed)
    with pytest.raises(CorpusError, match=rf"text{suffix}: is damaged"):
        list(read_lines(path))


def test_line_ends_byte_order_mark_and_bad_bytes(tmp_path):
    path = tmp_path / "text.txt"
    path.write_bytes(b"\xef\xbb\xbfone\r\ntwo\rthree\n\n\xff\xfe\nsix")
    assert list(read_lines(path)) == ["one", "two", "three", "", Skipped("encoding"), "six"]


def test_a_missing_file_is_named_with_its_neighbour(tmp_path):
    (tmp_path / "german.txt").touch()
    with pytest.raises(CorpusError, match=r"germn\.txt.*did you mean 'german\.txt'\?"):
        list(read_lines(tmp_path / "germn.txt"))
    with pytest.raises(CorpusError, match=r"nor its folder"):
        list(read_lines(tmp_path / "nowhere" / "german.txt"))


def test_lines_number_documents_over_blank_lines_and_files(tmp_path):
    (tmp_path / "a.txt").write_text("\na\nb\n\n\nc\n")
    (tmp_path / "b.txt").write_text("d\n")
    records = list(LinesReader().read([tmp_path / "a.txt", tmp_path / "b.txt"]))
    kept = [(r.texts[0], r.document) for r in records if isinstance(r, Record)]
    assert kept == [("a", 0), ("b", 0), ("c", 1), ("d", 2)]
    assert records.count(Skipped("blank")) == 3


def test_pairs_want_exactly_two_columns(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("a\tb\na\na\tb\tc\n\n\tb\n")
    assert list(PairsReader().read([path])) == [
        Record(("a", "b")),
        Skipped("columns"),
        Skipped("columns"),
        Skipped("blank"),
        Record(("", "b")),
    ]


def test_keyed_files_are_joined_and_every_line_is_accounted_for(tmp_path):
    first, second = tmp_path / "en.tsv", tmp_path / "de.tsv"
    first.write_text("1\tone\n2\ttwo\n2\ttwo again\n3\tthree\nno tab\n")
    second.write_text("3\tdrei\n1\teins\n4\tvier\n")
    records = list(KeyedReader().read([first, second]))
    assert [r for r in records if isinstance(r, Record)] == [
        Record(("one", "eins")),
        Record(("three", "drei")),
    ]
    reasons = sorted(r.reason for r in records if isinstance(r, Skipped))
    assert reasons == ["columns", "repeated", "unmatched", "unmatched"]
    assert KeyedReader().check_files([first]) is not None


def test_readers_have_names_of_their_own():
    assert len({reader.name for reader in READERS}) == len(READERS)
    assert all(reader.kind in {"text", "pairs"} for reader in READERS)
