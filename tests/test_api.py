"""The public interface: `import isoglot` is light, and everything it offers is there."""

import subprocess
import sys
from typing import Any

import isoglot
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
    for name in ("prepare", "pretrain", "evaluate", "finetune"):
        function = getattr(isoglot, name)
        assert f"isoglot.{name}(" in function.__doc__, "an example"
        assert callable(function), "a module of this name would hide the function"


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
