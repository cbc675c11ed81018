"""How fast batches are built, without training.

    python -m benchmarks.race.loader_rate CORPUS [--workers 1 2 8] [--recipes xlm ernie-m ppa]

Prints tokens per second of the main rows, from the second step on.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from benchmarks.race.run import HERE
from isoglot.batching.loader import Loader, LoaderConfig, open_streams
from isoglot.batching.planner import BatchConfig
from isoglot.corpus import Corpus
from isoglot.pretraining.config import objectives_of
from isoglot.recipe import load_recipe
from isoglot.types import Cursor


def tokens_per_second(
    corpus: Corpus, recipe: str, shape: BatchConfig, workers: int, seconds: float
) -> float:
    config = load_recipe(recipe)
    opened = open_streams(
        corpus, config.stages[0].streams, objectives_of(config), row_length=shape.row_length
    )
    loader = Loader(
        corpus, opened, shape, workers=LoaderConfig(num_workers=workers), pad_targets=True
    )
    steps = loader.steps(Cursor())
    next(steps)
    tokens, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        tokens += sum(batch.num_tokens for batch in next(steps))
    return tokens / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path)
    parser.add_argument(
        "--recipes", nargs="*", default=[f"{HERE}/recipes/mlm.yaml", "ernie-m", "ppa"]
    )
    parser.add_argument("--workers", nargs="*", type=int, default=[1, 2])
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--row-length", type=int, default=512)
    parser.add_argument("--seconds", type=float, default=10.0)
    given = parser.parse_args()
    corpus = Corpus.open(given.corpus)
    shape = BatchConfig(rows=given.rows, micro_rows=given.rows, row_length=given.row_length)
    for recipe in given.recipes:
        for workers in given.workers:
            rate = tokens_per_second(corpus, recipe, shape, workers, given.seconds)
            print(
                f"{Path(recipe).stem:<10} {workers:>3} workers  {rate:12,.0f} tokens/s", flush=True
            )


if __name__ == "__main__":
    main()
