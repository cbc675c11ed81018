from __future__ import annotations

import json

import pytest

from isoglot.errors import FetchError
from isoglot.fetching.plan import format_of, is_remote_name, make_plan
from tests.fetching.conftest import quick


def test_the_newest_version_of_opus_is_planned(server, config):
    entry = {"corpus": "Tatoeba", "version": "v7", "size": 2000}
    server.host("/opus.nlpl.eu/opusapi/", json.dumps({"corpora": [entry]}).encode())
    plan = make_plan("opus:Tatoeba/sw-en", config)
    assert [piece.remote.url for piece in plan.pieces] == [
        "https://object.pouta.csc.fi/OPUS-Tatoeba/v7/moses/en-sw.txt.zip"
    ]
    assert (plan.sides, plan.size, plan.format) == (("sw", "en"), 2_048_000, "moses")


def test_wikipedia_is_that_of_the_hub(hub):
    hub.put(
        "wikimedia/wikipedia",
        {f"20231101.{code}/train-00000-of-00001.parquet": b"PAR1PAR1" for code in ("sw", "en")},
    )
    plan = make_plan("wikipedia", quick(), language="sw")
    assert plan.name == "wikipedia:sw"
    assert [piece.place for piece in plan.pieces] == [
        "wikipedia/20231101.sw/train-00000-of-00001.parquet"
    ]
    with pytest.raises(FetchError, match=r"wikipedia:xx: hf:wikimedia/wikipedia has no such files"):
        make_plan("wikipedia:xx", quick())


def test_languages_of_a_hub_dataset(hub):
    files = {f"{code}/test-0.parquet": b"PAR1" for code in ("sw", "de", "als")}
    hub.put("unimelb-nlp/wikiann", files)
    plan = make_plan("wikiann", quick(), languages=("sw", "gsw"))
    assert [piece.place for piece in plan.pieces] == [
        "wikiann/sw/test-0.parquet",
        "wikiann/als/test-0.parquet",
    ]


@pytest.mark.parametrize(
    ("name", "remote"),
    [
        ("https://example.org/a", True),
        ("opus:Tatoeba/en-sw", True),
        ("hf:a/b", True),
        ("raw/a.txt", False),
        ("C:\\data\\a.txt", False),
        ("a.txt", False),
    ],
)
def test_names_that_are_not_local(name, remote):
    assert is_remote_name(name) is remote


def test_formats():
    assert [format_of(name) for name in ("a.jsonl.gz", "a.PARQUET", "a.tmx", "a.txt", "a.en")] == [
        *("jsonl", "parquet", "tmx", "lines", "lines")
    ]
