"""Input files by URL: the same corpus as from local files, streamed from stores and the hub."""

from __future__ import annotations

import bz2
import gzip
import lzma
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from isoglot.corpus import Corpus
from isoglot.corpus.pipeline.run import prepare
from isoglot.corpus.reading.sources import SourceConfig, find_subsets
from isoglot.errors import FetchError, IsoglotError
from isoglot.remote.faults import report_faults
from isoglot.remote.paths import RemotePath
from tests import tiny_corpus
from tests.remote.conftest import memory, quick_and_alone, store, web
from tests.remote.servers import Store, Traffic, flaky_proxy

__all__ = ["memory", "quick_and_alone", "store", "web"]

LINES = [f"sentence number {number} of the file." for number in range(400)]
TEXT = "\n".join(LINES).encode() + b"\n"
COMPRESSED = {
    "": lambda data: data,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda data: pa.compress(data, codec="zstd", asbytes=True),
}


def read(format: str, *files: str, **options) -> list[str]:  # noqa: A002
    config = SourceConfig(kind="text", format=format, options=options, files={"en": files})
    (subset,) = find_subsets({"s": config}, Path())
    found = [subset.reader().read([file]) for file in subset.files]
    return [record.texts[0] for records in found for record in records]  # type: ignore[union-attr]


@pytest.mark.parametrize("suffix", COMPRESSED)
def test_lines_of_every_compression_are_streamed(suffix, memory):
    for part in range(2):
        half = "\n".join(LINES[part * 200 : part * 200 + 200]).encode() + b"\n"
        memory.pipe(f"/in/{part}.txt{suffix}", COMPRESSED[suffix](half))
    assert read("lines", f"memory://in/*.txt{suffix}") == LINES


def parquet(path: Path, texts: list[str]) -> bytes:
    rows = {
        "id": list(range(len(texts))),
        "body": texts,
        "junk": [f"{n:900d}" for n in range(len(texts))],
    }
    pq.write_table(pa.table(rows), path, row_group_size=100, compression="none")
    return path.read_bytes()


def test_of_parquet_only_the_column_is_read(store, web, tmp_path, monkeypatch):
    monkeypatch.setattr("isoglot.remote.paths.BLOCK_BYTES", 1 << 12)
    content = parquet(tmp_path / "a.parquet", LINES)
    store.files["/a.parquet"] = content
    assert read("parquet", f"{web}/a.parquet", column="body") == LINES
    assert store.sent_bytes < len(content) / 3


def test_arrow_files_and_json_lines(memory, tmp_path):
    table = pa.table({"text": LINES})
    for kind, make in {"file": pa.ipc.new_file, "stream": pa.ipc.new_stream}.items():
        with pa.OSFile(str(tmp_path / kind), "wb") as sink, make(sink, table.schema) as writer:
            writer.write_table(table)
        memory.pipe(f"/{kind}.arrow", (tmp_path / kind).read_bytes())
        assert read("parquet", f"memory://{kind}.arrow") == LINES
    memory.pipe("/a.jsonl", b'{"text": "one"}\n{"text": "two"}\n')
    assert read("jsonl", "memory://a.jsonl") == ["one", "two"]


@pytest.fixture
def hub(store, web, monkeypatch, tmp_path) -> Store:
    """A hub with a dataset of two configs."""
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setenv("HF_ENDPOINT", web)
    store.repo = "org/data"
    for part in range(2):
        name = f"/datasets/org/data/sw/train-{part:05d}-of-00002.parquet"
        texts = LINES[part * 200 : part * 200 + 200]
        store.files[name] = parquet(tmp_path / "part", texts)
    store.files["/datasets/org/data/sw/test-00000-of-00001.parquet"] = b"PAR1"
    store.files["/datasets/org/data/en/train.jsonl.gz"] = gzip.compress(b'{"text": "hello"}\n')
    store.files["/datasets/org/data/README.md"] = b"about"
    return store


def test_a_dataset_of_the_hub_is_streamed_by_name(hub):
    assert read("parquet", "hf://datasets/org/data:sw", column="body") == LINES
    assert read("datasets", "hf://datasets/org/data:sw:train", column="body") == LINES
    assert read("jsonl", "hf://datasets/org/data") == ["hello"]  # the config of the language
    gets = [path for method, path in hub.requests if method == "GET" and "/resolve/" in path]
    assert all("/resolve/rev1/" in path for path in gets)
    with pytest.raises(FetchError, match=r"^hf:org/data: has no config 'xx'; "):
        read("parquet", "hf://datasets/org/data:xx")
    with pytest.raises(FetchError, match="the hub has no such dataset"):
        read("parquet", "hf://datasets/org/other")


def test_files_of_the_hub_are_found_by_pattern_and_known_by_their_hash(hub):
    assert read("parquet", "hf://datasets/org/data/sw/train-*.parquet", column="body") == LINES
    file = RemotePath("hf://datasets/org/data/sw/test-00000-of-00001.parquet")
    import hashlib

    assert file.sha256() == hashlib.sha256(b"PAR1").hexdigest()


def sources(root: str) -> dict[str, SourceConfig]:
    made = tiny_corpus.config().sources
    return {
        name: replace(
            one, files={code: tuple(f"{root}/{f}" for f in fs) for code, fs in one.files.items()}
        )
        for name, one in made.items()
    }


@pytest.fixture(scope="module")
def raw(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("raw")
    tiny_corpus.write_raw(folder, sentences=120, pairs=60)
    return folder


@pytest.mark.slow
def test_a_corpus_of_remote_files_is_that_of_local_files(raw, store, web, tmp_path):
    store.put_folder(raw, "/raw")
    local = prepare(tiny_corpus.config(), tmp_path / "local", base=raw)
    config = tiny_corpus.config(sources=sources(f"{web}/raw"))
    told: list[str] = []
    with flaky_proxy(web, Traffic(every=4, silence_seconds=1.5)) as proxy:
        flaky = tiny_corpus.config(sources=sources(f"{proxy}/raw"))
        with report_faults(told.append):
            assert prepare(flaky, tmp_path / "flaky").fingerprint == local.fingerprint
    assert "to remote files failed" in told[0]
    found = prepare(config, tmp_path / "remote")
    assert found.fingerprint == local.fingerprint
    assert Corpus.open(tmp_path / "remote").languages == ("aa", "bb", "cc")
    named = {entry.file: entry.bytes for entry in found.inputs}
    assert named[f"{web}/raw/text/aa.txt"] == (raw / "text/aa.txt").stat().st_size
    # nothing is done again, unless a file has another version
    before = len(store.requests)
    prepare(config, tmp_path / "remote")
    assert not [1 for method, _ in store.requests[before:] if method == "GET"]


def test_a_store_that_never_answers_and_a_missing_file(store, web, tmp_path, monkeypatch):
    with pytest.raises(FetchError, match=r"/raw/pairs/aa-bb.tsv: there is no such file or folder"):
        prepare(tiny_corpus.config(sources=sources(f"{web}/raw")), tmp_path / "a")
    monkeypatch.setenv("ISOGLOT_REMOTE_TRIES", "2")
    with pytest.raises(
        IsoglotError, match=r"127.0.0.1:9/raw/pairs/aa-bb.tsv: cannot be read \(no conn"
    ):
        prepare(tiny_corpus.config(sources=sources("http://127.0.0.1:9/raw")), tmp_path / "b")
