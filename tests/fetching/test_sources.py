from __future__ import annotations

import bz2
import lzma

import pytest

from isoglot.corpus.pipeline.plan import PrepareConfig
from isoglot.fetching.fetch import fetch
from isoglot.fetching.sources import write_settings
from isoglot.recipe import document
from isoglot.recipe.structure import structure
from tests.fetching.archives import zip_of
from tests.fetching.servers import Hosted


@pytest.fixture
def raw(server, config, tmp_path):
    def moses(corpus: str, pair: str) -> None:
        one, two = pair.split("-")
        files = {f"{corpus}.{pair}.{one}": b"a\n", f"{corpus}.{pair}.{two}": b"b\n"}
        path = f"/object.pouta.csc.fi/OPUS-{corpus}/v1/moses/{pair}.txt.zip"
        server.host(path, zip_of(files))

    moses("Tatoeba", "en-sw")
    moses("Tatoeba", "de-sw")
    server.host("/data.statmt.org/cc-100/sw.txt.xz", lzma.compress(b"moja\n"))
    dump = "/dumps.wikimedia.org/swwiki/latest/swwiki-latest-pages-articles-multistream.xml.bz2"

    server.host(dump, Hosted(bz2.compress(b"<x/>")))
    for name in (
        *("opus:Tatoeba/en-sw@v1", "opus:Tatoeba/sw-de@v1", "cc100:sw", "wikipedia-dump:sw"),
    ):
        fetch(name, tmp_path, config=config, announce=lambda _: None)
    return tmp_path


def test_a_prepare_file_of_what_was_fetched(raw):
    written = write_settings(raw)
    assert {path.name for path in written} == {"sources.yaml", "dumps.yaml"}
    settings = structure(document.read(raw / "sources.yaml"), PrepareConfig)
    pairs, text = settings.sources["opus-Tatoeba-v1"], settings.sources["cc100"]
    assert (pairs.kind, pairs.format, text.kind, text.format) == ("pairs", "moses", "text", "lines")
    place = "opus/Tatoeba/v1/Tatoeba"
    assert pairs.files == {
        "en-sw": (f"{place}.en-sw.en", f"{place}.en-sw.sw"),
        "sw-de": (f"{place}.de-sw.sw", f"{place}.de-sw.de"),
    }
    assert text.files == {"sw": ("cc100/sw.txt.xz",)}


def test_dumps_for_knowledge(raw):
    text = write_settings(raw)[raw / "dumps.yaml"]
    assert "wikipedia:\n  sw:\n  - wikipedia-dump/swwiki-latest" in text


def test_the_prepare_file_is_read_by_prepare(raw):
    from isoglot.corpus.reading.sources import find_subsets

    write_settings(raw)
    settings = structure(document.read(raw / "sources.yaml"), PrepareConfig)
    subsets = find_subsets(settings.sources, raw)
    assert [subset.folder for subset in subsets] == [
        *("cc100/sw", "opus-Tatoeba-v1/en-sw", "opus-Tatoeba-v1/sw-de")
    ]
