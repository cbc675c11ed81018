"""Cutting dumps into parts and reading the parts: nothing lost, nothing twice, faults placed."""

from __future__ import annotations

import bz2
import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isoglot.corpus.knowledge.dump_files import FileSlice, split_file
from isoglot.corpus.knowledge.dump_records import BrokenRecord, Records
from isoglot.corpus.knowledge.mediawiki import Page, PageReader, read_site
from isoglot.errors import CorpusError
from tests.corpus.knowledge.tiny_dumps import CLOSING, header, page, write


def titles(path: Path, size: int, *, threads: int = 1) -> list[list[str]]:
    """The titles of every part of a file."""
    parts = split_file(path, size, path.with_suffix(".index"), threads=threads)
    found = []
    for part in parts:
        pages = list(PageReader(part))
        assert all(isinstance(one, Page) for one in pages)
        found.append([one.title for one in pages if isinstance(one, Page)])
    return found


@pytest.mark.parametrize("suffix", ["xml", "xml.bz2", "xml.gz", "xml.xz"])
@pytest.mark.parametrize("size", [300, 1_000, 10**6])
def test_every_page_comes_once_from_every_packing(tmp_path, suffix, size):
    pages = [page(n, f"Title {n}", f"text {n} " * (n * 7 % 50)) for n in range(40)]
    path = write(tmp_path / f"dump.{suffix}", [header(), *pages, CLOSING])
    found = titles(path, size)
    assert [title for part in found for title in part] == [f"Title {n}" for n in range(40)]
    # gzip is cut only at blocks, and xz not at all
    assert (len(found) > 1) == (size < path.stat().st_size and suffix in ("xml", "xml.bz2"))


@pytest.mark.parametrize("suffix", ["bz2", "gz"])
def test_a_single_stream_is_cut_at_its_blocks_and_the_index_is_kept(tmp_path, suffix):
    noise = np.random.default_rng(0).bytes(2_000_000).hex()
    texts = [noise[at : at + 80_000] for at in range(0, len(noise), 80_000)]
    whole = header() + "".join(page(n, f"T{n}", text) for n, text in enumerate(texts)) + CLOSING
    packed = {"bz2": lambda x: bz2.compress(x, 1), "gz": lambda x: gzip.compress(x, 1)}[suffix]
    path = tmp_path / f"a.xml.{suffix}"
    path.write_bytes(packed(whole.encode()))
    size = path.stat().st_size // 4
    found = titles(path, size, threads=2)
    assert len(found) > 1
    assert [title for part in found for title in part] == [f"T{n}" for n in range(50)]
    index = path.with_suffix(".index")
    before = index.stat().st_mtime_ns
    assert titles(path, size) == found
    assert index.stat().st_mtime_ns == before


def test_pages_that_run_across_streams_belong_to_the_stream_they_begin_in(tmp_path):
    whole = header() + "".join(page(n, f"T{n}", "x" * 50) for n in range(30)) + CLOSING
    pieces = [whole[i : i + 97] for i in range(0, len(whole), 97)]
    path = write(tmp_path / "dump.xml.bz2", pieces)
    found = titles(path, 200)
    assert len(found) > 10
    assert [title for part in found for title in part] == [f"T{n}" for n in range(30)]


@given(
    lines=st.lists(st.binary(max_size=12).map(lambda x: x.replace(b"\n", b"")), max_size=12),
    cuts=st.sets(st.integers(1, 120), max_size=6),
)
@settings(max_examples=60, deadline=None)
def test_lines_are_shared_out_whatever_the_cuts(tmp_path_factory, lines, cuts):
    content = b"\n".join(lines)
    path = tmp_path_factory.mktemp("lines") / "file"
    path.write_bytes(content)
    places = sorted(place for place in cuts if place < len(content))
    found = []
    for start, end in zip([0, *places], [*places, None], strict=True):
        part = FileSlice(path=path, start=start, end=end)
        for record in Records(part, b"\n", b"\n", preceding=b"\n"):
            found.append(record.data.strip(b"\n"))
            assert content[start + record.offset + 1 :].startswith(found[-1])
    assert [line for line in found if line] == [line for line in lines if line]


def test_a_broken_page_costs_only_itself(tmp_path):
    good, other = page(1, "One", "a"), page(3, "Three", "c")
    bomb = page(2, "Two", "b").replace(">b<", ">&lol;<")
    unclosed = page(4, "Four", "d").replace("</page>", "")
    path = write(tmp_path / "a.xml", [header(), good, bomb, unclosed, other, CLOSING])
    reader = PageReader(FileSlice(path=path))
    found = list(reader)
    assert [one.title for one in found if isinstance(one, Page)] == ["One", "Three"]
    broken = [one for one in found if isinstance(one, BrokenRecord)]
    content = path.read_text()
    assert [one.offset for one in broken] == [
        content.index("<page>", content.index("One")),
        content.index("<page>", content.index("Two")),
    ]
    assert not reader.truncated


def test_a_dump_that_ends_early_is_noticed(tmp_path):
    whole = header() + page(1, "One", "a") + page(2, "Two", "b") + CLOSING
    for text, number in ((whole[:-40], 1), (whole[: -len(CLOSING)], 2)):
        path = write(tmp_path / "a.xml", [text])
        reader = PageReader(FileSlice(path=path))
        assert sum(isinstance(one, Page) for one in reader) == number
        assert reader.truncated


@pytest.mark.parametrize("version", ["0.8", "0.9", "0.10", "0.11"])
def test_any_export_version(tmp_path, version):
    path = write(tmp_path / "a.xml", [header(version=version), page(7, "A & B", "é"), CLOSING])
    (found,) = PageReader(FileSlice(path=path))
    assert found == Page(
        id=7, title="A & B", namespace=0, redirect=None, model="wikitext", text="é"
    )


def test_truncated_and_damaged_files_are_refused_with_the_byte(tmp_path):
    pages = [page(n, f"T{n}", f"{n**9} " * 400) for n in range(20)]
    path = write(tmp_path / "a.xml.bz2", [header(), *pages, CLOSING])
    content = path.read_bytes()
    path.write_bytes(content[:-300])
    with pytest.raises(CorpusError, match=r"a\.xml\.bz2: is damaged .*at byte [\d,]+, inside"):
        list(PageReader(FileSlice(path=path)))
    middle = len(content) // 2
    path.write_bytes(content[:middle] + b"\x00" * 40 + content[middle + 40 :])
    with pytest.raises(CorpusError, match=r"stream that begins at byte [\d,]+"):
        list(PageReader(FileSlice(path=path)))
    single = tmp_path / "b.xml.bz2"
    single.write_bytes(bz2.compress("".join(pages).encode() * 40, 1)[:-2000])
    with pytest.raises(CorpusError, match=r"b\.xml\.bz2: is damaged"):
        split_file(single, 5_000, tmp_path / "index", threads=1)


def test_the_header_says_what_the_wiki_is(tmp_path):
    path = write(tmp_path / "a.xml", [header("trwiki"), CLOSING])
    site = read_site(path, "tr")
    assert (site.name, site.namespaces["datei"], site.first_letter) == ("trwiki", 6, True)
    assert site.title("istanbul_(il)") == "İstanbul (il)"
    assert site.title(" caf%C3%A9 &amp;  bar ") == "Café & bar"
    assert site.title("ßtraße") == "ßtraße"
    path = write(tmp_path / "b.xml", [header("enwiki", case="case-sensitive"), CLOSING])
    assert read_site(path, "en").title("iPod") == "iPod"


def test_what_is_no_dump_is_refused(tmp_path):
    path = tmp_path / "a.xml"
    path.write_bytes(header().encode("utf-16"))
    with pytest.raises(CorpusError, match="UTF-16"):
        read_site(path, "en")
    path.write_text("hello")
    with pytest.raises(CorpusError, match="not a MediaWiki dump"):
        read_site(path, "en")
    path.write_text(header().replace("</dbname>", ""))
    with pytest.raises(CorpusError, match=r"header is broken behind byte \d+"):
        read_site(path, "en")
