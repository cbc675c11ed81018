"""A name holds the complete new content or what it held before, whatever goes wrong."""

from __future__ import annotations

import errno
import json
import resource
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

from isoglot.atomic import (
    disk_fault,
    replace_file,
    replace_folder,
    save_array,
    write_array,
    write_bytes,
    write_errors,
    write_json,
)
from isoglot.errors import WriteError


def test_files_are_written_with_their_folders(tmp_path):
    write_json(tmp_path / "a/b.json", {"x": "ü"}, indent=1)
    assert json.loads((tmp_path / "a/b.json").read_text("utf-8")) == {"x": "ü"}
    write_bytes(tmp_path / "a/b.json", b"new")
    assert (tmp_path / "a/b.json").read_bytes() == b"new"
    assert names(tmp_path / "a") == ["b.json"]


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path):
    write_bytes(tmp_path / "file", b"old")
    with pytest.raises(KeyError):  # noqa: PT012, SIM117 (the block must fail inside the context)
        with replace_file(tmp_path / "file") as partial:
            partial.write_bytes(b"half")
            raise KeyError
    assert (tmp_path / "file").read_bytes() == b"old"
    assert names(tmp_path) == ["file"]


def test_a_full_disk_names_the_file_and_the_fix(tmp_path):
    (tmp_path / "file.partial").symlink_to("/dev/full")
    with pytest.raises(WriteError, match=r"file: cannot be written \(No space left.*Free disk"):
        write_bytes(tmp_path / "file", b"x")
    assert not list(tmp_path.iterdir())
    with pytest.raises(OSError, match="cannot be written"), write_errors(tmp_path):
        (tmp_path / "none/file").touch()


@pytest.mark.parametrize("durable", [True, False])
def test_a_folder_is_replaced_as_a_whole(tmp_path, durable):
    folder = tmp_path / "deep/model"
    fill(folder, "old", durable=durable)
    fill(folder, "new", durable=durable)
    assert names(folder) == ["new"]
    with pytest.raises(KeyError):  # noqa: PT012, SIM117 (the block must fail inside the context)
        with replace_folder(folder) as partial:
            (partial / "half").touch()
            raise KeyError
    assert names(folder) == ["new"]
    assert names(folder.parent) == ["model"]


def test_a_folder_survives_a_kill_between_the_renames(tmp_path):
    folder = tmp_path / "model"
    fill(tmp_path / ".model.replaced", "old")
    with pytest.raises(KeyError), replace_folder(folder):
        raise KeyError
    assert names(folder) == ["old"]


def fill(folder: Path, name: str, *, durable: bool = False) -> None:
    with replace_folder(folder, durable=durable) as partial:
        (partial / name).touch()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def full():
    """A function: writing fails after so many bytes of any file, until the test ends."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_arrays_are_written_whole_or_not_at_all(tmp_path, full):
    """numpy's own functions leave out what their buffer holds, and say nothing."""
    array = np.arange(300)[::2]
    save_array(tmp_path / "a.npy", array)
    assert np.load(tmp_path / "a.npy").tolist() == array.tolist()
    with (tmp_path / "b").open("wb") as file:
        write_array(file, array)
    assert (tmp_path / "b").read_bytes() == array.tobytes()
    full(array.nbytes - 1)
    with pytest.raises(OSError, match="too large"):
        save_array(tmp_path / "a.npy", array)
    with pytest.raises(OSError, match="too large"), (tmp_path / "b").open("wb") as file:
        write_array(file, array)


WRITERS = {
    "safetensors": lambda file: save_file({"x": torch.zeros(3000)}, file),
    "python": lambda file: file.write_bytes(bytes(12_000)),
    "numpy": lambda file: save_array(file, np.zeros(3000)),
    "tokenizers": lambda file: Tokenizer(WordLevel({"x" * 12_000: 0}, "x")).save(str(file)),
    "arrow": lambda file: pq.write_table(pa.table({"x": np.random.rand(3000)}), file),  # noqa: NPY002
}


@pytest.mark.parametrize("library", WRITERS)
def test_every_library_s_full_disk_is_recognized(library, tmp_path, full):
    full(2000)
    for replace in (replace_file, replace_folder):
        with pytest.raises(WriteError, match=r"out: cannot be written \(File too large\)"):  # noqa: SIM117
            with replace(tmp_path / "out") as partial:
                WRITERS[library](partial / "file" if partial.is_dir() else partial)
        assert names(tmp_path) == []


def test_other_errors_are_no_fault_of_the_disk():
    for error in (KeyError("x"), OSError("no"), FileNotFoundError(2, "No such file", "x")):
        assert disk_fault(error) is None
    assert disk_fault(OSError(errno.EDQUOT, "")) == "Disk quota exceeded"
    assert disk_fault(RuntimeError("I/O error: ... (os error 28)")) == "No space left on device"
    assert disk_fault(RuntimeError("Permission denied (os error 13)")) is None
