"""A prepared corpus: what is damaged is named; datasets, polars and duckdb open its shards."""

from __future__ import annotations

import json
import pickle
import re
import shutil
from collections import Counter
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from isoglot.corpus import Corpus
from isoglot.errors import CorpusError


@pytest.fixture
def copy(corpus, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(corpus.folder, folder)
    return folder


def flip(path, position):
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("position", [0, 1 / 3, 1 / 2, 0.999])
def test_a_flipped_byte_is_found_and_the_shard_named(copy, position):
    shard = copy / "wiki" / "zh" / "train-00000.arrow"
    flip(shard, int(position * shard.stat().st_size))
    with pytest.raises(CorpusError, match=r"zh/train-00000\.arrow: is damaged.*prepare again"):
        Corpus.open(copy)
    Corpus.open(copy, verify="never")


def test_large_corpora_are_hashed_only_on_demand(copy, monkeypatch):
    monkeypatch.setattr("isoglot.corpus.storage.manifest._AUTO_HASH_BYTES", 10)
    flip(copy / "wiki" / "en" / "train-00000.arrow", 700)
    Corpus.open(copy)
    with pytest.raises(CorpusError, match="is damaged"):
        Corpus.open(copy, verify="always")


@pytest.mark.parametrize("verify", ["auto", "always", "never"])
def test_a_missing_or_cut_file_is_always_found(copy, verify):
    shard = copy / "wiki" / "en" / "heldout-00000.arrow"
    shard.write_bytes(shard.read_bytes()[:-8])
    with pytest.raises(CorpusError, match=r"heldout-00000\.arrow: is damaged: it has"):
        Corpus.open(copy, verify=verify)
    shard.unlink()
    with pytest.raises(CorpusError, match=r"heldout-00000\.arrow: is missing"):
        Corpus.open(copy, verify=verify)


def test_a_changed_tokenizer_file_is_found(copy):
    flip(copy / "tokenizer" / "vocabulary.npz", -100)
    with pytest.raises(CorpusError, match=r"vocabulary\.npz: is damaged"):
        Corpus.open(copy)


def damage_manifest(path, change):
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data.pop("languages"), "is damaged"),
        (lambda data: data.update(surprise=1), "is damaged"),
        (lambda data: data.update(format=99), "has format 99"),
        (lambda data: data.update(isoglot="0.0.0"), "is damaged: it is not as it was written"),
        (lambda data: data.pop("checksum"), "is damaged: it is not as it was written"),
        (lambda data: data.update(checksum=None), "is damaged: it is not as it was written"),
    ],
)
def test_a_damaged_manifest_is_told(copy, change, message):
    damage_manifest(copy / "manifest.json", change)
    with pytest.raises(CorpusError, match=rf"manifest\.json: {message}.*prepare again"):
        Corpus.open(copy)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"fingerprint": "0"}, r"is damaged: its fingerprint does not match"),
        ({"languages": 5}, r"is damaged \("),
        (
            {"languages": ["de", "../../x"]},
            r"'../../x' cannot be the name of a source or a language",
        ),
        ({"languages": ["de", "/etc"]}, r"'/etc' cannot be the name"),
        ({"surprise": 1}, r"is damaged \("),
    ],
)
def test_a_manifest_that_was_written_with_faults(copy, change, message):
    """Its checksum is right, its content is not."""
    path = copy / "manifest.json"
    data = {**json.loads(path.read_text()), **change}
    text = json.dumps({**data, "checksum": "0" * 64})
    digest = sha256(text.encode()).hexdigest()
    path.write_text(text.replace("0" * 64, digest, 1))
    with pytest.raises(CorpusError, match=rf"manifest\.json: {message}.*prepare again"):
        Corpus.open(copy)


def test_a_cut_or_missing_manifest(copy):
    path = copy / "manifest.json"
    path.write_text(path.read_text()[:300])
    with pytest.raises(CorpusError, match=r"manifest\.json: is damaged at line"):
        Corpus.open(copy)
    path.unlink()
    with pytest.raises(CorpusError, match="is not a prepared corpus"):
        Corpus.open(copy)


def test_the_tokenizer_of_another_model_is_refused(corpus, tokenizer):
    corpus.check_tokenizer(corpus.tokenizer_folder)
    with pytest.raises(CorpusError, match="is not the one of the corpus") as caught:
        corpus.check_tokenizer(tokenizer)
    assert str(tokenizer) in str(caught.value)
    assert str(corpus.folder) in str(caught.value)


def test_unknown_names_are_answered_with_the_nearest(corpus):
    with pytest.raises(CorpusError, match="no source 'wikki'; did you mean 'wiki'"):
        corpus.table("wikki", "en", "train")
    with pytest.raises(CorpusError, match="has no 'fr'; known: de, en, zh"):
        corpus.table("wiki", "fr", "train")


def test_a_corpus_travels_as_its_path(corpus, copy):
    sent = pickle.dumps(Corpus.open(copy))
    assert len(sent) < 500
    received = pickle.loads(sent)
    assert received.fingerprint == corpus.fingerprint
    table = received.table("bible", "en-de", "train")
    assert table.columns == ("first", "second")
    assert table.ids("second", 1).tolist() == (
        corpus.table("bible", "en-de", "train").ids("second", 1).tolist()
    )


def test_the_vocabulary_needs_no_transformers(corpus):
    vocabulary = corpus.vocabulary
    assert vocabulary.size == corpus.manifest.tokenizer.size
    assert vocabulary.mask == vocabulary.size - 1
    table = corpus.table("wiki", "en", "train")
    assert all(vocabulary.word_starts[table.ids("ids", row)[0]] for row in range(table.num_rows))


PAGE = Path(__file__).parents[3] / "docs" / "prepare.md"


def test_the_python_of_prepare_md(corpus):
    entry = corpus.manifest.sources["wiki"].languages["en"]["train"].shards[0]
    (block,) = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), flags=re.DOTALL)
    named = '"corpora/mine/news/en/train-00000.arrow"'
    assert named in block
    space: dict[str, Any] = {}
    exec(block.replace(named, repr(str(corpus.folder / entry.file))), space)  # noqa: S102 (ours)
    table = corpus.table("wiki", "en", "train")
    expected = [table.ids("ids", row).tolist() for row in range(entry.rows)]
    documents = table.shards[0]["document"].tolist()
    assert space["dataset"]["ids"][:] == space["frame"]["ids"].to_list() == expected
    assert space["dataset"]["document"][:] == space["frame"]["document"].to_list() == documents
    assert space["rows"].schema.metadata[b"languages"] == b"en"
    tokens: Counter[int] = Counter()
    for document, ids in zip(documents, expected, strict=True):
        tokens[document] += len(ids)
    assert dict(space["tokens"]) == tokens
