from __future__ import annotations

from pathlib import Path

import datasets
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from isoglot.corpus.reading.parquet import DatasetsReader, ParquetReader
from isoglot.corpus.reading.reader import Reader, Record, Skipped
from isoglot.errors import CorpusError

TEXTS = ["one\ntwo", None, "three"]
READ = [Record(("one\ntwo",), 0), Skipped("no field"), Record(("three",), 1)]


def texts_of(reader: Reader, file: Path) -> list[str]:
    return [item.texts[0] for item in reader.read([file]) if isinstance(item, Record)]


@pytest.mark.parametrize(
    "kind",
    [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())],
)
def test_every_kind_of_text_column_is_read(tmp_path, kind):
    table = pa.table({"text": pa.array(TEXTS, pa.string()).cast(kind)})
    with pa.ipc.new_file(tmp_path / "x.arrow", table.schema) as writer:
        writer.write_table(table)
    assert list(ParquetReader().read([tmp_path / "x.arrow"])) == READ


def test_parquet_and_feather_are_told_apart_by_their_content(tmp_path):
    table = pa.table({"body": TEXTS})
    pq.write_table(table, tmp_path / "x")
    pyarrow.feather.write_feather(table, tmp_path / "y")
    for name in "xy":
        found = list(ParquetReader(column="body").read([tmp_path / name]))
        assert found == READ
        assert [item.line for item in found] == [1, 2, 3]


def test_pairs_lie_in_two_columns_or_inside_one(tmp_path):
    rows = [{"en": "house", "de": "Haus"}, {"en": "cat", "de": None}, None]
    pq.write_table(pa.table({"translation": rows}), tmp_path / "inside.parquet")
    pq.write_table(pa.table({"en": ["house"], "de": ["Haus"]}), tmp_path / "two.parquet")
    inside = ParquetReader(
        languages=("de", "en"), first="translation.de", second="translation.en"
    ).read([tmp_path / "inside.parquet"])
    assert list(inside) == [Record(("Haus", "house")), Skipped("no field"), Skipped("no field")]
    two = ParquetReader(languages=("de", "en")).read([tmp_path / "two.parquet"])
    assert list(two) == [Record(("Haus", "house"))]


def test_bytes_that_are_no_text_spoil_one_row(tmp_path):
    raw = pa.array([b"good", b"\xff bad", b"good too"])
    pq.write_table(pa.table({"text": raw.view(pa.string())}), tmp_path / "x.parquet")
    found = list(ParquetReader().read([tmp_path / "x.parquet"]))
    assert found == [Record(("good",), 0), Skipped("encoding"), Record(("good too",), 1)]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("txt", r"x\.parquet: has no column 'txt'; did you mean 'text'\?"),
        ("n", r"the column 'n' holds int64 and no text"),
        ("text.en", r"there is no 'en' in a column of type string"),
    ],
)
def test_a_column_that_is_not_there_is_named(tmp_path, column, message):
    pq.write_table(pa.table({"text": ["a"], "n": [1]}), tmp_path / "x.parquet")
    with pytest.raises(CorpusError, match=message):
        list(ParquetReader(column=column).read([tmp_path / "x.parquet"]))


def test_a_stream_that_was_cut_between_batches_is_noticed(tmp_path):
    table = pa.table({"text": ["a"] * 100})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=10)
        whole = sink.tell()
    (tmp_path / "x.arrow").write_bytes(sink.getvalue().to_pybytes()[:whole])
    with pytest.raises(CorpusError, match=r"cannot be read after row 100 .*does not end"):
        list(ParquetReader().read([tmp_path / "x.arrow"]))


def test_a_saved_dataset_is_read_shard_by_shard(tmp_path):
    data = datasets.Dataset.from_dict({"text": [f"text {n}" for n in range(10)]})
    data.save_to_disk(str(tmp_path / "one"), num_shards=3)
    reader = DatasetsReader(languages=("en",))
    files = reader.files_of(tmp_path / "one")
    assert len(files) == 3
    assert [read for file in files for read in texts_of(reader, file)] == list(data["text"])


def test_the_part_of_a_dataset_can_be_chosen(tmp_path):
    parts = {name: datasets.Dataset.from_dict({"text": [name]}) for name in ("train", "test")}
    datasets.DatasetDict(parts).save_to_disk(str(tmp_path / "saved"))
    hub = tmp_path / "hub" / "data"
    hub.mkdir(parents=True)
    for name in parts:
        pq.write_table(pa.table({"text": [name]}), hub / f"{name}-00000-of-00001.parquet")

    def texts(folder: str, part: str) -> list[str]:
        reader = DatasetsReader(part=part)
        files = reader.files_of(tmp_path / folder)
        return [read for file in files for read in texts_of(reader, file)]

    for folder in ("saved", "hub"):
        assert texts(folder, "train") == ["train"]
        assert texts(folder, "test") == ["test"]
        assert sorted(texts(folder, "*")) == ["test", "train"]
        with pytest.raises(CorpusError, match=r"part 'trial'"):
            texts(folder, "trial")


def test_what_is_no_dataset_is_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "state.json").write_text("{")
    (tmp_path / "file.parquet").touch()
    for name, message in {
        "empty": "is not a dataset",
        "damaged": "missing or damaged",
        "file.parquet": "use format 'parquet'",
        "nowhere": "is not a folder",
    }.items():
        with pytest.raises(CorpusError, match=message):
            DatasetsReader().files_of(tmp_path / name)
