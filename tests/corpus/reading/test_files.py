from __future__ import annotations

import bz2
import gzip
import lzma
import os
from pathlib import Path

import psutil
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isoglot.corpus.reading import files as files_module
from isoglot.corpus.reading.files import read_blocks, read_lines
from isoglot.corpus.reading.reader import Record, Skipped
from isoglot.corpus.reading.text import JsonLinesReader
from isoglot.errors import CorpusError

TEXT = "".join(f"line {number} – строка\n" for number in range(20_000))
PACKERS = {
    ".txt": lambda data: data,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda data: pa.compress(data, codec="zstd", asbytes=True),
}


@pytest.mark.parametrize("suffix", PACKERS)
def test_every_packing_gives_the_same_lines(tmp_path, suffix):
    path = tmp_path / f"text{suffix}"
    path.write_bytes(PACKERS[suffix](TEXT.encode()))
    assert list(read_lines(path)) == TEXT.splitlines()


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ".zst"])
def test_several_packed_parts_in_one_file_are_all_read(tmp_path, suffix):
    path = tmp_path / f"text{suffix}"
    path.write_bytes(PACKERS[suffix](b"one\n") + PACKERS[suffix](b"two\n"))
    assert list(read_lines(path)) == ["one", "two"]


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ".zst"])
@pytest.mark.parametrize("damage", ["cut", "not packed", "flipped"])
def test_a_damaged_file_is_named_with_the_place(tmp_path, suffix, damage):
    packed = PACKERS[suffix](TEXT.encode())
    if damage == "cut":
        packed = packed[: len(packed) // 2]
    elif damage == "flipped":
        middle = len(packed) // 2
        packed = packed[:middle] + bytes(255 - byte for byte in packed[middle : middle + 64])
    else:
        packed = TEXT.encode()
    path = tmp_path / f"text{suffix}"
    path.write_bytes(packed)
    with pytest.raises(
        CorpusError, match=rf"text{suffix}: is damaged .* after decompressed byte \d"
    ):
        list(read_lines(path))


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_a_packed_bomb_is_read_in_bounded_memory(tmp_path, suffix):
    """256 MiB of zeros are some KiB packed; 1 MiB is held at a time, and one line of 64 MiB."""
    path = tmp_path / f"bomb{suffix}"
    zeros = bytes(1 << 20)
    if suffix == ".zst":
        with pa.CompressedOutputStream(str(path), "zstd") as stream:
            for _ in range(256):
                stream.write(zeros)
    else:
        with gzip.open(path, "wb", compresslevel=1) as packed:
            for _ in range(256):
                packed.write(zeros)
    process = psutil.Process()
    before = process.memory_info().rss
    read, most = 0, 0
    for number, block in enumerate(files_module.read_blocks(path)):
        read += len(block)
        assert len(block) <= 1 << 20
        if number % 16 == 0:
            most = max(most, process.memory_info().rss - before)
    assert read == 256 << 20
    assert most < 48 << 20
    (line,) = read_lines(path)
    assert line == Skipped("endless")


def test_line_ends_byte_order_mark_and_bad_bytes(tmp_path):
    path = tmp_path / "text.txt"
    path.write_bytes(b"\xef\xbb\xbfone\r\ntwo\rthree\n\n\xff\xfe\nsix")
    found = list(read_lines(path))
    assert found == ["one", "two", "three", "", Skipped("encoding"), "six"]
    bad = found[4]
    assert isinstance(bad, Skipped)
    assert (bad.line, bad.text) == (5, "��")


@settings(max_examples=200, deadline=None)
@given(
    data=st.lists(st.sampled_from([b"a", b"\n", b"\r", b"\xff", "é".encode(), b"\x85"])).map(
        b"".join
    ),
    block=st.integers(1, 5),
)
def test_lines_do_not_depend_on_blocks(tmp_path_factory, data, block):
    path = tmp_path_factory.mktemp("blocks") / "x.txt"
    path.write_bytes(data)
    blocks = [data[start : start + block] for start in range(0, len(data), block)]
    parts = [part for part, _ in files_module._whole_lines(blocks)]
    assert b"".join(parts) == data
    assert [line for part in parts for line in part.splitlines()] == data.splitlines()
    found = [line if isinstance(line, str) else line.text for line in read_lines(path)]
    assert found == [line.decode(errors="replace") for line in data.splitlines()]


@settings(max_examples=100, deadline=None)
@given(
    lengths=st.lists(st.integers(0, 40), max_size=6), end=st.sampled_from([b"\n", b"\r\n", b"\r"])
)
def test_an_endless_line_is_skipped_and_counted(lengths, end):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files_module, "MAX_LINE_BYTES", 20)
        data = b"".join(b"x" * length + end for length in lengths)
        blocks = [data[start : start + 4] for start in range(0, len(data), 4)]
        found = list(files_module._whole_lines(blocks))
    endless = [part for part, is_endless in found if is_endless]
    whole = [line for part, is_endless in found if not is_endless for line in part.splitlines()]
    assert len(endless) + len(whole) == len(lengths)
    # a line is given up once a block that begins after its first 20 bytes does not end it
    assert sum(length > 28 for length in lengths) <= len(endless)
    assert len(endless) <= sum(length > 16 for length in lengths)


def test_a_missing_file_is_named_with_its_neighbor(tmp_path):
    (tmp_path / "german.txt").touch()
    with pytest.raises(CorpusError, match=r"germn\.txt.*did you mean 'german\.txt'\?"):
        list(read_lines(tmp_path / "germn.txt"))
    with pytest.raises(CorpusError, match=r"nor its folder"):
        list(read_lines(tmp_path / "nowhere" / "german.txt"))


@pytest.mark.parametrize("place", ["/proc/kmsg", "/proc/self/environ", "/sys/kernel/x", "/proc"])
def test_files_of_the_kernel_are_refused_before_they_are_opened(place):
    """Reading /proc/kmsg waits for ever, a search through /proc does not end."""
    with pytest.raises(CorpusError, match=r"lies in /(proc|sys), not on a disk"):
        list(read_blocks(Path(place)))


def test_a_link_into_the_kernel_is_refused_too(tmp_path):
    (tmp_path / "a.txt").symlink_to("/proc/self/environ")
    with pytest.raises(CorpusError, match="not on a disk"):
        list(read_blocks(tmp_path / "a.txt"))


def test_pipes_and_devices_are_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero"), Path("/dev/null")):
        with pytest.raises(CorpusError, match="is a pipe, a socket or a device"):
            list(read_blocks(path))


def test_impossible_names_are_refused(tmp_path):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name in ("x" * 5_000, "a\0b", "loop"):
        with pytest.raises(CorpusError):
            list(read_blocks(tmp_path / name))


def test_deep_objects_are_skipped_whatever_the_depth(tmp_path):
    """Printing an object takes more of the stack than reading it."""
    depths = [10, *range(300, 1_100, 25), 5_000, 100_000]
    lines = ['{"a":' * depth + "1" + "}" * depth for depth in depths]
    (tmp_path / "a.jsonl").write_text("\n".join([*lines, '{"text": "good"}']))
    found = list(JsonLinesReader(languages=("en",)).read([tmp_path / "a.jsonl"]))
    assert len(found) == len(depths) + 1
    assert isinstance(found[-1], Record)
    reasons = {one.reason for one in found[:-1] if isinstance(one, Skipped)}
    assert reasons == {"no field", "not JSON"}
