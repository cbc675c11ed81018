from __future__ import annotations

from collections.abc import Iterator

import fsspec
import pytest

from isoglot.remote import corpora, paths
from tests.remote.servers import Store, web_server

SECONDS = "1"
"""Longest silence of a store in tests; waits between tries are a sixtieth of it."""


@pytest.fixture(autouse=True)
def quick_and_alone(tmp_path, monkeypatch) -> None:
    """A cache of the test's own, short waits, and nothing known of stores."""
    monkeypatch.setenv("ISOGLOT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("ISOGLOT_REMOTE_SECONDS", SECONDS)
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name in ("ISOGLOT_MIRROR", "HF_ENDPOINT", "HF_TOKEN", "ISOGLOT_CACHE_GB"):
        monkeypatch.delenv(name, raising=False)
    paths.remote_info.cache_clear()
    corpora.cached_corpus_of.cache_clear()
    corpora._expected.cache_clear()


@pytest.fixture
def memory() -> Iterator[fsspec.AbstractFileSystem]:
    """fsspec's store in memory, empty."""
    found = fsspec.filesystem("memory")
    found.store.clear()
    found.pseudo_dirs[:] = [""]
    yield found
    found.store.clear()


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def web(store) -> Iterator[str]:
    """The address of a web server with the files of `store`."""
    with web_server(store) as address:
        yield address
