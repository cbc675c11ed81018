"""The request of an adaptation: read from a file, and kept in OUT so that only it continues there.

An adaptation's folder belongs to one request. The same one continues; another one, and a folder
that holds something else, are refused. Settings that do not change the result may differ.
"""

from __future__ import annotations

import shutil
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from isoglot import yaml_text
from isoglot.adaptation.config import AdaptConfig
from isoglot.adaptation.plan import read_plan
from isoglot.atomic import write_text
from isoglot.errors import RecipeError
from isoglot.locks import has_files
from isoglot.recipe import document, dump
from isoglot.recipe.structure import structure

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from isoglot.adaptation.folder import AdaptFolder

_FREE = ("workers", "license")
"""Settings that may be different when the command runs again."""


def load_request(path: Path, settings: Sequence[str] = ()) -> AdaptConfig:
    """The settings of an adaptation from a YAML file, changed by `name=value` settings."""
    if not path.is_file():
        raise RecipeError(f"there is no file {path}: give an encoder, or a file with settings.")
    found = document.with_settings(document.read(path), settings)
    # one name may stand without a list
    for name in ("text", "pairs"):
        given = found.data.get(name)
        if isinstance(given, dict):
            found.data[name] = {code: _listed(names) for code, names in given.items()}
    for name in ("tests", "dictionaries", "alignments"):
        if name in found.data:
            found.data[name] = _listed(found.data[name])
    return structure(found, AdaptConfig)


def _listed(names: Any) -> Any:
    return [names] if isinstance(names, str) else names


def claim(folder: AdaptFolder, config: AdaptConfig) -> str | None:
    """Make a folder that of a request; gives a sentence where it replaces another one.

    A request of which nothing but an unedited plan exists is replaced.

    Raises:
        RecipeError: it is that of another request, or holds something else.
    """
    note = None
    if folder.request.is_file():
        different = "; ".join(_differences(folder.request, dump(config)))
        if not different:
            return None
        plan = read_plan(folder)
        if _has_begun(folder) or (plan is not None and plan.edited):
            raise RecipeError(
                f"{folder.path}: was begun with another request: {different}. Give the same "
                "request to continue, or choose another --out."
            )
        note = f"{folder.path}: planned anew, since {different}."
        shutil.rmtree(folder.plan, ignore_errors=True)
    elif has_files(folder.path):
        raise RecipeError(
            f"{folder.path}: is not empty and is not the folder of an adaptation (it has no "
            f"{folder.request.name}). Choose another --out."
        )
    write_text(folder.request, dump(config))
    return note


def _has_begun(folder: AdaptFolder) -> bool:
    """Whether more was done than looking and planning."""
    places = (folder.encoder, folder.corpus, folder.run, folder.steps, folder.model)
    return any(place.exists() for place in places)


def _differences(file: Path, now: str) -> list[str]:
    """A phrase for each setting that differs."""
    before, _ = yaml_text.read(file)
    given, _ = yaml_text.parse(now, "the request", lines=False)
    before = before if isinstance(before, dict) else {}
    names = [one.name for one in fields(AdaptConfig) if one.name not in _FREE]
    return [
        f"{name} was {_shown(before.get(name))} and is {_shown(given[name])}"
        for name in names
        if before.get(name) != given[name]
    ]


def _shown(value: object) -> str:
    """A value as the option writes it: `sw=a.txt,b.txt en=c.txt`."""
    if isinstance(value, dict):
        value = [f"{code}={','.join(map(str, names))}" for code, names in value.items()]
    if isinstance(value, list):
        value = " ".join(map(str, value))
    text = str(value) if value not in ("", None) else "not set"
    return text if len(text) <= 80 else f"{text[:77]}..."
