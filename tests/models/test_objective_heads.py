"""The file of objectives' heads: what is written is read, a changed byte is refused."""

import json
import struct

import pytest
import torch

from isoglot.errors import ModelError
from isoglot.models import objective_heads
from isoglot.models.objective_heads import FILE, ObjectiveHead


def make_heads() -> dict[str, ObjectiveHead]:
    generator = torch.Generator().manual_seed(3)
    one, two = (torch.randn(4, 3, generator=generator) for _ in range(2))
    return {
        "entity": ObjectiveHead({"layer": None, "pooling": "cls"}, {"query.weight": one}),
        "entailment": ObjectiveHead({"relations": [31, 17]}, {"relations.weight": two.T}),
    }


def test_heads_are_read_as_they_were_written(tmp_path):
    objective_heads.save(tmp_path, make_heads())
    found = objective_heads.load(tmp_path)
    assert found.keys() == {"entity", "entailment"}
    for name, head in make_heads().items():
        assert found[name].settings == head.settings
        assert found[name].tensors.keys() == head.tensors.keys()
        for key, tensor in head.tensors.items():
            assert torch.equal(found[name].tensors[key], tensor)


def test_no_heads_are_no_file_and_no_file_is_no_heads(tmp_path):
    objective_heads.save(tmp_path, {})
    assert not (tmp_path / FILE).exists()
    assert objective_heads.load(tmp_path) == {}


def test_the_same_heads_give_the_same_bytes(tmp_path):
    files = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        objective_heads.save(tmp_path / name, make_heads())
        files.append((tmp_path / name / FILE).read_bytes())
    assert files[0] == files[1]


@pytest.mark.parametrize("place", [-1, -24, -70])
def test_a_changed_value_is_refused(tmp_path, place):
    objective_heads.save(tmp_path, make_heads())
    content = bytearray((tmp_path / FILE).read_bytes())
    content[place] ^= 1
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(ModelError, match="SHA-256"):
        objective_heads.load(tmp_path)


@pytest.mark.parametrize("metadata", [None, {}, {"heads": "[]"}, {"heads": "{"}, {"heads": "{}"}])
def test_a_file_without_settings_is_refused(tmp_path, metadata):
    objective_heads.save(tmp_path, make_heads())
    content = (tmp_path / FILE).read_bytes()
    (size,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + size])
    if metadata is None:
        del header["__metadata__"]
    else:
        header["__metadata__"] = metadata
    told = json.dumps(header).encode()
    told += b" " * (-len(told) % 8)
    (tmp_path / FILE).write_bytes(struct.pack("<Q", len(told)) + told + content[8 + size :])
    with pytest.raises(ModelError, match=FILE):
        objective_heads.load(tmp_path)
    (tmp_path / FILE).write_bytes(content[:50])
    with pytest.raises(ModelError, match="Export the model again"):
        objective_heads.load(tmp_path)
