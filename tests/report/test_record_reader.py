"""Records of a growing, cut and replaced file, against reading the whole file each time."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING

import pytest

from isoglot.report import record_reader
from isoglot.report.record_reader import RecordReader

if TYPE_CHECKING:
    from pathlib import Path

    from isoglot.report.record_reader import Record


def line(step: int, **more: object) -> bytes:
    return json.dumps({"step": step, **more}).encode() + b"\n"


def whole(file: Path) -> list[Record]:
    """The slow and obvious version: every complete line of the file."""
    return [json.loads(one) for one in file.read_bytes().split(b"\n")[:-1]]


@pytest.mark.parametrize("seed", range(20))
def test_what_is_read_is_what_the_file_has(tmp_path, monkeypatch, seed):
    """Bytes are appended at any place; now and then the file is cut, or replaced, and grows."""
    monkeypatch.setattr(record_reader, "_CHUNK", 7)
    rng = random.Random(seed)
    file = tmp_path / "metrics.jsonl"
    file.write_bytes(b"")
    found: list[Record] = []
    reader, written, step = RecordReader(file), b"", 0
    for _ in range(200):
        chance = rng.random()
        if chance < 0.05 and written.count(b"\n") > 2:  # a resumed run: cut, and other numbers
            lines = written.split(b"\n")[: rng.randrange(1, written.count(b"\n"))]
            kept = b"".join(one + b"\n" for one in lines)
            step = len(lines)
            written = kept + b"".join(line(step + n, x=rng.random()) for n in range(5))
            step += 5
            if chance < 0.025:
                (tmp_path / "new").write_bytes(written)
                (tmp_path / "new").replace(file)
            else:
                file.write_bytes(written)
        else:
            step += 1
            new = line(step, x=rng.random())
            end = rng.randrange(1, len(new))
            with file.open("ab") as stream:
                stream.write(new[:end])
                stream.flush()
                if rng.random() < 0.5:
                    if reader.restarted():
                        found = []
                    found += list(reader.read())
                stream.write(new[end:])
            written += new
        if reader.restarted():
            found = []
        found += list(reader.read())
        assert found == whole(file)


def test_a_half_written_line_is_waited_for(tmp_path):
    file = tmp_path / "metrics.jsonl"
    file.write_bytes(line(1) + line(2)[:-3])
    reader = RecordReader(file)
    assert [record["step"] for record in reader.read()] == [1]
    assert reader.rest == line(2)[:-3]
    file.write_bytes(line(1) + line(2) + b"no record\n[1]\n\xff\n")
    assert not reader.restarted()
    assert [record["step"] for record in reader.read()] == [2]
    assert reader.damaged == [3, 4, 5]


def test_a_missing_file_is_no_other_file(tmp_path):
    file = tmp_path / "metrics.jsonl"
    reader = RecordReader(file)
    assert not reader.restarted()
    with pytest.raises(FileNotFoundError):
        list(reader.read())
    file.write_bytes(line(1))
    assert len(list(reader.read())) == 1
    file.unlink()
    assert not reader.restarted()
    file.write_bytes(line(1))
    assert list(reader.read()) == []
