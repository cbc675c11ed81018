"""Prepared corpora by URL: the same rows and batches as the local folder, bit for bit."""

from __future__ import annotations

import multiprocessing
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from isoglot.batching.streams import ParallelStream, TextStream
from isoglot.corpus import Corpus
from isoglot.corpus.pipeline.run import prepare
from isoglot.errors import CorpusError, FetchError
from isoglot.types import Cursor
from tests import tiny_corpus
from tests.batching.test_loader import loader, same, take
from tests.remote.servers import Store, web_server

STREAMS = {
    "text": TextStream(objectives=("mlm",), share=0.5, shuffle="blocks", shuffle_blocks=3),
    "parallel": ParallelStream(
        objectives=("tlm",), share=0.5, order="shuffled", shuffle="blocks", shuffle_blocks=3
    ),
}
BY_EXAMPLES = {name: replace(one, shuffle="examples") for name, one in STREAMS.items()}


@pytest.fixture(scope="session")
def local(tmp_path_factory) -> Corpus:
    """A corpus of about 90 shards of 300 tokens."""
    folder = tmp_path_factory.mktemp("local")
    tiny_corpus.write_raw(folder / "raw")
    prepare(tiny_corpus.config(shard_tokens=300), folder / "corpus", base=folder / "raw")
    return Corpus.open(folder / "corpus")


def batches(corpus: Corpus, streams, number: int = 4, **settings):
    return take(loader(corpus, streams=streams, **settings).steps(Cursor()), number)


def assert_same_batches(one, other) -> None:
    for step, found in zip(one, other, strict=True):
        assert all(same(a, b) for a, b in zip(step, found, strict=True))


def cached_shards(corpus: Corpus) -> set[str]:
    return {path.relative_to(corpus.folder).as_posix() for path in corpus.folder.rglob("*.arrow")}


@pytest.fixture
def remote(local, memory) -> Corpus:
    memory.put(str(local.folder), "/bucket/corpus", recursive=True)
    return Corpus.open("memory://bucket/corpus")


def test_a_corpus_by_url_gives_the_same_rows_and_batches(local, remote):
    assert (remote.url, remote.fingerprint) == ("memory://bucket/corpus", local.fingerprint)
    assert remote.vocabulary.size == local.vocabulary.size
    assert cached_shards(remote) == set()
    table, other = (one.table("text", "aa", "train") for one in (local, remote))
    assert np.array_equal(table.ids("ids", 7), other.ids("ids", 7))
    assert len(cached_shards(remote)) == 1
    for streams in (STREAMS, BY_EXAMPLES):
        assert_same_batches(batches(local, streams), batches(remote, streams))


def test_batches_by_blocks_resume_and_do_not_depend_on_workers_or_processes(local, remote):
    plain = batches(local, STREAMS, 6)
    first = batches(remote, STREAMS, 2)
    rest = take(loader(remote, streams=STREAMS).steps(first[-1][0].cursor), 4)
    assert_same_batches(plain, first + rest)
    ranks = [batches(remote, STREAMS, 6, rank=rank, world=2) for rank in range(2)]
    for step in range(6):
        together = [ranks[m % 2][step][m // 2] for m in range(4)]
        assert all(same(a, b) for a, b in zip(plain[step], together, strict=True))


def test_it_is_opened_again_by_its_folder_and_by_a_path(remote):
    again = Corpus.open(remote.folder, verify="never")
    assert again.url == remote.url
    assert Corpus.open(Path("memory://bucket/corpus")).folder == remote.folder


def test_another_corpus_at_the_same_url_is_another_folder(remote, memory, local, tmp_path):
    prepare(
        tiny_corpus.config(shard_tokens=10**6),
        tmp_path / "other",
        base=local.folder.parent / "raw",
    )
    memory.rm("/bucket/corpus", recursive=True)
    memory.put(str(tmp_path / "other"), "/bucket/corpus", recursive=True)
    assert Corpus.open(remote.url).folder != remote.folder


def test_wrong_and_missing_shards_are_refused_with_their_url(remote, memory, monkeypatch):
    monkeypatch.setenv("ISOGLOT_REMOTE_TRIES", "2")
    first, second = (entry.file for entry in remote.manifest.shards()[:2])
    content = memory.cat(f"/bucket/corpus/{first}")
    memory.pipe(f"/bucket/corpus/{first}", content[:-1] + b"x")
    memory.rm(f"/bucket/corpus/{second}")
    table = remote.table("pairs", "aa-bb", "train")
    with pytest.raises(FetchError, match=rf"^memory://bucket/corpus/{first}: its content differs"):
        table.shards[0].offsets("first")
    with pytest.raises(FetchError, match=rf"^memory://bucket/corpus/{second}: there is no such"):
        table.shards[1].offsets("first")
    memory.pipe(f"/bucket/corpus/{first}", content[:-1])
    with pytest.raises(FetchError, match=r"cannot be read \(.* bytes came; asked 2 times\)"):
        table.shards[0].offsets("first")


def test_no_corpus_at_a_url(memory):
    memory.pipe("/bucket/readme.txt", b"")
    with pytest.raises(CorpusError, match=r"^memory://bucket/x: is not a prepared corpus"):
        Corpus.open("memory://bucket/x")


def test_the_oldest_shards_leave_a_full_cache(local, remote, monkeypatch):
    sizes = {entry.file: entry.bytes for entry in remote.manifest.shards()}
    monkeypatch.setenv("ISOGLOT_CACHE_GB", str(6 * max(sizes.values()) / 1e9))
    table, expected = (one.table("text", "aa", "train") for one in (remote, local))
    assert len(table.shards) > 10
    for _ in range(2):
        for row in range(0, table.num_rows, 5):
            assert np.array_equal(table.ids("ids", row), expected.ids("ids", row))
            cached = cached_shards(remote)
            assert sum(sizes[file] for file in cached) <= 6 * max(sizes.values())
    last = table.shards[len(table.shards) - 1].path
    assert last.relative_to(remote.folder).as_posix() in cached_shards(remote)
    # what was removed is not kept open
    removed = [shard for shard in table.shards if not shard.path.exists()]
    assert removed
    assert all(shard._mapped is None for shard in removed)


def test_one_process_fetches_and_the_others_wait(local, store, web):
    store.put_folder(local.folder, "/corpus")
    corpus = Corpus.open(f"{web}/corpus")
    entry = corpus.manifest.shards()[0]

    def read() -> None:
        Corpus.open(f"{web}/corpus").table("pairs", "aa-bb", "train").shards[0].offsets("first")

    threads = [threading.Thread(target=read) for _ in range(4)]
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=read) for _ in range(3)]
    for process in processes:
        process.start()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for process in processes:
        process.join()
    assert [one.exitcode for one in processes] == [0, 0, 0]
    assert store.reads(entry.file) == 1
    assert list(corpus.folder.rglob("*.partial")) == []


def count_reads(local: Corpus, streams, cache_gb: float, monkeypatch, tmp_path) -> tuple[int, int]:
    """Requests for shards, and bytes, of one epoch over the web; opening reads no shard."""
    monkeypatch.setenv("ISOGLOT_CACHE", str(tmp_path / f"cache-{len(list(tmp_path.iterdir()))}"))
    monkeypatch.setenv("ISOGLOT_CACHE_GB", str(cache_gb))
    store = Store()
    store.put_folder(local.folder, "/corpus")
    with web_server(store) as address:
        corpus = Corpus.open(f"{address}/corpus")
        loaded = loader(corpus, streams=streams)
        store.requests.clear()
        store.sent_bytes = 0
        component = loaded.mixture.components[0]
        for index in component.indices(np.arange(component.num_examples)).tolist():
            component.slices[0].example(index, 0.0)
        return store.reads(".arrow"), store.sent_bytes


def test_blocks_read_every_shard_once_where_examples_read_it_again_and_again(
    local, monkeypatch, tmp_path
):
    entries = local.manifest.sources["text"].languages["aa"]["train"].shards
    total = sum(entry.bytes for entry in entries)
    limit = 5 * max(entry.bytes for entry in entries) / 1e9
    text = {"text": replace(STREAMS["text"], languages=("aa",))}
    found = count_reads(local, text, limit, monkeypatch, tmp_path)
    text = {"text": replace(BY_EXAMPLES["text"], languages=("aa",))}
    shuffled = count_reads(local, text, limit, monkeypatch, tmp_path)
    assert found == (len(entries), total)
    assert shuffled[0] > 3 * found[0]
    assert shuffled[1] > 3 * found[1]
