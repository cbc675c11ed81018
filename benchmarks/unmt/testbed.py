"""Translation without translations on the testbed: does pre-training make it work?

    python -m benchmarks.unmt.testbed WORK [--recipes ...] [--seeds 0] [--minutes 200]

Text of two generated languages, none of it a translation of the other's, and a test of 300
translations. Each recipe trains a model of a million weights on one core.
`none` is the second stage of `unmt-mass-tiny` alone, from random weights.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch
from benchmarks.unmt.cell import run_cell, table
from rich.console import Console
from transformers.utils import logging

from isoglot.demo import generated_corpus

LANGUAGES = ("en", "es")
RECIPES = Path(__file__).parent / "recipes"
USUAL = ("unmt-mass-tiny", "none", "unmt-mass-tiny+gc", "unmt-xlm-tiny")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", type=Path)
    parser.add_argument("--recipes", nargs="+", default=list(USUAL))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--share", type=float, default=1.0, help="of the steps of every stage")
    parser.add_argument("--set", dest="settings", action="append", default=[])
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    logging.disable_progress_bar()
    until = time.monotonic() + 60 * arguments.minutes
    work: Path = arguments.work
    corpus = make_corpus(work)
    tests = {"-".join(LANGUAGES): work / f"testbed/raw/test/{'-'.join(LANGUAGES)}.tsv"}
    for seed in arguments.seeds:
        for name in arguments.recipes:
            own = RECIPES / f"{name}.yaml"
            recipe = str(own) if own.is_file() else name
            folder = work / f"{name}-seed{seed}"
            if not run_cell(
                recipe,
                corpus,
                tests,
                folder,
                seed=seed,
                settings=arguments.settings,
                share=arguments.share,
                until=until,
            ):
                return
    print(table(sorted(work.glob("*-seed*"))))


def make_corpus(work: Path) -> Path:
    """The corpus that `unmt-mass-tiny` and its kin are tuned for."""
    return generated_corpus(
        work / "testbed",
        Console(stderr=True),
        languages=LANGUAGES,
        sentences=20_000,
        pairs=1,
        concepts=20,
        entities=12,
        uneven=True,
        vocabulary=1000,
    )


if __name__ == "__main__":
    main()
