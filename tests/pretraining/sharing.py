"""Built-in recipes, trained by processes that share the model in several ways, one after the other.

`python -m tests.pretraining.sharing CORPUS OUT --recipes xlm ppa --strategies ddp fsdp`, run by
each process, trains OUT/xlm/ddp-2, ... The recipes are those of `tests/recipe/recipe_world.py`: a
few steps of a narrow model, here in float64 (or `--precision float32`) and without dropout.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from isoglot.batching.planner import BatchConfig
from isoglot.corpus import Corpus
from isoglot.pretraining.checkpoints.checkpoint import CheckpointConfig
from isoglot.pretraining.config import Recipe
from isoglot.pretraining.optimizers.optimizer import OptimizerConfig
from isoglot.pretraining.processes.distributed import DistributedConfig
from isoglot.pretraining.run import pretrain
from isoglot.recipe import load_recipe
from tests.pretraining import driver
from tests.recipe import recipe_world


def sized(name: str) -> Recipe:
    """A built-in recipe of two short steps a stage, of four micro-batches each.

    Its learning rate is high from the first step on: a wrong gradient leads elsewhere.
    """
    recipe: Any = driver.still(recipe_world.small(load_recipe(name)))

    def fast(settings: OptimizerConfig) -> OptimizerConfig:
        return replace(settings, learning_rate=1e-2, warmup_steps=0, warmup_ratio=None)

    found: Recipe = replace(
        recipe,
        batch=BatchConfig(row_length=recipe_world.ROW_LENGTH, rows=16, micro_rows=4),
        optimizer=fast(recipe.optimizer),
        stages=tuple(
            replace(stage, optimizer=stage.optimizer and fast(stage.optimizer))
            for stage in recipe.stages
        ),
        checkpoint=CheckpointConfig(every_steps=1, keep=10),
    )
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("corpus", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--recipes", nargs="+", required=True)
    parser.add_argument("--strategies", nargs="+", default=["ddp"])
    parser.add_argument("--precision", choices=("float64", "float32"), default="float64")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.precision == "float64":
        driver.compute_in_float64()
    corpus = Corpus.open(arguments.corpus)
    os.chdir(corpus.folder.parent)  # the recipes' models are there
    world = int(os.environ.get("WORLD_SIZE", "1"))
    for name in arguments.recipes:
        for strategy in arguments.strategies:
            shared = DistributedConfig(
                strategy=strategy, shard_processes=2 if strategy == "hsdp" else None
            )
            recipe = replace(sized(name), distributed=shared)
            folder = arguments.out / name / f"{strategy}-{world}"
            pretrain(recipe, corpus, folder, console=Console(quiet=True))


if __name__ == "__main__":
    main()
