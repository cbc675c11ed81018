"""One, two and four processes, and every way to share the model, train the same weights.

In float64, where other orders of summation differ by 1e-12, so that nothing else is missed.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from isoglot.corpus import Corpus
from isoglot.pretraining.checkpoint import Checkpoint, folder_of_step
from isoglot.recipe import load_recipe
from tests.pretraining.processes import Forked, losses
from tests.recipe.recipe_world import FEW, make_world, write_inputs

PROGRAM = "tests.pretraining.sharing"
RECIPES = (
    "xlm",
    "ernie-m",
    "ppa",
    "ppa-in-batch",
    "xlm-k",
    "mlm-gc",
    "metaxlm",
    "unmt-mass",
)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return make_world(tmp_path_factory.mktemp("world"), FEW)


def train(world: Corpus, out: Path, processes: int, names: tuple[str, ...], *strategies: str):
    options = ("--recipes", *names, "--strategies", *strategies)
    Forked(world.folder, out, *options, processes=processes, program=PROGRAM).finish()


def assert_same(run: Path, alone: Path) -> None:
    """The same losses in every step, and the same weights after the last."""
    found, expected = losses(run / "metrics.jsonl"), losses(alone / "metrics.jsonl")
    assert found.keys() == expected.keys()
    for step, record in expected.items():
        # held-out examples that are compared with each other are so in each process
        trained = {name: v for name, v in record.items() if not name.startswith("valid/")}
        assert {name: found[step][name] for name in trained} == pytest.approx(
            trained, rel=1e-9, abs=1e-9
        ), f"{run} step {step}"
    before, theirs = (_weights(alone, step) for step in (1, max(expected)))
    mine = _weights(run, max(expected))
    assert mine.keys() == theirs.keys()
    for name, weight in theirs.items():
        assert torch.allclose(mine[name], weight, rtol=1e-8, atol=1e-9), f"{run}: {name}"
    words = "encoder.model.lm_head.decoder.weight"
    assert (theirs[words] - before[words]).abs().max() > 1e-3, "the weights have moved"


def _weights(run: Path, step: int) -> dict[str, torch.Tensor]:
    return Checkpoint(folder_of_step(run / "checkpoints", step)).read()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_all_ways_to_share_the_model_train_the_same_weights(world, tmp_path, monkeypatch):
    monkeypatch.chdir(world.folder.parent)
    for name in RECIPES:
        write_inputs(world, load_recipe(name))
    train(world, tmp_path, 1, RECIPES, "ddp")
    train(world, tmp_path, 2, RECIPES, "ddp", "fsdp")
    train(world, tmp_path, 4, RECIPES, "hsdp")
    for name in RECIPES:
        for shared in ("ddp-2", "fsdp-2", "hsdp-4"):
            assert_same(tmp_path / name / shared, tmp_path / name / "ddp-1")
