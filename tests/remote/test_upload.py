from __future__ import annotations

import pytest
from typer.testing import CliRunner

from isoglot.cli import app, load_commands
from isoglot.corpus import Corpus
from isoglot.errors import FetchError
from isoglot.recipe import dump
from isoglot.remote.upload import outgoing_folder, upload_corpus
from tests import tiny_corpus
from tests.remote.test_corpora import local

__all__ = ["local"]


def quiet(done: int, total: int) -> None:
    assert 0 < done <= total


def test_a_copied_corpus_is_the_corpus_and_is_not_copied_twice(local, memory, monkeypatch):
    upload_corpus(local.folder, "memory://bucket/copied", quiet)
    assert Corpus.open("memory://bucket/copied").fingerprint == local.fingerprint

    def refuse(*_: object) -> None:
        raise AssertionError("copied again")

    monkeypatch.setattr(type(memory), "put_file", refuse)
    upload_corpus(local.folder, "memory://bucket/copied", quiet)


def test_an_interrupted_copy_is_no_corpus_and_goes_on(local, memory, monkeypatch):
    put, names = type(memory).put_file, []

    def fail_at_ten(self, path: str, address: str, **more: object) -> None:
        names.append(address)
        if len(names) == 10:
            raise KeyboardInterrupt
        put(self, path, address, **more)

    monkeypatch.setattr(type(memory), "put_file", fail_at_ten)
    with pytest.raises(KeyboardInterrupt):
        upload_corpus(local.folder, "memory://bucket/cut", quiet)
    with pytest.raises(Exception, match="is not a prepared corpus"):
        Corpus.open("memory://bucket/cut")
    upload_corpus(local.folder, "memory://bucket/cut", quiet)
    assert len(names) == len(set(names)) + 1
    corpus = Corpus.open("memory://bucket/cut")
    assert corpus.table("text", "aa", "train").ids("ids", 3).tolist() == (
        local.table("text", "aa", "train").ids("ids", 3).tolist()
    )


def test_prepare_writes_to_a_url(local, memory, tmp_path):
    load_commands("prepare")
    file = local.folder.parent / "raw" / "prepare.yaml"
    file.write_text(dump(tiny_corpus.config(shard_tokens=300)))
    done = CliRunner().invoke(app, ["prepare", str(file), "--out", "memory://bucket/made"])
    assert done.exit_code == 0, done.output
    assert "corpus: memory://bucket/made" in done.output
    assert Corpus.open("memory://bucket/made").fingerprint == local.fingerprint
    assert not list(tmp_path.glob("memory*"))


def test_the_web_is_not_written_to():
    with pytest.raises(FetchError, match=r"^https://h/c: a corpus cannot be written to https://"):
        outgoing_folder("https://h/c")
