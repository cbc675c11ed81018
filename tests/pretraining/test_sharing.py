"""One, two and four processes, and every way to share the model, train the same weights.

In float64, where other orders of summation differ by 1e-12, so that nothing else is missed.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from isoglot.corpus import Corpus
from isoglot.pretraining.checkpoints.checkpoint import Checkpoint
from isoglot.recipe import load_recipe
from tests.pretraining.launching import Forked, losses
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
MORE = ("ablations/metaxlm-kd", "unmt-mass-released")
"""With a teacher; with language-specific parts of a decoder and an LM head of its own."""


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
        assert found[step] == pytest.approx(record, rel=1e-9, abs=1e-9), f"{run} step {step}"
    _assert_close(_checkpoints(run)[-1].read(), _checkpoints(alone)[-1].read(), run)
    files = [file.relative_to(alone) for file in alone.rglob("*.safetensors")]
    exported = [file for file in files if file.parts[0] != "checkpoints"]
    assert exported
    for file in exported:
        _assert_close(load_file(run / file), load_file(alone / file), run / file)


def _assert_close(
    mine: dict[str, torch.Tensor], theirs: dict[str, torch.Tensor], where: Path
) -> None:
    assert mine.keys() == theirs.keys()
    for name, weight in theirs.items():
        assert torch.allclose(mine[name], weight, rtol=1e-8, atol=1e-9), f"{where}: {name}"


def assert_moved(run: Path) -> None:
    """A step changes the weights by much more than is compared."""
    first, *_, last = (one.read() for one in _checkpoints(run))
    tied = ("lm_head.decoder.weight", "embeddings.word_embeddings.weight")
    words = next(name for name in first if name.startswith("encoder.") and name.endswith(tied))
    assert (first[words] - last[words]).abs().max() > 1e-3


def _checkpoints(run: Path) -> list[Checkpoint]:
    return [Checkpoint(one) for one in sorted((run / "checkpoints").glob("step-*"))]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_all_ways_to_share_the_model_train_the_same_weights(world, tmp_path, monkeypatch):
    monkeypatch.chdir(world.folder.parent)
    for name in (*RECIPES, *MORE):
        write_inputs(world, load_recipe(name))
    train(world, tmp_path, 1, (*RECIPES, *MORE), "ddp")
    train(world, tmp_path, 2, (*RECIPES, *MORE), "ddp", "fsdp")
    train(world, tmp_path, 4, RECIPES, "hsdp")
    for name in RECIPES:
        assert_moved(tmp_path / name / "ddp-1")
        assert_same(tmp_path / name / "hsdp-4", tmp_path / name / "ddp-1")
    for name in (*RECIPES, *MORE):
        for shared in ("ddp-2", "fsdp-2"):
            assert_same(tmp_path / name / shared, tmp_path / name / "ddp-1")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mix", "accumulate"),
    [
        ("exporting", "whole"),  # LAMB in the second stage, and every kind of exported folder
        ("seq2seq", "parts"),  # a decoder that is copied from the encoder between stages
        ("stopping", "parts"),  # a queue that is filled first, retrieval, the best checkpoint
    ],
)
def test_stages_optimizers_and_validations_of_a_sharded_model(mix, accumulate, corpus, tmp_path):
    alone, shared = tmp_path / "alone", tmp_path / "shared"
    Forked(corpus.folder, alone, "--mix", mix, "--still").finish()
    sharded = ("--strategy", "fsdp", "--accumulate", accumulate)
    Forked(corpus.folder, shared, "--mix", mix, "--still", *sharded, processes=2).finish()
    assert_same(shared, alone)
