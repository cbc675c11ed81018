from __future__ import annotations

import pytest

from isoglot.adaptation.folder import AdaptFolder
from isoglot.adaptation.plan_files import read_plan, write_plan
from isoglot.errors import RecipeError
from isoglot.recipe import load_prepare, load_recipe


def test_files_of_a_plan_are_what_the_commands_read(planned, looked, tmp_path):
    folder = AdaptFolder(tmp_path)
    write_plan(planned, folder)
    assert load_recipe(str(folder.plan / "recipe.yaml")) == planned.recipe
    assert load_prepare(folder.plan / "prepare.yaml") == planned.prepare
    assert read_plan(folder) == planned
    assert planned.prepare.exclude[0] == "../heldout/kept-out.jsonl"
    assert planned.recipe.corpus == str(looked.folder.corpus.absolute())
    assert planned.recipe.batch.micro_rows == planned.recipe.batch.rows


def test_edited_files_are_used_as_they_are(planned, tmp_path):
    folder = AdaptFolder(tmp_path)
    assert read_plan(folder) is None
    write_plan(planned, folder)
    recipe = folder.plan / "recipe.yaml"
    recipe.write_text(recipe.read_text().replace("seed: 0", "seed: 7"))
    again = read_plan(folder)
    assert again is not None
    assert (again.edited, again.recipe.seed) == (("recipe.yaml",), 7)
    assert again.step_seconds == planned.step_seconds
    steps = planned.recipe.stages[0].steps
    recipe.write_text(recipe.read_text().replace(f"- steps: {steps}\n", f"- steps: {2 * steps}\n"))
    again = read_plan(folder)
    assert again is not None
    assert again.step_seconds["train"] == pytest.approx(2 * planned.step_seconds["train"])
    assert again.decisions[:-1] == planned.decisions
    assert again.decisions[-1].topic == "EDITED"
    assert f"{2 * steps:,} steps" in again.decisions[-1].choice
    recipe.write_text(recipe.read_text().replace("seed: 7", "sead: 7"))
    with pytest.raises(RecipeError, match=r"recipe.yaml:\d+: sead: unknown setting; did you mean"):
        read_plan(folder)
    recipe.unlink()
    with pytest.raises(
        RecipeError, match=r"the plan cannot be read .*recipe\.yaml.* Remove the folder"
    ):
        read_plan(folder)
