"""Translation without translations on the testbed: does pre-training make it work?

    python -m benchmarks.unmt.testbed WORK [--recipes ...] [--seeds 0 1 2] [--parallel 2]

Text of two generated languages, none of it a translation of the other's, and a test of 300
translations. Each recipe trains a model of a million weights on one core.
`none` is the second stage of `unmt-mass-tiny` alone, from random weights.
"""

from __future__ import annotations

import argparse
import time
from itertools import product
from pathlib import Path

from benchmarks.unmt.cell import run_cells, table
from rich.console import Console

from isoglot.demo.testbed_corpus import named_corpus

WORLD = "testbed-zipf-small-en-es"
LANGUAGES = ("en", "es")
RECIPES = Path(__file__).parent / "recipes"
USUAL = ("unmt-mass-tiny", "none", "unmt-mass-tiny+gc", "unmt-xlm-tiny")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", type=Path)
    parser.add_argument("--recipes", nargs="+", default=list(USUAL))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--parallel", type=int, default=1, help="trainings at a time")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--share", type=float, default=1.0, help="of the steps of every stage")
    parser.add_argument("--set", dest="settings", action="append", default=[])
    arguments = parser.parse_args()
    until = time.time() + 60 * arguments.minutes
    work: Path = arguments.work
    corpus = named_corpus(WORLD, work / "testbed", Console(stderr=True))
    tests = {"-".join(LANGUAGES): work / f"testbed/raw/test/{'-'.join(LANGUAGES)}.tsv"}
    cells = []
    for seed, name in product(arguments.seeds, arguments.recipes):
        own = RECIPES / f"{name}.yaml"
        cells.append(
            {
                "recipe": str(own) if own.is_file() else name,
                "corpus": corpus,
                "tests": tests,
                "folder": work / f"{name}-seed{seed}",
                "seed": seed,
                "settings": arguments.settings,
                "share": arguments.share,
                "until": until,
                "threads": 1,
            }
        )
    run_cells(cells, arguments.parallel)
    print(table(sorted(work.glob("*-seed*"))))


if __name__ == "__main__":
    main()
