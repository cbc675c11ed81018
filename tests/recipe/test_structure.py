"""Settings from documents: strictly, with all faults at once, each with its place and path."""

from __future__ import annotations

import difflib
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from isoglot.errors import RecipeError
from isoglot.objectives.mlm import MLM
from isoglot.pretraining.config import Recipe
from isoglot.recipe import dump, load_prepare, load_recipe
from isoglot.recipe.document import Document
from isoglot.recipe.structure import plain, structure

SMALL = """\
name: small
model: {size: tiny}
stages:
  - steps: 3
    streams:
      text: {objectives: [mlm]}
"""


@pytest.fixture
def load(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def load(text, *changes):
        Path("a.yaml").write_text(text, encoding="utf-8")
        return load_recipe("a.yaml", changes)

    return load


def refusal(action, *arguments) -> str:
    with pytest.raises(RecipeError) as caught:
        action(*arguments)
    return str(caught.value)


def test_all_faults_at_once(load):
    text = """\
extends: xlm
model: {sise: small, dropout: "0.2"}
batch:
  row_length: 256.5
  rows: true
optimizer: {betas: [0.9], schedule: liner}
objectives:
  mlm: {masking: {unit: wrod}}
  mml: {}
loader: many
stages:
  - streams:
      text: {objectives: [mlm, tln], share: a half}
      parallel: {objectives: tlm}
      pictures: {objectives: [mlm]}
"""
    assert (
        refusal(load, text, "logging.trackers=tensorboard")
        == """\
14 errors in the settings:
  settings: logging.trackers: expected a list, got 'tensorboard'
  a.yaml:2: model.dropout: expected a number, got '0.2'
  a.yaml:2: model.sise: unknown setting; did you mean 'size'?
  a.yaml:4: batch.row_length: expected a whole number, got 256.5
  a.yaml:5: batch.rows: expected a whole number, got True
  a.yaml:6: optimizer.betas: expected 2 values, got 1
  a.yaml:6: optimizer.schedule: 'liner' is not possible; did you mean 'linear'?
  a.yaml:8: objectives.mlm.masking.unit: 'wrod' is not possible; did you mean 'word'?
  a.yaml:9: objectives.mml: there is no objective 'mml': did you mean 'mlm'?
  a.yaml:10: loader: expected settings (key: value), got 'many'
  a.yaml:13: stages.0.streams.text.objectives.1: there is no objective 'tln': did you mean 'tlm'?
  a.yaml:13: stages.0.streams.text.share: expected a number, got 'a half'
  a.yaml:14: stages.0.streams.parallel.objectives: expected a list, got 'tlm'
  a.yaml:15: stages.0.streams.pictures: there is no stream 'pictures'; known: \
descriptions, mentions, parallel, text, triples"""
    )


def test_one_fault_is_said_to_be_one(load):
    assert refusal(load, SMALL, "seeed=1") == (
        "an error in the settings:\n  settings: seeed: unknown setting; did you mean 'seed'?"
    )


def test_an_empty_recipe_says_what_is_needed(load):
    assert (
        refusal(load, "")
        == """\
3 errors in the settings:
  a.yaml:1: name: this setting is needed and has no default
  a.yaml:1: model: this setting is needed and has no default
  a.yaml:1: stages: this setting is needed and has no default"""
    )


def test_numbers(load):
    recipe = load(SMALL, "optimizer.learning_rate=1e-4", "optimizer.weight_decay=1")
    assert recipe.optimizer.learning_rate == 1e-4
    assert recipe.optimizer.weight_decay == 1.0
    assert isinstance(recipe.optimizer.weight_decay, float)
    assert "expected a number, got '0.2'" in refusal(load, SMALL, "optimizer.warmup_ratio='0.2'")
    assert "expected a number, got True" in refusal(load, SMALL, "optimizer.warmup_ratio=true")


def test_none_where_it_may_be(load):
    assert load(SMALL, "optimizer.max_grad_norm=null").optimizer.max_grad_norm is None
    assert "expected a number, got None" in refusal(load, SMALL, "optimizer.weight_decay=null")


def test_a_number_or_a_name_is_said_to_be_both(load):
    assert load(SMALL, "batch.micro_rows=auto").batch.micro_rows == "auto"
    wrong = refusal(load, SMALL, "batch.micro_rows=0.5")
    assert "batch.micro_rows: expected a whole number or auto, got 0.5" in wrong
    assert "auto" in refusal(load, SMALL, "batch.micro_rows=atuo")


def test_a_stage_can_have_its_own_optimizer(load):
    recipe = load(SMALL, "stages.0.optimizer.learning_rate=1")
    assert recipe.stages[0].optimizer.learning_rate == 1.0
    assert "stages.0.optimizer.leaning_rate: unknown setting; did you mean 'learning_rate'?" in (
        refusal(load, SMALL, "stages.0.optimizer.leaning_rate=1")
    )


def test_an_objective_must_be_able_to_read_its_stream(load):
    assert refusal(load, SMALL, "stages.0.streams.text.objectives=[tlm]") == (
        "an error in the settings:\n  settings: stages.0.streams.text.objectives.0: "
        "the objective 'tlm' reads parallel, not text"
    )


def test_two_streams_of_one_kind(load, tmp_path):
    text = SMALL + "      more: {kind: text, objectives: [mlm], languages: [no, en]}\n"
    recipe = load(text)
    assert [s.kind for s in recipe.stages[0].streams.values()] == ["text", "text"]
    assert recipe.stages[0].streams["more"].languages == ("no", "en")
    assert load(dump(recipe)) == recipe


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A module outside the package with an objective, and something that is none."""
    (tmp_path / "their_objectives.py").write_text(
        "from dataclasses import dataclass\n"
        "from typing import ClassVar\n"
        "from isoglot.objectives.mlm import MLM\n"
        "@dataclass(frozen=True, slots=True, kw_only=True)\n"
        "class Louder(MLM):\n"
        "    name: ClassVar[str] = 'louder'\n"
        "    volume: int = 1\n"
        "class Nothing: pass\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("their_objectives", None)


@pytest.mark.usefixtures("elsewhere")
class TestObjectivesFromElsewhere:
    def test_by_import_path(self, load):
        text = SMALL.replace("[mlm]", "['their_objectives:Louder']")
        recipe = load(text + "objectives: {'their_objectives:Louder': {volume: 11}}\n")
        objective = recipe.objectives["their_objectives:Louder"]
        assert isinstance(objective, MLM)
        assert getattr(objective, "volume", None) == 11
        assert load(dump(recipe)) == recipe

    def test_its_settings_are_checked_too(self, load):
        text = SMALL + "objectives: {'their_objectives:Louder': {volum: 11}}\n"
        assert "volum: unknown setting; did you mean 'volume'?" in refusal(load, text)

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("their_objectives:Loud", "their_objectives.py has no 'Loud'; did you mean 'Louder'?"),
            ("nowhere.at_all:X", "cannot be imported: No module named 'nowhere'"),
            ("their_objectives:Nothing", "is not a subclass of isoglot.Objective"),
        ],
    )
    def test_what_is_not_there(self, load, name, message):
        text = SMALL.replace("[mlm]", f"['{name}']")
        assert message in refusal(load, text)


def test_prepare_files(tmp_path):
    file = tmp_path / "prepare.yaml"
    file.write_text("sources:\n  news:\n    files: {no: [raw/*.txt]}\n", encoding="utf-8")
    config = load_prepare(file, ["heldout_share=0.1"])
    assert config.sources["news"].files == {"no": ("raw/*.txt",)}
    assert config.heldout_share == 0.1
    assert refusal(
        load_prepare, file, ["sources.news.files=raw.txt", "clean.max_length_ration=1"]
    ) == (
        "2 errors in the settings:\n"
        "  --set: sources.news.files: expected names with values (name: value), got 'raw.txt'\n"
        "  --set: clean.max_length_ration: unknown setting; did you mean 'max_length_ratio'?"
    )
    assert "sources.news.files.no: expected a list, got 'raw.txt'" in (
        refusal(load_prepare, file, ["sources.news.files.no=raw.txt"])
    )


def _paths(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths of all settings with names long enough to be misspelled recognizably."""
    if isinstance(data, list):
        return [p for i, item in enumerate(data) for p in _paths(item, (*path, i))]
    if not isinstance(data, dict):
        return []
    found = [p for key, value in data.items() for p in _paths(value, (*path, key))]
    if path[-1:] in {("streams",), ("objectives",), ("differs",)}:
        return found  # names of classes, whose message is another, and free names
    return found + [(*path, key) for key in data if len(key) >= 4]


XLM = plain(load_recipe("xlm"))


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_any_misspelling_is_found_and_its_name_suggested(data):
    path = data.draw(st.sampled_from(_paths(XLM)))
    right = path[-1]
    # not the first letter: without theirs, `batch` and `watch` are one word
    place = data.draw(st.integers(1, len(right) - 1))
    wrong = data.draw(
        st.sampled_from(
            [
                right[:place] + right[place + 1 :],
                right[:place] + right[place : place + 2][::-1] + right[place + 2 :],
                right[:place] + data.draw(st.sampled_from("abcxyz_")) + right[place:],
            ]
        )
    )
    changed = yaml.safe_load(yaml.safe_dump(XLM))
    around = changed
    for key in path[:-1]:
        around = around[key]
    assume(wrong not in around)
    # `heasd` is as near to `head` as to `heads`: any name as near as the right one will do
    near = difflib.SequenceMatcher(None, wrong, right).ratio()
    assume(
        all(difflib.SequenceMatcher(None, wrong, k).ratio() < near for k in around if k != right)
    )
    around[wrong] = around.pop(right)
    message = refusal(structure, Document(data=changed, places={(): "a.yaml:1"}), Recipe)
    dotted = ".".join(map(str, (*path[:-1], wrong)))
    assert f"a.yaml:1: {dotted}: unknown setting; did you mean {right!r}?" in message


@pytest.mark.parametrize(
    "name",
    ["../../x", "/x/y", "a/../b", "..", ".hidden", "a//b", "", "a\nb", "-x", "a\\b", "x" * 101],
)
def test_names_that_lead_out_of_their_folder_are_refused(name):
    text = json.dumps(name)
    for setting in (f"name={text}", f"export.fold_languages=[{text}]"):
        with pytest.raises(RecipeError, match=r"cannot be a name\. Folders are called by it"):
            load_recipe("tiny", [setting])
    streams = {name: {"kind": "text", "objectives": ["mlm"]}}
    with pytest.raises(RecipeError, match=r"streams: .* cannot be a name"):
        load_recipe("tiny", [f"stages=[{json.dumps({'steps': 1, 'streams': streams})}]"])


def test_names_of_recipes_objectives_and_streams_of_ones_own():
    for name in ("mine", "ablations/mlm-gc-lambda0.1", "mlm-gc+tlm", "modèle 2", "a@b:c,d=e"):
        assert load_recipe("tiny", [f"name={json.dumps(name)}"]).name == name


def test_text_in_the_place_of_a_prepare_file_is_told_what_is_expected(tmp_path):
    file = tmp_path / "en.txt"
    file.write_text("A sentence: with a colon: and another\n")
    said = refusal(load_prepare, file)
    assert f"{file} is not a prepare file" in said
    assert "docs/prepare.md" in said
    # what it proposes can be used as it is
    (tmp_path / "prepare.yaml").write_text(said.partition("\n")[2].rpartition("\n")[0], "utf-8")
    (source,) = load_prepare(tmp_path / "prepare.yaml").sources.values()
    assert source.files == {"en": (str(file),)}
    assert f"[{tmp_path}/*.txt]" in refusal(load_prepare, tmp_path)
    (tmp_path / "en-sw.tsv").write_text("one\tmoja\n", "utf-8")
    assert "kind: pairs, format: tsv, files: {en-sw:" in refusal(
        load_prepare, tmp_path / "en-sw.tsv"
    )
    file.write_text("Chapter: a line that YAML reads as a setting\n", "utf-8")
    assert f"{file} is not a prepare file" in refusal(load_prepare, file)
    wrong = tmp_path / "prepare.yaml"
    wrong.write_text("sources: a: b\n")
    assert "is not a prepare file" not in refusal(load_prepare, wrong)
