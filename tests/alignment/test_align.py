"""`isoglot.align`: links in order, read as the iterator advances."""

from __future__ import annotations

import itertools

import pytest

import isoglot
from isoglot.alignment import align as module
from isoglot.alignment.align import aligned_blocks, load_aligner, pharaoh, split_words
from isoglot.alignment.config import AlignConfig
from isoglot.errors import CorpusError
from tests.alignment.conftest import PAIRS


@pytest.fixture(scope="module")
def expected(folder):
    aligner = load_aligner(folder, AlignConfig())
    return aligner.links(aligner.prepare([split_words(pair) for pair in PAIRS]))


def test_texts_words_and_files(folder, expected, tmp_path):
    assert list(isoglot.align(PAIRS, folder)) == expected
    assert list(isoglot.align([split_words(pair) for pair in PAIRS], folder)) == expected
    file = tmp_path / "en-de.tsv"
    file.write_text("".join(f"{a}\t{b}\n" for a, b in PAIRS), encoding="utf-8")
    done: list[int] = []
    assert list(isoglot.align(file, folder, progress=done.append)) == expected
    assert done == [len(PAIRS)]


def test_blocks_change_nothing(folder, expected, monkeypatch):
    for pairs, words in ((2, 10**9), (1024, 1)):
        monkeypatch.setattr(module, "_BLOCK_PAIRS", pairs)
        monkeypatch.setattr(module, "_BLOCK_WORDS", words)
        assert list(isoglot.align(PAIRS, folder)) == expected


def test_pairs_are_read_as_the_iterator_advances(folder, monkeypatch):
    monkeypatch.setattr(module, "_BLOCK_PAIRS", 2)
    read: list[int] = []

    def endless():
        for number in itertools.count():
            read.append(number)
            yield "the fox", "the dog"

    found = isoglot.align(endless(), folder)
    assert [next(found) for _ in range(5)]
    found.close()  # type: ignore[attr-defined]
    assert max(read) < 12


def test_an_error_of_the_pairs_is_raised(folder):
    def broken():
        yield "the fox", "the dog"
        raise CorpusError("a broken file")

    with pytest.raises(CorpusError, match="a broken file"):
        list(isoglot.align(broken(), folder))


def test_cut_pairs_are_told(folder):
    notes: list[str] = []
    list(isoglot.align([("fox " * 100, "dog"), ("fox", "dog")], folder, note=notes.append))
    (note,) = notes
    assert note.startswith("1 of 2 pairs are longer than the model's positions: they are cut there")


def test_aligned_blocks_have_their_pairs(folder):
    aligner = load_aligner(folder, AlignConfig(aligner="argmax"))
    (block,) = aligned_blocks(aligner, map(split_words, PAIRS))
    assert block.pairs == [split_words(pair) for pair in PAIRS]
    assert block.num_cut == 0


def test_pharaoh_format():
    assert pharaoh([(0, 0), (1, 12)]) == "0-0 1-12"
    assert pharaoh([]) == ""
