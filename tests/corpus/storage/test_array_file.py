"""Arrays in one mapped file: what is written is read, also by safetensors; damage is noticed."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from safetensors.numpy import load_file

from isoglot.corpus.storage.array_file import ArrayFile, ArrayFileWriter, ArrayWriter
from isoglot.errors import CorpusError


def fill(writer: ArrayWriter) -> None:
    writer.append("long", np.arange(5))
    writer.append("rows", np.array([[9, 9]], np.uint16))
    writer.discard("rows")
    writer.append("rows", np.array([[1, 2]], np.uint16))
    writer.append("rows", np.array([[3, 4], [5, 6]], np.uint16))
    writer.append("none", np.zeros(0, np.uint16))
    writer.facts["tokens"] = 12


@pytest.fixture
def path(tmp_path):
    with (tmp_path / "x.safetensors").open("wb") as file:
        writer = ArrayFileWriter(file, "key")
        fill(writer)
        writer.finish()
    return tmp_path / "x.safetensors"


def test_what_is_written_is_read(path):
    in_memory = ArrayWriter()
    fill(in_memory)
    for found in (ArrayFile(path, "key"), in_memory.arrays()):
        assert found["long"].tolist() == [0, 1, 2, 3, 4]
        assert found["rows"].tolist() == [[1, 2], [3, 4], [5, 6]]
        assert found["rows"].dtype == np.dtype(np.uint16)
        assert found["none"].shape == (0,)
        assert found.facts == {"tokens": 12}
        assert "long" in found
        assert "short" not in found
    read = load_file(path)
    assert {name: array.tolist() for name, array in read.items()} == {
        "long": [0, 1, 2, 3, 4],
        "rows": [[1, 2], [3, 4], [5, 6]],
        "none": [],
    }


def test_a_file_travels_as_its_path(path):
    found = ArrayFile(path, "key")
    assert not found["long"].flags.owndata
    sent = pickle.dumps(found)
    assert len(sent) < 300
    assert pickle.loads(sent)["long"].tolist() == [0, 1, 2, 3, 4]


def test_damage_is_noticed(path):
    original = path.read_bytes()
    end = original.rindex(b"}") + 1
    places = [0, 7, 9, *range(end - 60, end), len(original) - 1, len(original) - 30]
    for place in places:
        changed = bytearray(original)
        changed[place] ^= 1
        path.write_bytes(changed)
        with pytest.raises(CorpusError, match=r"x\.safetensors: "):
            ArrayFile(path, "key")
    for data in (b"", original[:5], original[:-1], original + b"x"):
        path.write_bytes(data)
        with pytest.raises(CorpusError, match=r"x\.safetensors: is damaged"):
            ArrayFile(path, "key")
    path.write_bytes(original)
    with pytest.raises(CorpusError, match="made from another corpus or with other settings"):
        ArrayFile(path, "other")


def test_arrays_without_rows(tmp_path):
    with (tmp_path / "x").open("wb") as file:
        writer = ArrayFileWriter(file, "key")
        writer.append("none", np.zeros((0, 2), np.uint16))
        writer.finish()
    assert ArrayFile(tmp_path / "x", "key")["none"].shape == (0, 2)
