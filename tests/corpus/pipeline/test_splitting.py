"""Large files in parts: the same corpus, byte for byte, as from files that are read as a whole."""

from __future__ import annotations

import bz2
import csv
import gzip
import json
import struct
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isoglot.corpus.deduplication import duplicates
from isoglot.corpus.deduplication.hashing import DuplicatesConfig
from isoglot.corpus.pipeline import splitting
from isoglot.corpus.pipeline.run import prepare
from isoglot.corpus.reading.files import count_lines, read_lines
from isoglot.corpus.reading.line_ranges import LineRange, find_starts
from isoglot.corpus.reading.reader import Skipped
from isoglot.corpus.reading.sources import SourceConfig
from isoglot.corpus.tokenization.build import TokenizerConfig
from isoglot.errors import CorpusError
from tests.corpus.conftest import config as usual
from tests.corpus.pipeline.test_run import add_up, contents
from tests.corpus.sentences import lines


def bgzip(content: bytes, size: int) -> bytes:
    """Blocks as bgzip writes them, each with its size in the header, and the empty last one."""
    blocks = []
    for start in [*range(0, len(content), size), None]:
        data = b"" if start is None else content[start : start + size]
        packer = zlib.compressobj(6, zlib.DEFLATED, -15)
        packed = packer.compress(data) + packer.flush()
        head = b"\x1f\x8b\x08\x04" + bytes(5) + b"\xff\x06\x00BC\x02\x00"
        tail = struct.pack("<II", zlib.crc32(data), len(data))
        blocks.append(head + struct.pack("<H", len(packed) + 25) + packed + tail)
    return b"".join(blocks)


def in_streams(compress: Callable[[bytes], bytes], content: bytes, size: int) -> bytes:
    parts = (content[start : start + size] for start in range(0, len(content), size))
    return b"".join(map(compress, parts))


def zstd(content: bytes) -> bytes:
    packed: bytes = pa.compress(content, codec="zstd", asbytes=True)
    # between two frames there may be one to skip, as pzstd writes them
    return struct.pack("<III", 0x184D2A50, 4, len(packed)) + packed


PACKED: dict[str, Callable[[bytes, int], bytes]] = {
    "": lambda content, _: content,
    ".gz": bgzip,
    ".bz2": partial(in_streams, bz2.compress),
    ".zst": partial(in_streams, zstd),
}
LINE_ENDS = st.sampled_from(["\n", "\n", "\r\n", "\r"])
TEXTS = st.lists(
    st.tuples(st.sampled_from(["", "a", "ab cd", "é" * 40, "\ud800"]), LINE_ENDS), min_size=1
)


@pytest.mark.parametrize("suffix", PACKED)
@settings(max_examples=25, deadline=None)
@given(found=TEXTS, size=st.integers(1, 60), unfinished=st.booleans())
def test_the_parts_have_all_lines_once(tmp_path_factory, suffix, found, size, unfinished):
    path = tmp_path_factory.mktemp("parts") / f"file.txt{suffix}"
    content = b"".join((text + end).encode("utf-8", "surrogatepass") for text, end in found)
    content += b"the last" * unfinished
    path.write_bytes(PACKED[suffix](content, 30))
    starts = [0, *find_starts(path, size)]
    seen: list[str | Skipped] = []
    for start, end in zip(starts, [*starts[1:], None], strict=True):
        part = LineRange(start=start, end=end, lines_before=len(seen))
        read = list(read_lines(path, part))
        assert count_lines(path, part) == len(read)
        seen += read
    whole = list(read_lines(path))
    assert seen == whole
    # skipped lines compare by their reason alone
    assert [one.line for one in seen if isinstance(one, Skipped)] == [
        one.line for one in whole if isinstance(one, Skipped)
    ]


def test_where_files_can_be_cut(tmp_path):
    content = "".join(f"{line}\n" for line in lines("en", 400)).encode()
    for suffix, pack in PACKED.items():
        path = tmp_path / f"a.txt{suffix}"
        path.write_bytes(pack(content, 900))
        starts = find_starts(path, 1500)
        assert len(starts) > 3, suffix
        assert min(b - a for a, b in zip((0, *starts), starts, strict=False)) >= 1500
    for name, packed in (
        ("one.gz", gzip.compress(content)),
        ("one.bz2", bz2.compress(content)),
        ("one.zst", pa.compress(content, codec="zstd", asbytes=True)),
        ("one.xz", content),
    ):
        (tmp_path / name).write_bytes(packed)
        assert find_starts(tmp_path / name, 1500) == ()


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Path:
    """Every format that is split, with documents, blank lines, duplicates and lines to drop."""
    folder: Path = tmp_path_factory.mktemp("large")
    found = []
    for number, line in enumerate(lines("en", 200)):
        found += [line, *([""] * (number % 9 == 0)), *(["12345"] * (number % 31 == 0))]
        found += [f"{line}."] * (number % 7 == 0)
    content = "\n".join(found).encode() + b"\n\xff\n" + "\n".join(found[:40]).encode()
    for suffix, pack in PACKED.items():
        (folder / f"en.txt{suffix}").write_bytes(pack(content, 900))
    (folder / "small.txt").write_text("\n".join(lines("en", 12, seed=4)))
    rows = [json.dumps({"text": "\n".join(found[n : n + 5])}) for n in range(0, 200, 5)]
    (folder / "de.jsonl").write_text("\n".join([*rows, "no object", "", *rows[:9]]))
    pairs = list(zip(lines("en", 150, seed=2), lines("de", 150, seed=2), strict=True))
    (folder / "pairs.tsv").write_text("one\tother\n" + "".join(f"{a}\t{b}\n" for a, b in pairs))
    with (folder / "quoted.csv").open("w", newline="") as file:
        csv.writer(file, delimiter=";").writerows(
            [("text", "n"), *((f"{a}\n{b}", n) for n, (a, b) in enumerate(pairs))]
        )
    for column, language in enumerate(("en", "de")):
        text = "".join(f"{pair[column]}\n" for pair in pairs)
        (folder / f"moses.{language}").write_text(text * 2)
    return folder


def prepared(files: Path, out: Path, tokenizer: Path, **more: object) -> dict[str, bytes]:
    chosen = usual(
        sources={
            **{
                f"lines{number}": SourceConfig(files={"en": (f"en.txt{suffix}", "small.txt")})
                for number, suffix in enumerate(PACKED)
            },
            "json": SourceConfig(format="jsonl", files={"de": ("de.jsonl",)}),
            "tsv": SourceConfig(
                kind="pairs",
                format="tsv",
                options={"header": True},
                files={"en-de": ("pairs.tsv",)},
            ),
            "csv": SourceConfig(format="csv", files={"en": ("quoted.csv",)}),
            "moses": SourceConfig(
                kind="pairs", format="moses", files={"en-de": ("moses.en", "moses.de")}
            ),
        },
        tokenizer=TokenizerConfig(folder=str(tokenizer)),
        duplicates=DuplicatesConfig(scope="language", near=True),
        shard_tokens=700,
        **more,
    )
    add_up(prepare(chosen, out, base=files))
    return contents(out)


def dropped(folder: Path) -> list[str]:
    files = (gzip.decompress(path.read_bytes()).decode() for path in folder.rglob("*.gz"))
    return sorted(line for content in files for line in content.splitlines())


@pytest.mark.parametrize("size", [pytest.param(600, marks=pytest.mark.slow), 2500])
def test_split_files_give_the_same_corpus(files, tokenizer, tmp_path, monkeypatch, size):
    monkeypatch.chdir(tmp_path)
    whole = prepared(files, tmp_path / "whole", tokenizer, dropped_folder="dropped")
    assert len([name for name in whole if name.endswith(".arrow")]) > 20
    lines_dropped = dropped(tmp_path / "dropped")
    assert len(lines_dropped) > 100
    seen = []
    cut = splitting._parts

    def parts(group, ranges):
        seen.append(len(ranges[0]))
        return cut(group, ranges)

    monkeypatch.setattr(splitting, "_parts", parts)
    monkeypatch.setattr(splitting, "PART_BYTES", size)
    monkeypatch.setattr(duplicates, "MAX_ENTRIES", 300)
    split = prepared(files, tmp_path / "split", tokenizer, dropped_folder="dropped")
    assert max(seen) > 3
    assert len(seen) >= 6, "every format is split"
    assert split == whole
    assert dropped(tmp_path / "dropped") == lines_dropped


def test_files_of_different_lengths_are_told_as_before(tmp_path, tokenizer, monkeypatch):
    monkeypatch.setattr(splitting, "PART_BYTES", 300)
    (tmp_path / "a.en").write_text("A line of text.\n" * 90)
    (tmp_path / "a.de").write_text("Eine Zeile Text.\n" * 89)
    source = SourceConfig(kind="pairs", format="moses", files={"en-de": ("a.en", "a.de")})
    chosen = usual(sources={"s": source}, tokenizer=TokenizerConfig(folder=str(tokenizer)))
    with pytest.raises(CorpusError, match=r"a\.en: has 90 lines, but .*a\.de has 89"):
        prepare(chosen, tmp_path / "corpus", base=tmp_path)


def test_a_large_file_that_cannot_be_split_is_named(tmp_path, tokenizer, monkeypatch, caplog):
    monkeypatch.setattr(splitting, "PART_BYTES", 300)
    monkeypatch.setattr(splitting, "_NOTED_BYTES", 400)
    text = "".join(f"{line}\n" for line in lines("en", 300)).encode()
    (tmp_path / "one.txt.gz").write_bytes(gzip.compress(text))
    chosen = usual(
        sources={"s": SourceConfig(files={"en": ("one.txt.gz",)})},
        tokenizer=TokenizerConfig(folder=str(tokenizer)),
    )
    add_up(prepare(chosen, tmp_path / "corpus", base=tmp_path))
    assert "one.txt.gz" in caplog.text
    assert "bgzip" in caplog.text
