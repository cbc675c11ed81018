"""The index of a corpus: built once for all processes, wherever it can be written."""

from __future__ import annotations

import multiprocessing
import time
from pathlib import Path

import numpy as np
import pytest

from isoglot.corpus.storage import derived
from isoglot.corpus.storage.array_file import ArrayFile, ArrayWriter
from isoglot.corpus.storage.derived import INDEX, key_of_index, open_index
from isoglot.errors import WriteError

MANY = derived.KEPT_ROWS


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ISOGLOT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


class Counting:
    """Builds an array, and counts how often."""

    def __init__(self, log: Path, *, seconds: float = 0.0) -> None:
        self.log, self.seconds = log, seconds

    def __call__(self, writer: ArrayWriter) -> None:
        with self.log.open("a") as file:
            file.write("built\n")
        time.sleep(self.seconds)
        writer.append("a", np.arange(1000))

    @property
    def number(self) -> int:
        return len(self.log.read_text().splitlines()) if self.log.exists() else 0


def opened(corpus: Path, build: Counting, key: str = "key", num_rows: int = MANY) -> list[int]:
    found = open_index(corpus, "f" * 64, "t/en/x.safetensors", key, build, num_rows=num_rows)
    numbers: list[int] = found["a"].tolist()
    return numbers


def test_it_is_built_once_and_mapped(tmp_path):
    build, corpus = Counting(tmp_path / "log"), tmp_path / "c"
    for _ in range(3):
        assert opened(corpus, build) == list(range(1000))
    assert build.number == 1
    assert [path.name for path in (corpus / INDEX).rglob("*") if path.is_file()] == [
        "x.safetensors"
    ]
    opened(corpus, build, key="other")
    assert build.number == 2, "of another corpus, or other settings"


def test_little_stays_in_memory(tmp_path):
    build = Counting(tmp_path / "log")
    assert opened(tmp_path / "c", build, num_rows=MANY - 1) == list(range(1000))
    assert not (tmp_path / "c").exists()


def test_a_damaged_file_is_replaced(tmp_path, caplog):
    build, corpus = Counting(tmp_path / "log"), tmp_path / "c"
    opened(corpus, build)
    path = corpus / INDEX / "t/en/x.safetensors"
    path.write_bytes(path.read_bytes()[:-9])
    assert opened(corpus, build) == list(range(1000))
    assert build.number == 2
    assert "is damaged" in caplog.text
    assert "It is built again" in caplog.text
    assert ArrayFile(path, "key")["a"].tolist() == list(range(1000))


def test_a_corpus_that_cannot_be_written(tmp_path, cache):
    """The folder of the index cannot be made: the cache is used, by every process."""
    build, corpus = Counting(tmp_path / "log"), tmp_path / "c"
    corpus.mkdir()
    (corpus / INDEX).write_text("in the way")
    assert opened(corpus, build) == opened(corpus, build) == list(range(1000))
    assert build.number == 1
    assert (cache / "index" / ("f" * 16) / "t/en/x.safetensors").is_file()
    cache.rename(tmp_path / "before")
    cache.write_text("in the way, too")
    with pytest.raises(WriteError, match=r"its index can be written neither.*ISOGLOT_CACHE"):
        opened(corpus, build)


def _open_in_process(corpus: Path, log: Path, results: object) -> None:
    found = opened(corpus, Counting(log, seconds=0.5))
    results.put(sum(found))  # type: ignore[attr-defined]


def test_two_processes_build_it_once(tmp_path):
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    many = [
        context.Process(target=_open_in_process, args=(tmp_path / "c", tmp_path / "log", results))
        for _ in range(3)
    ]
    for one in many:
        one.start()
    assert [results.get(timeout=60) for _ in many] == [499500] * 3
    for one in many:
        one.join(60)
    assert Counting(tmp_path / "log").number == 1


def test_keys_differ(tmp_path):
    keys = {key_of_index("a", 1), key_of_index("a", "1"), key_of_index("a"), key_of_index("b", 1)}
    assert len(keys) == 4
