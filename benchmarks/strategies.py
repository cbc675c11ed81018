"""DDP, FSDP and HSDP on gloo processes against one process: differences of losses and weights.

    python -m benchmarks.strategies FOLDER [--recipes xlm ppa] [--precision float64 float32]

Each recipe trains two steps a stage of a narrow model without dropout (`tests/pretraining/
sharing.py`) on one process, then with every strategy on two and four. The largest relative
difference of a loss and of a weight is printed for each recipe and strategy. In float32 AdamW turns
the rounding error of a gradient near zero into an update of full size, so float64 shows best that
nothing else differs.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tests.pretraining.launching import Forked, losses
from tests.pretraining.test_sharing import PROGRAM, RECIPES
from tests.recipe.recipe_world import FEW, make_world, write_inputs

from isoglot.corpus import Corpus
from isoglot.pretraining.checkpoints.checkpoint import Checkpoint
from isoglot.recipe import load_recipe

if TYPE_CHECKING:
    import torch

SHARED = {2: ("ddp", "fsdp"), 4: ("ddp", "fsdp", "hsdp")}
"""Processes -> strategies; HSDP needs two groups of two processes."""
_SECONDS = 600.0
"""Longest training of one recipe with the strategies of one number of processes."""


def train(world: Corpus, out: Path, recipe: str, precision: str, processes: int) -> None:
    """Train a recipe with every strategy of a number of processes, one after the other."""
    strategies = SHARED.get(processes, ("ddp",))
    options = ["--recipes", recipe, "--strategies", *strategies, "--precision", precision]
    running = Forked(world.folder, out, *options, processes=processes, program=PROGRAM)
    if set(running.end(_SECONDS)) != {0}:
        raise SystemExit(f"{recipe}, {processes} processes: {running.errors}")


def weights(run: Path) -> dict[str, torch.Tensor]:
    """The weights of the last checkpoint."""
    return Checkpoint(max((run / "checkpoints").glob("step-*"))).read()


def difference_of_losses(run: Path, alone: Path) -> float:
    """The largest relative difference of a number that both runs have recorded."""
    found, expected = losses(run / "metrics.jsonl"), losses(alone / "metrics.jsonl")
    return max(
        abs(found[step][name] - value) / max(abs(value), 1e-12)
        for step, record in expected.items()
        for name, value in record.items()
        if isinstance(value, float) and name.endswith("loss")
    )


def difference_of_weights(run: Path, alone: Path) -> float:
    """The largest difference of a number in the weights, over the largest number of its tensor.

    Tensors below 1e-6 are left out: those with a gradient of zero (the bias of keys in attention),
    whose updates are rounding errors.
    """
    found, expected = weights(run), weights(alone)
    return max(
        float((found[name] - weight).abs().max() / weight.abs().max())
        for name, weight in expected.items()
        if weight.is_floating_point() and weight.numel() and weight.abs().max() > 1e-6
    )


def main() -> None:
    """Train, compare, print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("folder", type=Path, help="runs and results.json; finished runs are kept")
    parser.add_argument("--recipes", nargs="+", default=list(RECIPES))
    parser.add_argument("--precision", nargs="+", default=["float64"])
    given = parser.parse_args()
    folder: Path = given.folder.resolve()
    place = folder / "world"
    world = Corpus.open(place / "corpus") if place.exists() else make_world(place, FEW)
    file = folder / "results.json"
    results: dict[str, list[float]] = json.loads(file.read_text()) if file.exists() else {}
    for precision in given.precision:
        for recipe in given.recipes:
            began, runs = time.monotonic(), folder / precision
            names = [f"{one}-{number}" for number, found in SHARED.items() for one in found]
            if f"{precision} {recipe} {names[-1]}" in results:
                continue
            write_inputs(world, load_recipe(recipe))
            for processes in (1, *SHARED):
                train(world, runs, recipe, precision, processes)
            alone = runs / recipe / "ddp-1"
            for name in names:
                run = runs / recipe / name
                both = [difference_of_losses(run, alone), difference_of_weights(run, alone)]
                results[f"{precision} {recipe} {name}"] = both
                cells = " | ".join(f"{one:.1e}" for one in both)
                print(f"| {precision} | {recipe} | {name} | {cells} |", flush=True)
            file.write_text(json.dumps(results, indent=1), encoding="utf-8")
            print(f"{recipe}: {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
