"""The lengths of rows in the index are those in the shards, and documents begin where they do."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isoglot.corpus import Corpus
from isoglot.corpus.storage import derived
from isoglot.corpus.storage.array_file import ArrayWriter
from isoglot.corpus.storage.derived import INDEX
from isoglot.corpus.storage.row_index import TableRows, write_rows
from isoglot.corpus.storage.shard_writer import ShardWriter, TokenRows
from isoglot.corpus.storage.shards import ShardFiles, Table
from tests.tiny_corpus import make_corpus


def table_of(folder, lengths, documents, shard_tokens=20):
    writer = ShardWriter(folder, "s/en/train", {}, shard_tokens=shard_tokens)
    sizes = np.array(lengths, np.int32)
    ids = np.zeros(sizes.sum(), np.int32)
    writer.append(TokenRows({"ids": ids}, {"ids": sizes}, np.array(documents, np.int32)))
    entries = writer.close()
    files, rows = [one.file for one in entries], [one.rows for one in entries]
    return Table(("ids",), ShardFiles(folder, files, rows))


def rows_of(table) -> TableRows:
    writer = ArrayWriter()
    write_rows(writer, table)
    return TableRows(writer.arrays(), has_documents=True)


@given(
    rows=st.lists(
        st.tuples(st.sampled_from([0, 1, 3, 7, 40]), st.integers(0, 1)), min_size=1, max_size=40
    )
)
@settings(max_examples=40, deadline=None)
def test_rows_are_those_of_the_shards(tmp_path_factory, rows):
    lengths = [length for length, _ in rows]
    documents = np.cumsum([step for _, step in rows]).tolist()
    if not sum(lengths):
        return
    table = table_of(tmp_path_factory.mktemp("rows"), lengths, documents)
    found = rows_of(table)
    assert found.sizes(slice(None))[:, 0].tolist() == lengths[: table.num_rows]
    begins = found.begins_document(slice(None)).tolist()
    for first, last in zip(table.starts[:-1].tolist(), table.starts[1:].tolist(), strict=True):
        before = None
        for row in range(first, last):
            if lengths[row]:
                assert begins[row] == (documents[row] != before)
                before = documents[row]


@pytest.mark.parametrize(("longest", "kind"), [(2**15 - 1, np.uint16), (2**15, np.uint32)])
def test_long_rows_get_more_bytes(tmp_path, longest, kind):
    lengths = [5, 3, longest, 2]
    table = table_of(tmp_path, lengths, [0, 0, 1, 1], shard_tokens=6)
    found = rows_of(table)
    assert found._arrays["rows"].dtype == kind
    assert found.sizes(slice(None))[:, 0].tolist() == lengths
    assert found.sizes(np.array([2, 0])).tolist() == [[longest], [5]]


def test_prepare_writes_what_reading_makes(tmp_path, monkeypatch):
    """The files of `prepare` are listed, read, and the same as those made without them."""
    folder = make_corpus(tmp_path, sentences=60, pairs=40).folder
    corpus = Corpus.open(folder)
    files = {path.relative_to(folder).as_posix() for path in (folder / INDEX).rglob("*.safe*")}
    assert files == {one.file for one in corpus.manifest.index} != set()
    cases = [("text", "aa", ("ids",)), ("pairs", "aa-bb", ("first", "second"))]
    mapped = [corpus.rows(source, language, "train") for source, language, _ in cases]
    assert all(len(pickle.dumps(one)) < 500 for one in mapped), "they travel as paths"
    (folder / INDEX).rename(folder / "moved")
    monkeypatch.setattr(derived, "KEPT_ROWS", 1)
    again = [corpus.rows(source, language, "train") for source, language, _ in cases]
    for (source, language, columns), one, other in zip(cases, mapped, again, strict=True):
        table = corpus.table(source, language, "train")
        lengths = np.stack([table.lengths(column) for column in columns], axis=1)
        assert np.array_equal(one.sizes(slice(None)), lengths)
        assert np.array_equal(other.sizes(slice(None)), lengths)
        name = f"{source}/{language}/train-rows.safetensors"
        assert (folder / INDEX / name).read_bytes() == (folder / "moved" / name).read_bytes()
