"""Corruption campaign: no changed, cut or missing byte of a corpus or its counts goes unnoticed."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import numpy as np
import pytest

from isoglot.corpus import Corpus
from isoglot.corpus.cooccurrence.count import count_pairs
from isoglot.corpus.cooccurrence.pair_table import PairConfig
from isoglot.corpus.cooccurrence.phrases import PhraseConfig, Phrases, phrases_of
from isoglot.corpus.storage.derived import INDEX
from isoglot.errors import CorpusError
from tests.tiny_corpus import make_corpus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

Damage = tuple[str, "Callable[[bytes], bytes]"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """A corpus with counts of pairs and phrases."""
    folder = make_corpus(tmp_path_factory.mktemp("damage"), sentences=60, pairs=40).folder
    read_all(folder)
    return folder


def read_all(folder: Path) -> list[np.ndarray]:
    """Everything that training reads of a corpus and its counts, as arrays."""
    corpus = Corpus.open(folder)
    table = count_pairs(corpus, PairConfig())
    phrases = Phrases.open.__wrapped__(  # without its cache
        str(phrases_of(corpus, PhraseConfig(min_count=2)))
    )
    found = [np.array(table.keys), np.array(table.log_counts), phrases.table]
    for source, entry in corpus.manifest.sources.items():
        for language in entry.languages:
            part = corpus.table(source, language, "train")
            found += [shard.values(column) for shard in part.shards for column in part.columns]
            rows = corpus.rows(source, language, "train")
            found.append(rows.sizes(slice(None)))
            if part.columns == ("ids",):
                found.append(rows.begins_document(slice(None)))
    return found


def flip(position: int, bit: int) -> Callable[[bytes], bytes]:
    def change(data: bytes) -> bytes:
        changed = bytearray(data)
        changed[position] ^= 1 << bit
        return bytes(changed)

    return change


def damages(size: int, rng: np.random.Generator, number: int) -> Iterator[Damage]:
    """Ways to damage a file of some size: flipped bits, cuts, more bytes, nothing left, zeros."""
    for position in {0, size - 1, *rng.integers(size, size=number).tolist()}:
        bit = int(rng.integers(8))
        yield f"bit {bit} of byte {position}", flip(position, bit)
    for length in {0, size - 1, *rng.integers(size, size=max(number // 4, 1)).tolist()}:
        yield f"cut to {length}", lambda data, length=length: data[:length]  # type: ignore[misc]
    yield "a byte more", lambda data: data + b"\n"
    yield "zeros", lambda data: bytes(len(data))


def unnoticed(folder: Path, file: Path, found: list[np.ndarray], many: list[Damage]) -> list[str]:
    """The damages of a file after which the folder is read, or fails with another error."""
    original, wrong = file.read_bytes(), []
    for name, change in many:
        file.write_bytes(change(original))
        try:
            same = all(map(np.array_equal, read_all(folder), found))
        except CorpusError as error:
            if not str(error).strip():
                wrong.append(f"{file.name}, {name}: no message")
        except Exception as error:
            wrong.append(f"{file.name}, {name}: {error!r}")
        else:
            if not same or INDEX not in file.parts:  # a damaged index is made again
                wrong.append(f"{file.name}, {name}: unnoticed, same data: {same}")
        file.write_bytes(original)
    return wrong


def campaign(whole: Path, folder: Path, number: int) -> tuple[int, list[str]]:
    """The number of damages tried, and those that were not noticed."""
    shutil.copytree(whole, folder)
    found, rng = read_all(folder), np.random.default_rng(0)
    tried, wrong = 0, []
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        many = list(damages(file.stat().st_size, rng, number))
        wrong += unnoticed(folder, file, found, many)
        tried += len(many)
    return tried, wrong


def test_no_damage_goes_unnoticed(whole, tmp_path):
    tried, wrong = campaign(whole, tmp_path / "copy", number=1)
    assert wrong == []
    assert tried > 100


@pytest.mark.slow
def test_hundreds_of_damages(whole, tmp_path):
    tried, wrong = campaign(whole, tmp_path / "copy", number=30)
    assert wrong == []
    assert tried > 600


def test_every_byte_of_the_manifests_counts(whole, tmp_path):
    """Every second byte of pairs.json, which is small; white space is no exception."""
    folder = tmp_path / "copy"
    shutil.copytree(whole, folder)
    (file,) = folder.glob("cooccurrence/*/pairs.json")
    original = file.read_bytes()
    corpus = Corpus.open(folder)
    for position in range(0, len(original), 2):
        file.write_bytes(flip(position, position % 8)(original))
        with pytest.raises(CorpusError, match=r"pairs\.json: .*Remove the folder"):
            count_pairs(corpus, PairConfig())


def test_missing_files(whole, tmp_path):
    """A missing file is named; counts and phrases without their last file are made again."""
    folder = tmp_path / "copy"
    shutil.copytree(whole, folder)
    found = read_all(folder)
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        original = file.read_bytes()
        file.unlink()
        if file.name == "pairs.json" or file.name.startswith("phrases-"):
            assert all(map(np.array_equal, read_all(folder), found))
            assert file.read_bytes() == original
            continue
        if INDEX in file.parts:
            assert all(map(np.array_equal, read_all(folder), found))
            continue
        expected = "is not a prepared corpus" if file.name == "manifest.json" else file.name
        with pytest.raises(CorpusError, match=expected):
            read_all(folder)
        file.write_bytes(original)
