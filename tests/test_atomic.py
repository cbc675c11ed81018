"""A name holds the complete new content or what it held before, whatever goes wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from isoglot.atomic import replace_file, replace_folder, write_bytes, write_errors, write_json
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
