"""A corpus in an object store (moto's S3 server) and on a web server: the local batches, bit for
bit, also with faults; what is asked for there and is not."""

from __future__ import annotations

import time
from collections.abc import Iterator

import fsspec
import pytest
from s3fs import S3FileSystem

from isoglot.batching.loader import LoaderConfig
from isoglot.corpus import Corpus
from isoglot.errors import CorpusError, FetchError, IsoglotError
from isoglot.remote.faults import report_faults
from isoglot.remote.paths import RemotePath, find_remote
from isoglot.types import Cursor
from tests.batching.test_loader import loader, take
from tests.remote.servers import Traffic, flaky_proxy, object_store, web_server
from tests.remote.test_corpora import (
    BY_EXAMPLES,
    STREAMS,
    assert_same_batches,
    batches,
    local,
)

__all__ = ["local"]


@pytest.fixture(scope="module")
def moto() -> Iterator[str]:
    with object_store() as address:
        yield address


@pytest.fixture
def credentials(moto, monkeypatch) -> Iterator[str]:
    """An object store and the environment of one who may read it."""
    for name, value in {
        "AWS_ACCESS_KEY_ID": "one",
        "AWS_SECRET_ACCESS_KEY": "two",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": moto,
        "AWS_CONFIG_FILE": "/dev/null",
        "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
    }.items():
        monkeypatch.setenv(name, value)
    S3FileSystem.clear_instance_cache()
    yield moto
    S3FileSystem.clear_instance_cache()


@pytest.fixture
def bucket(credentials, local) -> str:
    store = S3FileSystem(use_listings_cache=False)
    if not store.exists("bucket"):
        store.mkdir("bucket")
        store.put(str(local.folder), "bucket/corpus", recursive=True)
    return "s3://bucket"


@pytest.mark.slow
def test_an_object_store_gives_the_local_batches(local, bucket):
    corpus = Corpus.open(f"{bucket}/corpus")
    for streams in (STREAMS, BY_EXAMPLES):
        assert_same_batches(batches(local, streams), batches(corpus, streams))
    found = batches(corpus, STREAMS, workers=LoaderConfig(num_workers=2))
    assert_same_batches(batches(local, STREAMS), found)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["s3", "web"])
def test_one_request_in_twenty_fails_and_nothing_changes(
    kind, local, bucket, credentials, store, monkeypatch
):
    store.put_folder(local.folder, "/corpus")
    told: list[str] = []
    traffic = Traffic(every=20, silence_seconds=1.5)
    with web_server(store) as address:
        target = address if kind == "web" else credentials
        with flaky_proxy(target, traffic) as proxy, report_faults(told.append):
            monkeypatch.setenv("AWS_ENDPOINT_URL", proxy)
            S3FileSystem.clear_instance_cache()
            corpus = Corpus.open(f"{proxy}/corpus" if kind == "web" else f"{bucket}/corpus")
            found = batches(corpus, STREAMS, 6, workers=LoaderConfig(num_workers=2))
    assert_same_batches(batches(local, STREAMS, 6), found)
    assert traffic.faults >= 3
    assert len(told) == 1
    assert "to remote files failed and had to be repeated" in told[0]


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 2])
def test_a_store_that_fails_for_good_ends_with_a_sentence(
    workers, bucket, credentials, monkeypatch
):
    monkeypatch.setenv("ISOGLOT_REMOTE_TRIES", "3")
    traffic = Traffic(every=0, silence_seconds=1.5)
    with flaky_proxy(credentials, traffic) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy)
        S3FileSystem.clear_instance_cache()
        corpus = Corpus.open(f"{bucket}/corpus")
        streams = {"text": STREAMS["text"]}
        steps = loader(corpus, streams=streams, workers=LoaderConfig(num_workers=workers))
        for path in corpus.folder.rglob("*.arrow"):
            path.unlink()
        for shard in (one for s in steps.mixture.components for one in s.slices[0].table.shards):
            shard.close()
        traffic.every = 1
        started = time.monotonic()
        with pytest.raises(IsoglotError) as caught:
            take(steps.steps(Cursor()), 1)
        assert time.monotonic() - started < 30
    assert str(caught.value).startswith("s3://bucket/corpus/text/")
    assert "asked 3 times" in str(caught.value)
    assert "Traceback" not in str(caught.value)


@pytest.mark.slow
def test_missing_buckets_files_and_rights_have_sentences(bucket, store, web, monkeypatch):
    with pytest.raises(CorpusError, match=r"^s3://bucket/nothing: is not a prepared corpus"):
        Corpus.open("s3://bucket/nothing")
    with pytest.raises(CorpusError, match=r"^s3://nowhere/corpus/manifest.json: there is no such"):
        Corpus.open("s3://nowhere/corpus")
    with pytest.raises(FetchError, match=r"s3://bucket/\*.txt: no file matches"):
        find_remote("s3://bucket/*.txt")
    store.forbidden = True
    monkeypatch.setenv("AWS_ENDPOINT_URL", web)
    S3FileSystem.clear_instance_cache()
    with pytest.raises(CorpusError, match=r"access is forbidden.*Set AWS_ACCESS_KEY_ID"):
        Corpus.open("s3://bucket/corpus")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    S3FileSystem.clear_instance_cache()
    with pytest.raises(CorpusError, match=r"(needs credentials|access is forbidden)"):
        Corpus.open("s3://bucket/corpus")


@pytest.mark.slow
def test_objects_are_read_as_streams_and_found_by_patterns(bucket):
    with fsspec.open_files("s3://bucket/raw/*.txt", "wb", num=1)[0] as file:
        file.write(b"one\n" * 1000)
    (found,) = find_remote("s3://bucket/raw/*.txt")
    assert str(found).startswith("s3://bucket/raw/")
    assert isinstance(found, RemotePath)
    with found.open() as stream:
        stream.seek(3996)
        assert stream.read() == b"one\n"
    assert len(found.sha256()) == 64
