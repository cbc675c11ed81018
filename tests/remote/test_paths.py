from __future__ import annotations

import gzip
import hashlib
import pickle
from pathlib import Path

import pytest

from isoglot.errors import FetchError
from isoglot.remote.paths import BLOCK_BYTES, RemotePath, find_remote, remote_info


def test_a_url_as_a_path():
    path = RemotePath("s3://b//k/x.txt.gz")
    assert (str(path), path.name, path.suffix) == ("s3://b//k/x.txt.gz", "x.txt.gz", ".gz")
    assert pickle.loads(pickle.dumps(path)) == path
    assert str(path.parent / "y.txt") == "s3://b/k/y.txt"
    assert RemotePath("https://h/a.gz?x=1.txt").suffix == ".gz"
    assert isinstance(path, Path)
    assert not path.is_relative_to(Path.cwd())


def test_patterns_folders_and_what_is_missing(memory):
    for name in ("d/b.txt", "d/a.txt", "d/c.tsv", "d/e/f.txt"):
        memory.pipe(f"/{name}", name.encode())
    found = find_remote("memory://d/*.txt")
    assert [one.read_text() for one in found] == ["d/a.txt", "d/b.txt"]
    assert {one.name for one in RemotePath("memory://d").rglob("*")} == {
        "a.txt",
        "b.txt",
        "c.tsv",
        "f.txt",
    }
    assert RemotePath("memory://d").is_dir()
    assert not RemotePath("memory://d/a.txt").is_dir()
    with pytest.raises(FetchError, match=r"^memory://d/\*.xml: no file matches"):
        find_remote("memory://d/*.xml")
    with pytest.raises(FetchError, match=r"^memory://d/x.txt: there is no such file"):
        RemotePath("memory://d/x.txt").open()
    with pytest.raises(FetchError, match=r"^memory://d: is a folder"):
        remote_info("memory://d")


def test_a_version_changes_the_hash_and_the_time(memory):
    memory.pipe("/a.txt", b"one")
    first = RemotePath("memory://a.txt")
    before = first.sha256(), first.stat().st_mtime_ns
    memory.pipe("/a.txt", b"two")
    remote_info.cache_clear()
    assert first.stat().st_size == 3
    assert first.sha256() != before[0]
    assert first.stat().st_mtime_ns != before[1]


def test_the_web_is_read_by_ranges(store, web):
    content = bytes(range(256)) * 40_000  # 10.24 MB: two ranges
    store.files["/a.bin"] = content
    with RemotePath(f"{web}/a.bin").open() as file:
        assert file.read(1000) == content[:1000]
        file.seek(-5, 2)
        assert file.read() == content[-5:]
        file.seek(0)
        assert hashlib.sha256(file.read()).digest() == hashlib.sha256(content).digest()
    assert store.sent_bytes < 3 * len(content)
    assert len(content) > BLOCK_BYTES


def test_a_server_without_ranges_gives_a_temporary_copy(store, web):
    store.ranges = False
    store.files["/a.txt.gz"] = gzip.compress(b"one\ntwo\n")
    with RemotePath(f"{web}/a.txt.gz").open() as file:
        assert gzip.GzipFile(fileobj=file).read() == b"one\ntwo\n"


def test_without_a_version_the_content_is_hashed(store, web):
    store.versions = False
    store.files["/a.txt"] = b"one\n"
    assert RemotePath(f"{web}/a.txt").sha256() == hashlib.sha256(b"one\n").hexdigest()
