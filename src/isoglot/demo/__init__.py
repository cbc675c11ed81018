"""The demo: a generated world, a shared MLM checkpoint, and from it MLM, MLM + TLM and PPA.

    testbed → prepare → demo/checkpoint → demo/mlm, demo/mlm-tlm, demo/ppa, three seeds
            → retrieval → table → report.html

All continuations see the same text and translations and the same number of tokens; they differ in
what is made of a translation: two texts (MLM), one text (TLM), or that and two sentences to be
found by each other (PPA, which gives each objective's mean loss the same weight, where the others
weigh every predicted token alike). Runs are one thread each, as many side by side as there are
cores: models this small gain nothing from a second thread.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from isoglot.demo.bars import bars_of
from isoglot.demo.jobs import Job, Outcome, run_jobs
from isoglot.demo.page import write_page
from isoglot.demo.table import VARIANTS, print_table
from isoglot.demo.world import generated_corpus

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

LANGUAGES = ("en", "es", "ru", "ar")
SEEDS = (1, 2, 3)


def demo(folder: Path, terminal: Console, *, seeds: tuple[int, ...] = SEEDS) -> list[Outcome]:
    """Run the demo into a folder and print its table; gives the outcomes, checkpoint first."""
    began = time.monotonic()
    corpus = generated_corpus(
        folder,
        terminal,
        languages=LANGUAGES,
        sentences=6000,
        pairs=4000,
        concepts=60,
        entities=20,
        pages=0,
        vocabulary=1600,
    )
    base = Job(
        label="checkpoint",
        recipe="demo/checkpoint",
        corpus=corpus,
        out=folder / "checkpoint",
        seed=0,
        start=None,
    )
    jobs = [
        Job(
            label=label,
            recipe=recipe,
            corpus=corpus,
            out=folder / f"{recipe.removeprefix('demo/')}-seed{seed}",
            seed=seed,
            start=base.out / "model",
        )
        for seed in seeds
        for label, recipe in VARIANTS.items()
    ]
    outcomes: list[Outcome] = []
    with bars_of(terminal, [job.out.name for job in (base, *jobs)]) as told:
        outcomes += run_jobs([base], told)
        outcomes += run_jobs(jobs, told)
    print_table(outcomes, terminal, time.monotonic() - began)
    write_page(outcomes, corpus, folder / "report.html", terminal)
    return outcomes


__all__ = ["demo", "generated_corpus"]
