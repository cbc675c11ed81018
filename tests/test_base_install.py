"""`pip install isoglot` alone serves every command but those whose pages name an extra."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "isoglot"
IMPORTED_AS = {"faiss_cpu": "faiss", "indic_nlp_library": "indicnlp"}
"""Package -> module, where they differ."""
OPENED_LATER = {
    "explore": {"fastapi", "gradio", "uvicorn"},
    "pretraining/optimizers/sharded_lamb.py": {"pytorch_optimizer"},
}
"""Files and folders that are imported once their extra has been looked for."""


def names_of(requirements):
    return {name for line in requirements for name in re.findall(r"^[\w-]+", line)}


def modules_of_extras():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    needed = names_of(project["dependencies"])
    of_extras = names_of(line for name in extras if name != "dev" for line in extras[name])
    names = {name.replace("-", "_").lower() for name in of_extras - needed}
    return {IMPORTED_AS.get(name, name) for name in names}


def imported_at_once(file):
    """Top-level modules that a file imports when it is imported itself."""
    waiting, found = list(ast.parse(file.read_text("utf-8")).body), set()
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").split(".")[0])
        elif isinstance(node, ast.ClassDef | ast.Try | ast.With):
            waiting += node.body
        elif isinstance(node, ast.If) and "TYPE_CHECKING" not in ast.unparse(node.test):
            waiting += [*node.body, *node.orelse]
    return found


def test_no_module_needs_an_extra_to_be_imported():
    extras, checked = modules_of_extras(), 0
    assert {"daft", "gradio", "faiss"} <= extras
    for file in SOURCE.rglob("*.py"):
        place = file.relative_to(SOURCE).as_posix()
        allowed = {
            name
            for start, names in OPENED_LATER.items()
            if place.startswith(start)
            for name in names
        }
        assert not imported_at_once(file) & extras - allowed, place
        checked += 1
    assert checked > 500


def test_extras_that_messages_and_pages_name_exist():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    known = set(extras["optional-dependencies"])
    places = [*SOURCE.rglob("*.py"), ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    named = {
        (place.name, name)
        for place in places
        for names in re.findall(r"isoglot\[([\w,-]+)\]", place.read_text("utf-8"))
        for name in names.split(",")
    }
    assert len(named) > 10
    assert [one for one in sorted(named) if one[1] not in known] == []
