"""Hostile dumps: memory is bounded, records too long are passed over and counted, bombs refused."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from isoglot.corpus.knowledge import dump_files, dump_records, wikipedia
from isoglot.corpus.knowledge.dump_files import FileSlice, read_head, read_slice
from isoglot.corpus.knowledge.dump_records import Records
from isoglot.corpus.knowledge.extract import ExtractConfig, extract
from isoglot.errors import CorpusError
from tests.corpus.knowledge.tiny_dumps import CLOSING, header, item, page, wikidata, write

PACK: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".bz2": bz2.compress,
    ".gz": gzip.compress,
    ".xz": lzma.compress,
}


@pytest.fixture
def tight(monkeypatch):
    """Small limits, so that small files are hostile."""
    monkeypatch.setattr(dump_files, "BLOCK_BYTES", 100)
    monkeypatch.setattr(dump_records, "BLOCK_BYTES", 100)
    monkeypatch.setattr(dump_records, "MAX_RECORD_BYTES", 1_000)
    monkeypatch.setattr(dump_records, "_MAX_GAP_BYTES", 20_000)


def packed(path: Path, content: bytes) -> Path:
    path.write_bytes(PACK.get(path.suffix, bytes)(content))
    return path


@pytest.mark.parametrize("suffix", ["", ".bz2", ".gz", ".xz"])
@pytest.mark.parametrize("size", [0, 1, 99, 100, 101, 40_000])
def test_content_comes_in_small_chunks_and_whole(tmp_path, tight, suffix, size):
    content = bytes(number * number % 251 for number in range(size // 2)) + b"0" * (
        size - size // 2
    )
    chunks = list(read_slice(FileSlice(path=packed(tmp_path / f"a{suffix}", content))))
    assert b"".join(chunk.data for chunk in chunks) == content
    assert all(chunk.inside and 0 < len(chunk.data) <= 100 for chunk in chunks)


@pytest.mark.parametrize("suffix", ["", ".bz2", ".gz", ".xz"])
def test_two_streams_of_a_file_are_read_one_after_the_other(tmp_path, tight, suffix):
    pack = PACK[suffix]
    path = tmp_path / f"a{suffix}"
    path.write_bytes(pack(b"1" * 5_000) + pack(b"2" * 5_000))
    found = b"".join(chunk.data for chunk in read_slice(FileSlice(path=path)))
    assert found == b"1" * 5_000 + b"2" * 5_000


@pytest.mark.parametrize("length", [984, 985, 986, 987, 988, 5_000])
def test_a_record_beyond_the_limit_is_passed_over_and_the_next_is_read(tmp_path, tight, length):
    """`<page>` and the content may have 1,000 bytes; the end mark is not counted."""
    long = b"<page>" + b"x" * length + b"</page>"
    content = b"<page>a</page>" + long + b"noise<page>b</page>rest"
    records = Records(FileSlice(path=packed(tmp_path / "a", content)), b"<page>", b"</page>")
    found, peak = [], 0
    for record in records:
        found.append(record)
        peak = max(peak, len(records._buffer))
    assert [record.offset for record in found] == [0, 14, 14 + len(long) + 5]
    assert [record.data for record in found[::2]] == [b"<page>a</page>", b"<page>b</page>"]
    too_long = 6 + length > 1_000
    assert [record.too_long for record in found] == [False, too_long, False]
    assert found[1].data == (b"" if too_long else long)
    assert all(record.complete for record in found)
    assert records.rest == b"rest"
    assert peak < 1_300


def test_a_record_too_long_that_never_ends_is_not_complete(tmp_path, tight):
    path = packed(tmp_path / "a", b"<page>" + b"x" * 3_000)
    (record,) = Records(FileSlice(path=path), b"<page>", b"</page>")
    assert (record.data, record.complete, record.too_long) == (b"", False, True)


@pytest.mark.parametrize("suffix", [".bz2", ".gz", ".xz"])
@pytest.mark.parametrize("content", [b"\0" * 50_000, b"<page>" + b"\0" * 50_000])
def test_a_bomb_is_refused_in_a_sentence(tmp_path, tight, suffix, content):
    records = Records(
        FileSlice(path=packed(tmp_path / f"a{suffix}", content)), b"<page>", b"</page>"
    )
    with pytest.raises(CorpusError, match=r"a\.\w+: has no </?page> in .* from byte 0 on"):
        list(records)
    assert len(records._buffer) < 1_500


def test_a_gap_within_the_limit_is_read_over(tmp_path, tight):
    path = packed(tmp_path / "a", b"\0" * 19_000 + b"<page>a</page>" + b"\0" * 19_000)
    records = Records(FileSlice(path=path), b"<page>", b"</page>")
    assert [record.data for record in records] == [b"<page>a</page>"]
    assert len(records.rest) <= 400


def test_the_head_of_a_bomb_is_short(tmp_path):
    path = packed(tmp_path / "a.bz2", b"\0" * 30_000_000)
    assert len(read_head(path, b"</siteinfo>", 1 << 18)) <= dump_files.BLOCK_BYTES


def test_pages_too_long_are_counted_and_the_others_extracted(tmp_path, tight, monkeypatch):
    monkeypatch.setattr(wikipedia, "MAX_PAGE_CHARS", 200)
    pages = [
        page(1, "Short", "It is."),
        page(2, "Long", "Words. " * 40),
        page(3, "Endless", "Words. " * 400),
        page(4, "Full", "x" * 200),
        page(99_999_999_999_999_999_999, "Number", "It is."),
        page(5, "Last", "It was."),
    ]
    write(tmp_path / "en.xml", [header(), *pages, CLOSING])
    config = ExtractConfig(wikipedia={"en": ("en.xml",)})
    counts = extract(config, tmp_path / "X", base=tmp_path)["files"]["en.xml"]
    assert (counts["pages"], counts["pages too long"], counts["broken pages"]) == (6, 2, 1)
    assert counts["articles"] == 3
    faults = [fault["fault"] for fault in counts["faults"]]
    assert ["MiB" in faults[0], "18 digits" in faults[1]] == [True, True]
    assert not counts["truncated"]


def test_a_dump_of_pages_too_long_alone_is_refused(tmp_path, tight):
    write(tmp_path / "en.xml", [header(), page(3, "Endless", "Words. " * 400), CLOSING])
    with pytest.raises(CorpusError, match="no readable records"):
        extract(ExtractConfig(wikipedia={"en": ("en.xml",)}), tmp_path / "X", base=tmp_path)


SITE = '"sitelinks":{"enwiki":{"title":"A"}}}'
HOSTILE = {
    "item beyond 63 bits": '{"type":"item","id":"Q9223372036854775808",' + SITE,
    "item of 5,000 digits": '{"type":"item","id":"Q' + "9" * 5000 + '",' + SITE,
    "property beyond 31 bits": '{"type":"property","id":"P2147483648","labels":{}}',
    "other digits": '{"type":"item","id":"Q٤٢",' + SITE,
    "nested": '{"id":"Q1","a":' + '{"a":' * 100_000 + "1" + "}" * 100_001,
    "half a character": '{"type":"item","id":"Q1","labels":{"en":{"value":"\\ud800"}},' + SITE,
    "half a title": '{"type":"item","id":"Q1","sitelinks":{"enwiki":{"title":"\\udfff"}}}',
    "label no text": '{"type":"item","id":"Q1","labels":{"en":{"value":5}},' + SITE,
    "alias no text": '{"type":"item","id":"Q1","aliases":{"en":[{"value":null}]},' + SITE,
}


def claim(value: object, relation: str = "P31") -> str:
    snak = {
        "snaktype": "value",
        "datavalue": {
            "type": "wikibase-entityid",
            "value": {"entity-type": "item", "numeric-id": value},
        },
    }
    entity = {
        "type": "item",
        "id": "Q1",
        "claims": {relation: [{"mainsnak": snak}]},
        "sitelinks": {"enwiki": {"title": "A"}},
    }
    return json.dumps(entity, separators=(",", ":"))


NUMBERS: tuple[object, ...] = (2**63, -1, 10**400, 1.5, float("inf"), float("nan"), "x", [], {})
HOSTILE |= {f"claim of {value!r:.30}": claim(value) for value in NUMBERS}
HOSTILE["relation beyond 31 bits"] = claim(5, "P2147483648")


def test_hostile_lines_are_counted_and_the_others_read(tmp_path):
    good = [
        item(42, {"en": "x"}, {"enwiki": "X"}),
        claim(2**63 - 1).replace('"Q1"', f'"Q{2**63 - 1}"'),
        '{"type":"property","id":"P2147483647","labels":{}}',
    ]
    write(tmp_path / "all.json", [wikidata([*HOSTILE.values(), *good])])
    config = ExtractConfig(wikidata=("all.json",), languages=("en",))
    counts = extract(config, tmp_path / "X", base=tmp_path)["files"]["all.json"]
    assert counts["lines"] == len(HOSTILE) + 3
    assert (counts["items"], counts["properties"]) == (2, 1)
    assert counts["bad lines"] == len(HOSTILE)
    assert all(len(fault["fault"]) < 400 for fault in counts["faults"])


_MEASURE = """
import resource, sys
from pathlib import Path
from isoglot.corpus.knowledge.extract import ExtractConfig, extract
from isoglot.errors import CorpusError
folder = Path(sys.argv[1])
try:
    found = extract(ExtractConfig(wikipedia={"en": (sys.argv[2],)}), folder / "X", base=folder)
    print(found["files"][sys.argv[2]].get("pages too long"))
except CorpusError as error:
    print(error)
# the peak of this program alone: ru_maxrss may be that of the process that started it
status = Path("/proc/self/status").read_text()
print(int(status.partition("VmHWM:")[2].split()[0]) // 1024)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "closed", "said"), [(120 << 20, True, "1"), (1_200 << 20, False, "has no </page>")]
)
def test_a_huge_page_takes_little_memory(tmp_path, size, closed, said):
    """A page of 100 MB took 5.5 GB, and a compressed bomb ended in a MemoryError."""
    first, last = page(2, "Long", "@").split("@")
    block = b"Words and [[links]]. " * 50_000
    with gzip.open(tmp_path / "en.xml.gz", "wb", compresslevel=1) as file:
        file.write((header() + page(1, "One", "It is.") + first).encode())
        for _ in range(size // len(block)):
            file.write(block)
        if closed:
            file.write((last + page(3, "Two", "It is.") + CLOSING).encode())
    command = [sys.executable, "-c", _MEASURE, str(tmp_path), "en.xml.gz"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, check=True)
    told, megabytes = done.stdout.splitlines()
    assert said in told
    assert int(megabytes) < 500
