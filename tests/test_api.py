"""The public interface: `import isoglot` is light, and everything it offers is there."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import isoglot
from isoglot.adaptation.request import AdaptConfig
from isoglot.errors import IsoglotError
from isoglot.recipe import load_recipe


def modules_after(statement: str) -> list[str]:
    code = f"{statement}\nimport sys\nprint(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return run.stdout.split()


def test_import_isoglot_loads_no_heavy_package():
    loaded = modules_after("import isoglot")
    assert not {"torch", "transformers", "pyarrow", "numpy", "typer"} & set(loaded)
    assert [name for name in loaded if name.startswith("isoglot")] == ["isoglot"]


def test_an_objective_loads_neither_readers_nor_other_objectives():
    loaded = [name for name in modules_after("import isoglot.objectives.mlm") if "isoglot" in name]
    assert len(loaded) <= 50, loaded
    assert not any("corpus.read" in name or "objectives.moco" in name for name in loaded)


def test_every_public_name_is_there_and_documented():
    assert sorted(isoglot.__all__) == isoglot.__all__
    for name in isoglot.__all__:
        assert getattr(isoglot, name).__doc__, name
    for name in ("adapt", "prepare", "pretrain", "evaluate", "export_model", "finetune", "mine"):
        function = getattr(isoglot, name)
        assert f"isoglot.{name}(" in function.__doc__, "an example"
        assert callable(function), "a module of this name would hide the function"


def test_adapt_takes_names_settings_or_a_file(monkeypatch, tmp_path):
    """What the function itself does is in tests/adaptation; this is what it is asked for."""
    asked: list[AdaptConfig] = []
    monkeypatch.setattr(
        "isoglot.adaptation.run.adapt", lambda config, *_, **__: asked.append(config)
    )
    text, pairs = {"sw": "sw.txt", "en": ["a.txt", "b.txt"]}, {"en-sw": "p.tsv"}
    isoglot.adapt("models/mine", tmp_path, text=text, pairs=pairs, hours=2, vocabulary="keep")
    (tmp_path / "adapt.yaml").write_text("encoder: models/mine\ntext: {sw: sw.txt}\nheldout: 50\n")
    isoglot.adapt(tmp_path / "adapt.yaml", tmp_path, heldout=70)
    isoglot.adapt(asked[0], tmp_path, hours=3)
    assert asked[0].text == {"sw": ("sw.txt",), "en": ("a.txt", "b.txt")}
    assert asked[0].pairs == {"en-sw": ("p.tsv",)}
    assert (asked[0].hours, asked[0].vocabulary) == (2, "keep")
    assert (asked[1].text, asked[1].heldout) == ({"sw": ("sw.txt",)}, 70)
    assert asked[2] == replace(asked[0], hours=3)
    isoglot.adapt("models/mine", tmp_path, text={"sw": Path("sw.txt"), "en": [Path("a"), "b"]})
    assert asked[3].text == {"sw": ("sw.txt",), "en": ("a", "b")}
    wrong: Any = "sw.txt"
    said = r"""text: 'sw.txt' names no language. Write text=\{"sw": "FILE"\}."""
    with pytest.raises(IsoglotError, match=said):
        isoglot.adapt("models/mine", tmp_path, text=wrong)
    with pytest.raises(IsoglotError, match=r"adapt has no setting 'hour': did you mean 'hours'\?"):
        isoglot.adapt("models/mine", tmp_path, text=text, hour=2)


def test_a_recipe_can_be_trained_by_path_or_value(corpus, tmp_path):
    few = [
        "stages.0.steps=2",
        "batch.rows=2",
        "batch.micro_rows=2",
        "batch.row_length=96",
        "model.hidden_size=32",
        "model.num_heads=2",
        "model.num_layers=1",
    ]
    steps: list[Any] = []
    first = isoglot.pretrain("tiny", corpus, tmp_path / "one", settings=few, on_step=steps.append)
    second = isoglot.pretrain(load_recipe("tiny", few), corpus.folder, tmp_path / "two")
    assert [step.step for step in steps] == [1, 2]
    assert first.model is not None
    assert first.model == tmp_path / "one/model"
    assert second.model is not None
    weights = "model.safetensors"
    assert (first.model / weights).read_bytes() == (second.model / weights).read_bytes()


def test_finetune_takes_one_name_as_well_as_several(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "bert"}', encoding="utf-8")
    with pytest.raises(IsoglotError, match="no such folder") as error:
        isoglot.finetune(tmp_path, "xnli", tmp_path / "nothing", languages="sw")
    assert "isoglot fetch xnli" in str(error.value)
