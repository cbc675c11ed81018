from __future__ import annotations

import huggingface_hub.constants
import pytest

from isoglot.errors import FetchError
from isoglot.fetching.download import Remote
from isoglot.fetching.fetch import fetch
from isoglot.fetching.hub import HubDataset, ask_hub, choose_files, parse_hub_name
from tests.fetching.conftest import quick

FILES = {
    "README.md": b"about",
    "dataset.py": b"import os",
    "sw/train-00000-of-00002.parquet": b"PAR1 one PAR1",
    "sw/train-00001-of-00002.parquet": b"PAR1 two PAR1",
    "sw/test-00000-of-00001.parquet": b"PAR1 three PAR1",
    "en/train-00000-of-00001.parquet": b"PAR1 four PAR1",
}


def test_a_dataset_is_listed_with_sizes_hashes_and_license(hub):
    hub.put("org/data", FILES, license="cc-by-4.0")
    found = ask_hub("org/data", quick())
    assert found.license == "cc-by-4.0 (https://huggingface.co/datasets/org/data)"
    remote = dict(found.files)["sw/test-00000-of-00001.parquet"]
    assert remote.url.endswith("/datasets/org/data/resolve/rev1/sw/test-00000-of-00001.parquet")
    assert (remote.size, len(remote.sha256 or "")) == (15, 64)


def test_a_config_and_split_are_fetched(hub, tmp_path):
    hub.put("org/data", FILES)
    fetched = fetch("hf:org/data:sw", tmp_path, config=quick(), announce=lambda _: None)
    assert [path.relative_to(tmp_path).as_posix() for path in fetched.files] == [
        "hf/org/data/sw/train-00000-of-00002.parquet",
        "hf/org/data/sw/train-00001-of-00002.parquet",
    ]
    assert fetched.files[1].read_bytes() == b"PAR1 two PAR1"
    again = fetch("hf:org/data:sw:test", tmp_path, config=quick(), announce=lambda _: None)
    assert [path.name for path in again.files] == ["test-00000-of-00001.parquet"]


def test_wrong_bytes_of_the_hub_are_refused(hub, tmp_path):
    hub.put("org/data", {"train.jsonl": b"{}\n"}, sha256={"train.jsonl": "0" * 64})
    with pytest.raises(FetchError, match=r"train.jsonl: the file is not the expected one"):
        fetch("hf:org/data", tmp_path, config=quick(), announce=lambda _: None)


@pytest.mark.parametrize(
    ("status", "code", "message"),
    [
        (401, "GatedRepo", "terms must be accepted first"),
        (404, "RepoNotFound", "the hub has no such dataset"),
        (500, "Broken", "the hub cannot be asked"),
    ],
)
def test_refusals_of_the_hub(hub, status, code, message):
    hub.refuse("org/data", status, code)
    with pytest.raises(FetchError, match=rf"^hf:org/data: .*{message}"):
        ask_hub("org/data", quick())


def test_a_hub_that_is_switched_off(monkeypatch):
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(FetchError, match="HF_HUB_OFFLINE=1"):
        ask_hub("org/data", quick())


def test_a_token_is_sent_to_the_hub_and_not_to_a_mirror(hub, server, monkeypatch):
    hub.put("org/data", {"train.txt": b"a\n"})
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    assert ask_hub("org/data", quick()).files[0][1].headers == (
        ("Authorization", "Bearer hf_secret"),
    )
    server.files["/huggingface.co/api/datasets/org/data"] = server.files["/api/datasets/org/data"]
    mirrored = ask_hub("org/data", quick(server.url))
    assert mirrored.files[0][1].headers == ()
    assert mirrored.files[0][1].url.startswith("https://huggingface.co/datasets/org/data/")


def listed(*names: str) -> HubDataset:
    files = tuple((name, Remote(url=f"https://hub/{name}")) for name in names)
    return HubDataset(repo="org/data", license="mit", files=files)


def chosen(dataset, *arguments) -> list[str]:
    return [name for name, _ in choose_files(dataset, *arguments)]


def test_files_are_chosen_by_config_split_and_language():
    plain = listed("data/train-0.parquet", "data/test-0.parquet", "README.md", "x.py")
    assert chosen(plain, None, None) == ["data/train-0.parquet"]
    assert chosen(plain, None, "test") == ["data/test-0.parquet"]
    wiki = listed("20231101.sw/train-0.parquet", "20231101.en/train-0.parquet")
    assert chosen(wiki, None, None, "sw") == ["20231101.sw/train-0.parquet"]
    assert chosen(wiki, "20231101.en", None) == ["20231101.en/train-0.parquet"]
    assert chosen(listed("a.txt", "b.txt.gz", ".hidden.txt"), None, None) == ["a.txt", "b.txt.gz"]
    assert chosen(listed("a.csv", "b.csv.gz"), None, None) == ["a.csv", "b.csv.gz"]
    assert chosen(listed("data.jsonl", "labels.csv"), None, None) == ["data.jsonl"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((None, None), "several configs. Write hf:org/data:CONFIG with one of en, sw"),
        (("ws", None), "no config 'ws'; known: en, sw"),
        (("sw", "tset"), "no split 'tset'; did you mean 'test'"),
    ],
)
def test_what_a_dataset_does_not_have(arguments, message):
    with pytest.raises(FetchError, match=message):
        choose_files(listed(*FILES), *arguments)


def test_a_dataset_of_code_alone_is_refused():
    with pytest.raises(FetchError, match="a script makes its data"):
        choose_files(listed("data.py", "README.md"), None, None)


def test_names():
    assert parse_hub_name("hf:a/b") == ("a/b", None, None, None)
    assert parse_hub_name("hf:a/b@v1:c.d:test") == ("a/b", "v1", "c.d", "test")
    for bad in ("hf:data", "hf:a/b/c", "hf:a/../b", "hf:a/b:c:d:e"):
        with pytest.raises(FetchError, match="Write hf:OWNER/DATASET"):
            parse_hub_name(bad)
