"""How a model was trained to read pairs: the settings of TLM and CAMLM in its run's recipe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from isoglot import yaml_text
from isoglot.errors import IsoglotError
from isoglot.objectives.camlm import CAMLM
from isoglot.objectives.tlm import TLM

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Layouts:
    """How pairs are laid out: the objectives of a run, or their defaults."""

    tlm: TLM
    camlm: CAMLM
    source: str
    """A sentence about where the settings are from."""
    untrained: str = ""
    """A sentence about objectives that the model's recipe does not have."""


_SETTINGS: Mapping[str, Mapping[str, tuple[Any, ...]]] = {
    "tlm": {
        "positions": ("reset", "continuous"),
        "separator": ("single", "double", "both"),
        "language_ids": (True, False),
    },
    "camlm": {"positions": ("continuous", "reset")},
}
"""Objective -> the settings of its layout, and their values."""


def layouts_of(folder: Path) -> Layouts:
    """The settings of TLM and CAMLM in the recipe beside a model folder, or the defaults.

    Only these settings are read: a recipe may name classes of its own, which are not imported.
    """
    found: dict[str, dict[str, Any]] = {}
    is_recipe = False
    file = folder.parent / "recipe.yaml"
    if folder.name == "model" and file.is_file():
        try:
            objectives = yaml_text.read(file)[0]["objectives"]
            found = {
                name: {key: objectives[name].get(key) for key in keys}
                for name, keys in _SETTINGS.items()
                if name in objectives
            }
            is_recipe = True
        except (IsoglotError, AttributeError, KeyError, TypeError):  # no recipe of this version
            found = {}
    known = {
        name: {key: value for key, value in own.items() if value in _SETTINGS[name][key]}
        for name, own in found.items()
    }
    named = " and ".join(name.upper() for name in known)
    missing = " and ".join(name.upper() for name in _SETTINGS if name not in known)
    return Layouts(
        tlm=TLM(**known.get("tlm", {})),
        camlm=CAMLM(**known.get("camlm", {})),
        source=f"Pairs are laid out for {named} as in the model's recipe."
        if named
        else "Pairs are laid out as TLM's and CAMLM's default settings say.",
        untrained=f"The model's recipe has no {missing}: it was not trained on such input."
        if missing and is_recipe
        else "",
    )
