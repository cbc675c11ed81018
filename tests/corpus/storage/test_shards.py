from __future__ import annotations

import pickle
from hashlib import sha256
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isoglot.corpus.storage.shard_writer import ShardWriter, TokenRows, write_shard
from isoglot.corpus.storage.shards import Shard, ShardFiles, Table
from isoglot.errors import CorpusError

ROWS = st.lists(st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=9), max_size=40)


def write(folder, rows, *, shard_tokens=20, chunk=3):
    writer = ShardWriter(folder, "s/en/train", {"source": "s"}, shard_tokens=shard_tokens)
    for start in range(0, len(rows), chunk):
        part = rows[start : start + chunk]
        writer.append(
            TokenRows(
                {"ids": np.array([i for row in part for i in row], dtype=np.int32)},
                {"ids": np.array([len(row) for row in part], dtype=np.int32)},
                np.arange(start, start + len(part), dtype=np.int32),
            )
        )
    entries = writer.close()
    return Table(("ids",), [Shard(folder / entry.file, entry.rows) for entry in entries]), entries


@settings(max_examples=40, deadline=None)
@given(rows=ROWS, picks=st.lists(st.integers(0, 10**6)))
def test_what_is_written_is_read(tmp_path_factory, rows, picks):
    table, entries = write(tmp_path_factory.mktemp("table"), rows)
    assert table.num_rows == len(rows) == sum(entry.rows for entry in entries)
    assert [table.ids("ids", row).tolist() for row in range(len(rows))] == rows
    assert table.lengths("ids").tolist() == list(map(len, rows))
    if rows:
        asked = np.array([pick % len(rows) for pick in picks], dtype=np.int64)
        assert table.lengths("ids", asked).tolist() == [len(rows[row]) for row in asked]
    documents = [number for shard in table.shards for number in shard["document"].tolist()]
    assert documents == list(range(len(rows)))


def test_shards_roll_over_and_rows_know_where_they_are(tmp_path):
    table, entries = write(tmp_path, [[7] * 5 for _ in range(20)])
    assert len(entries) > 2
    assert [entry.tokens["ids"] for entry in entries] == [20, 20, 20, 20, 20]
    path, local = table.where(entries[0].rows + 1)
    assert (path, local) == (tmp_path / entries[1].file, 1)
    with pytest.raises(IndexError):
        table.ids("ids", 20)
    with pytest.raises(IndexError):
        table.ids("ids", -1)


def test_views_are_of_the_mapped_file(tmp_path):
    table, _ = write(tmp_path, [[1, 2], [3]])
    shard = table.shards[0]
    view = table.ids("ids", 0)
    assert np.shares_memory(view, shard.values("ids"))
    assert not view.flags.owndata
    assert not view.flags.writeable
    assert (view.dtype, shard.offsets("ids").dtype) == (np.int32, np.int32)


def test_the_files_are_plain_arrow_with_one_batch(tmp_path):
    _, entries = write(tmp_path, [[1, 2], [3]])
    reader = pa.ipc.open_stream(tmp_path / entries[0].file)
    assert reader.schema.metadata == {b"source": b"s"}
    assert not any(field.nullable for field in reader.schema)
    (batch,) = reader
    assert batch.to_pydict() == {"ids": [[1, 2], [3]], "document": [0, 1]}


def test_a_table_travels_as_paths(tmp_path):
    table, _ = write(tmp_path, [[1] * 1000] * 50, shard_tokens=10**6)
    table.ids("ids", 0)
    sent = pickle.dumps(table)
    assert len(sent) < 1000
    assert pickle.loads(sent).ids("ids", 3).tolist() == [1] * 1000


def test_a_file_that_is_no_shard_is_named(tmp_path):
    (tmp_path / "x.arrow").write_text("no")
    with pytest.raises(CorpusError, match=r"x\.arrow: cannot be read"):
        Table(("ids",), [Shard(tmp_path / "x.arrow", 1)]).ids("ids", 0)
    _, entries = write(tmp_path, [[1, 2], [3]])
    with pytest.raises(CorpusError, match=r"train-00000\.arrow: has 2 rows and not 3"):
        Table(("ids",), [Shard(tmp_path / entries[0].file, 3)]).ids("ids", 0)


def test_a_row_that_fills_a_shard_is_its_last(tmp_path):
    """A shard ends with the row at which it reaches its tokens, in whatever parts they come."""
    lengths = [5, 5, 9, 1, 1, 30, 2, 2, 2, 20, 19]
    for chunk in (1, 2, 3, 11):
        table, entries = write(
            tmp_path / str(chunk), [[n] * n for n in lengths], shard_tokens=20, chunk=chunk
        )
        expected: list[list[int]] = [[]]
        for length in lengths:
            expected[-1].append(length)
            if sum(expected[-1]) >= 20:
                expected.append([])
        expected = [rows for rows in expected if rows]
        assert [entry.rows for entry in entries] == [len(rows) for rows in expected]
        assert [entry.tokens for entry in entries] == [{"ids": sum(rows)} for rows in expected]
        assert [entry.file for entry in entries] == [
            f"s/en/train-{number:05d}.arrow" for number in range(len(expected))
        ]
        starts = [sum(map(len, expected[:number])) for number in range(len(expected) + 1)]
        assert table.starts.tolist() == starts
        for row in range(len(lengths)):
            number = max(n for n, start in enumerate(starts[:-1]) if start <= row)
            assert table.where(row) == (
                tmp_path / str(chunk) / entries[number].file,
                row - starts[number],
            )
            assert table.ids("ids", row).tolist() == [lengths[row]] * lengths[row]


def test_pairs_fill_a_shard_with_both_sides(tmp_path):
    writer = ShardWriter(tmp_path, "p/en-sw/train", {}, shard_tokens=10)
    first, second = [3, 2, 4], [3, 2, 1]
    writer.append(
        TokenRows(
            {name: np.arange(sum(n), dtype=np.int32) for name, n in (("a", first), ("b", second))},
            {name: np.array(n, np.int32) for name, n in (("a", first), ("b", second))},
        )
    )
    entries = writer.close()
    assert [(entry.rows, entry.tokens) for entry in entries] == [
        (2, {"a": 5, "b": 5}),
        (1, {"a": 4, "b": 1}),
    ]
    shard = Shard(tmp_path / entries[1].file, 1)
    assert (shard.tokens("a", 0).tolist(), shard.tokens("b", 0).tolist()) == ([5, 6, 7, 8], [5])
    assert len(shard) == 1
    assert writer.close() == entries, "nothing is written twice"


def test_a_file_and_its_hash(tmp_path):
    _, (entry,) = write(tmp_path, [[1, 2], [3]])
    data = (tmp_path / entry.file).read_bytes()
    assert (entry.bytes, entry.sha256) == (len(data), sha256(data).hexdigest())
    assert (entry.rows, entry.tokens) == (2, {"ids": 3})
    assert not list(tmp_path.rglob("*.partial"))


def test_strings_are_read_row_by_row(tmp_path):
    batch = pa.record_batch({"name": ["ka", "lo"], "number": pa.array([7, 8], pa.int32())})
    entry = write_shard(tmp_path, "names.arrow", batch, {})
    shard = Shard(tmp_path / entry.file, entry.rows)
    assert [shard.string("name", row) for row in (0, 1)] == shard.strings("name") == ["ka", "lo"]
    assert shard["number"].tolist() == [7, 8]
    with pytest.raises(AssertionError, match="number holds no tokens"):
        shard.offsets("number")


def test_few_files_are_mapped_at_a_time(tmp_path, monkeypatch):
    """2,000 shards with room for 16 mappings: every row is read, and old arrays stay valid."""
    monkeypatch.setattr("isoglot.corpus.storage.shards.MAX_OPEN", 16)
    _, entries = write(tmp_path, [[n, n] for n in range(2000)], shard_tokens=2, chunk=100)
    assert len(entries) == 2000
    shards = ShardFiles(tmp_path, [one.file for one in entries], [one.rows for one in entries])
    table = Table(("ids",), shards)
    first = table.ids("ids", 0)
    rows = np.random.default_rng(0).permutation(2000)
    assert [table.ids("ids", row).tolist() for row in rows] == [[row, row] for row in rows]
    mapped = Path("/proc/self/maps")
    if mapped.is_file():
        lines = mapped.read_text().splitlines()
        assert sum(str(tmp_path) in line for line in lines) <= 16 + 1, "the first array's, too"
    assert first.tolist() == [0, 0]
    assert shards[3] is shards[3]
    assert [shard.path for shard in shards[1:3]] == [shards[1].path, shards[2].path]
    assert pickle.loads(pickle.dumps(table)).ids("ids", 1999).tolist() == [1999, 1999]
