"""Classes of a user's own that cannot be imported: the message says where Python looked."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from isoglot.errors import IsoglotError, import_class


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """A folder that Python does not search."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path not in ("", ".")])


def refused(path: str) -> str:
    with pytest.raises(IsoglotError) as found:
        import_class(path, IsoglotError, f"the class {path!r}")
    return str(found.value)


def test_a_module_of_the_current_folder_is_not_searched(tmp_path):
    Path("found_here.py").write_text("", encoding="utf-8")
    Path("package_here").mkdir()
    for name in ("found_here", "package_here.inside"):
        message = refused(f"{name}:X")
        assert "cannot be imported: No module named" in message
        if name == "found_here":
            assert f"It is in {tmp_path}, which Python does not search: set PYTHONPATH=." in message


def test_the_folders_that_are_searched_are_named(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/some/folder")
    assert "PYTHONPATH (/some/folder); add the folder that holds it" in refused("no_such.at_all:X")
    monkeypatch.delenv("PYTHONPATH")
    assert "PYTHONPATH (which is not set)" in refused("no_such:X")


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import no_such_dependency", "ModuleNotFoundError: No module named 'no_such_dependency'"),
        ("x = (", "SyntaxError: '(' was never closed"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
    ],
)
def test_a_module_that_fails_is_told_with_its_error(tmp_path, monkeypatch, code, reason):
    monkeypatch.syspath_prepend(tmp_path)
    Path("failing_module.py").write_text(code, encoding="utf-8")
    assert f"the module 'failing_module' fails ({reason}" in refused("failing_module:X")


def test_a_class_that_is_not_there_has_a_neighbor(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    Path("with_classes.py").write_text("class Ending: ...", encoding="utf-8")
    message = refused("with_classes:Endign")
    assert "with_classes.py has no 'Endign'; did you mean 'Ending'?" in message
    assert "is not a subclass" in refused("with_classes:Ending")
    sys.modules.pop("with_classes")
