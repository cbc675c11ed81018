"""Every output option refuses what cannot be written, in a sentence and before any work."""

from __future__ import annotations

import inspect
import os
import pwd
from collections.abc import Iterator
from pathlib import Path
from typing import get_args, get_type_hints

import pytest
import typer
from typer.models import OptionInfo

from isoglot.cli import app, load_commands, outputs
from isoglot.cli.outputs import check_output

INPUTS = {
    "pairs",
    "data",
    "compare_with",
    "corpus",
    "reference",
    "tokenizer",
    "dictionary",
    "words",
    "text",
    "balance",
    "gold",
    "results",
}
"""Options that name what is read."""


def path_options(group: typer.Typer = app) -> Iterator[tuple[str, OptionInfo]]:
    """(command and parameter, option) for all options of all commands that take a path."""
    for command in group.registered_commands:
        function = command.callback
        assert function is not None
        hints = get_type_hints(function)
        for name, parameter in inspect.signature(function).parameters.items():
            is_path = Path in (hints[name], *get_args(hints[name]))
            if is_path and isinstance(parameter.default, OptionInfo):
                yield f"{function.__name__} {name}", parameter.default
    for inner in group.registered_groups:
        assert inner.typer_instance is not None
        yield from path_options(inner.typer_instance)


def test_every_output_option_has_a_check():
    load_commands()
    writing = {name: option for name, option in path_options() if name.split()[1] not in INPUTS}
    assert [name for name, option in writing.items() if option.callback is None] == []
    assert len(writing) >= 20


def unknown_user(_: int) -> None:
    raise KeyError


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_what_cannot_be_written_is_refused(kind, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(pwd, "getpwuid", unknown_user)
    refused = {
        tmp_path / "file/below": "is a file, so",
        Path("/dev/null/below"): "is a file, so",
        tmp_path / ("x" * 250): "too long",
        tmp_path / "/".join(["y" * 200] * 30): "too long",
        Path("~/mine"): "no home folder",
        Path("~nobody-of-this-name/mine"): "no home folder",
        Path("a\0b"): "null",
    }
    if kind == "folder":
        refused |= {tmp_path / "file": "is a file", Path("/dev/null"): "is a file"}
    else:
        refused |= {tmp_path / "folder": "is a folder", Path("/dev/null"): "device"}
    for path, reason in refused.items():
        with pytest.raises(typer.BadParameter, match=reason):
            check_output(path, kind)


def test_a_place_without_permission_is_refused(tmp_path, monkeypatch):
    """As root everything may be written: what the system says of a read-only disk stands in."""
    readonly = tmp_path / "readonly"
    readonly.mkdir()
    monkeypatch.setattr(os, "access", lambda place, _: Path(place) != readonly)
    for path in (readonly, readonly / "new/deep", readonly / "file"):
        with pytest.raises(typer.BadParameter, match="no permission to write in"):
            check_output(path, "folder")
    assert check_output(tmp_path / "other", "folder") == tmp_path / "other"


def test_what_can_be_written_is_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    assert check_output(Path("~/runs/new"), "folder") == tmp_path / "runs/new"
    assert check_output(Path("file"), "file") == Path("file")
    assert check_output(Path(), "folder") == Path()
    assert check_output(tmp_path, "file or folder") == tmp_path
    assert os.listdir(tmp_path) == ["file"]  # noqa: PTH208
    assert outputs.output_folder(None) is outputs.output_file(None) is None
    assert outputs.output_file_or_folder(None) is None
