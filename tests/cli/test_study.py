"""`isoglot study`: a recipe and its control, trained, scored and compared."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import FEW_STEPS

SHORT = (
    "--protocol",
    "testbed",
    "--set-finetune",
    "epochs=1",
    "--set-finetune",
    "max_train_examples=16",
)


def test_a_study_of_a_recipe_and_its_control(isoglot, workdir, corpus):
    (workdir / "few.yaml").write_text(FEW_STEPS, encoding="utf-8")
    said = isoglot(
        "study", "few.yaml", "--control", "--corpus", corpus.folder, "--seeds", 1, "--out", "study",
        "--tasks", "testbed-sentiment", "--languages", "en,sw", *SHORT,
    )  # fmt: skip
    assert said.code == 0, said.err
    assert [line.split(" | ")[0] for line in said.out.splitlines()[2:4]] == [
        "| few-control",
        "| few",
    ]
    results = json.loads(Path("study/few-seed0/results.json").read_text(encoding="utf-8"))
    assert {score["language"] for score in results["scores"]} == {"en", "sw"}
    assert Path("study/study.md").read_text(encoding="utf-8") in said.out
