from __future__ import annotations

from pathlib import Path

import pytest

from isoglot.errors import FetchError, IsoglotError
from isoglot.fetching import is_remote, resolve
from isoglot.fetching.resolve import in_order
from tests.fetching.archives import tar_of, zip_of
from tests.fetching.conftest import quick

PAIRS = {"a/T.en-sw.en": b"one\n", "a/T.en-sw.sw": b"moja\n", "a/README": b"x"}


def quiet(_: object) -> None:
    pass


def get(name, folder, config, language=None) -> list[str]:
    files = resolve(name, folder=folder, language=language, config=config, announce=quiet)
    return [path.relative_to(folder).as_posix() for path in files]


def test_local_files_and_patterns_are_themselves(tmp_path):
    for name in ("b.txt", "a.txt", "[1].txt"):
        (tmp_path / name).write_text("x")
    (tmp_path / "inner.txt").mkdir()
    assert resolve(f"{tmp_path}/a.txt", folder=tmp_path) == [tmp_path / "a.txt"]
    assert resolve(f"{tmp_path}/[1].txt", folder=tmp_path) == [tmp_path / "[1].txt"]
    assert resolve(f"{tmp_path}/?.txt", folder=tmp_path) == [tmp_path / "a.txt", tmp_path / "b.txt"]
    assert resolve(str(tmp_path), folder=tmp_path) == [tmp_path]


def test_local_files_that_are_not_there(tmp_path):
    with pytest.raises(
        IsoglotError, match=r"no.txt: there is no such file. Name a file, an address"
    ):
        resolve("no.txt", folder=tmp_path)
    with pytest.raises(IsoglotError, match=r"no\*.txt: no file matches"):
        resolve(f"{tmp_path}/no*.txt", folder=tmp_path)


def test_a_local_file_comes_before_a_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert is_remote("flores")
    assert is_remote("cc100:sw")
    assert not is_remote("raw/sw.txt")
    Path("flores").write_text("x")
    Path("cc100:sw").write_text("x")
    assert not is_remote("flores")
    assert resolve("cc100:sw", folder=tmp_path) == [Path("cc100:sw")]


def test_translations_come_in_the_order_of_the_languages(server, config, tmp_path):
    server.host("/object.pouta.csc.fi/OPUS-T/v1/moses/en-sw.txt.zip", zip_of(PAIRS))
    first = ["opus/T/v1/T.en-sw.en", "opus/T/v1/T.en-sw.sw"]
    assert get("opus:T/en-sw@v1", tmp_path, config) == first
    assert get("opus:T/sw-en@v1", tmp_path, config) == first[::-1]
    assert get("opus:T/en-sw@v1", tmp_path, config, "sw-en") == first[::-1]
    server.files.clear()
    assert get("opus:T/en-sw@v1", tmp_path, config) == first


def test_the_language_completes_a_name(server, config, tmp_path):
    import lzma

    server.host("/data.statmt.org/cc-100/sw.txt.xz", lzma.compress(b"moja\n"))
    assert get("cc100", tmp_path, config, "sw") == ["cc100/sw.txt.xz"]


def test_an_archive_at_an_address(server, tmp_path):
    url = server.host("/x/data.tar.gz", tar_of(PAIRS))
    place = "web/127.0.0.1/data/a/T.en-sw"
    assert get(url, tmp_path, quick(), "en-sw") == [f"{place}.en", f"{place}.sw"]
    with pytest.raises(FetchError, match="does not have both of en and de"):
        get(url, tmp_path, quick(), "en-de")


def test_two_languages_of_many(server, config, tmp_path):
    files = {
        f"flores200_dataset/{part}/{code}.{part}": code.encode()
        for part in ("dev", "devtest")
        for code in ("eng_Latn", "swh_Latn", "deu_Latn")
    }
    server.host("/dl.fbaipublicfiles.com/nllb/flores200_dataset.tar.gz", tar_of(files))
    assert get("flores", tmp_path, config, "en-sw") == [
        *("flores200/dev/eng_Latn.dev", "flores200/dev/swh_Latn.dev"),
        *("flores200/devtest/eng_Latn.devtest", "flores200/devtest/swh_Latn.devtest"),
    ]
    assert len(get("flores", tmp_path, config, "de")) == 2


def test_a_hub_dataset(hub, tmp_path):
    hub.put("org/data", {"sw/train.jsonl": b"{}\n", "en/train.jsonl": b"{}\n"})
    assert get("hf:org/data", tmp_path, quick(), "sw") == ["hf/org/data/sw/train.jsonl"]


def test_files_without_languages_are_all_given():
    files = [Path("b.txt"), Path("a.txt")]
    assert in_order(files, ("en", "sw"), "x") == files
    assert in_order([Path("T.en-sw.en.gz"), Path("T.en-sw.sw.gz")], ("sw", "en"), "x") == [
        *(Path("T.en-sw.sw.gz"), Path("T.en-sw.en.gz"))
    ]
