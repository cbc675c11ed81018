"""The numbers of things that the README tells are those of the library."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from isoglot.objectives import all_objectives
from isoglot.recipe import recipe_names
from isoglot.tasks import TASKS

README = Path(__file__).parent.parent / "README.md"
NUMBERS = {
    "objectives": len(all_objectives()),
    "recipes": len(recipe_names()),
    "tasks": len(TASKS),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_counts_are_those_of_the_library(name):
    (told,) = re.findall(rf"(\d+)\s\[{name}\]\(", README.read_text("utf-8"))
    assert int(told) == NUMBERS[name]
