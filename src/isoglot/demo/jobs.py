"""Training runs side by side, each in a process of its own with one thread.

Models as small as the demo's gain nothing from a second thread; a second run does.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean
from typing import Any

from rich.console import Console

from isoglot.demo.world import TEST_PAIRS


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One training run of the demo, to be run in a process of its own."""

    label: str
    recipe: str
    corpus: Path
    out: Path
    seed: int
    start: Path | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a run reached: centred accuracy@1 by language, in percent, and the layer read."""

    label: str
    seed: int
    model: Path
    tokens: int
    layer: int
    by_language: dict[str, float]
    plain: float
    """The average over languages without centring, at the layer best for that."""

    @property
    def average(self) -> float:
        """Mean over languages."""
        return mean(self.by_language.values())


def run_jobs(jobs: list[Job], told: Any) -> list[Outcome]:
    """Run jobs side by side, one thread each."""
    context = multiprocessing.get_context("spawn")
    side_by_side = min(len(jobs), os.cpu_count() or 1)
    with ProcessPoolExecutor(side_by_side, context, _listen, (told,)) as pool:
        return list(pool.map(_train, jobs))


_told: Any = None


def _listen(told: Any) -> None:
    """In a run's process: where to tell how far it is."""
    global _told  # noqa: PLW0603 (a pool's processes are set up in no other way)
    _told = told
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    import torch
    from transformers.utils import logging

    torch.set_num_threads(1)
    logging.disable_progress_bar()


def _end_with(parent: int) -> None:
    """End when the demo does, however it ends: nobody would look at what is trained on."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def _train(job: Job) -> Outcome:
    """Train and score one model, in a process of its own."""
    from isoglot.corpus import Corpus
    from isoglot.pretrain.run import pretrain
    from isoglot.recipe import dump, load_recipe

    recipe = load_recipe(job.recipe, [f"seed={job.seed}"])
    if job.start is not None:
        recipe = replace(recipe, model=replace(recipe.model, start=str(job.start), size=None))
    corpus = Corpus.open(job.corpus)
    steps = sum(stage.steps or 0 for stage in recipe.stages)
    done = pretrain(
        recipe,
        corpus,
        job.out,
        resume=job.out.exists(),
        name=recipe.name,
        recipe_text=dump(recipe),
        terminal=Console(quiet=True),
        on_step=lambda step: _told.put((job.out.name, step.step / steps, step.losses)),
    )
    assert done.model is not None
    return _score(job, done.model, done.tokens)


def _score(job: Job, model: Path, tokens: int) -> Outcome:
    from isoglot.evaluate import best_layer
    from isoglot.evaluate.run import evaluate_retrieval

    files = sorted((job.corpus.parent / "raw/test").glob("*.tsv"))
    plain, centred = (
        evaluate_retrieval(model, files, most=TEST_PAIRS, center=center) for center in (False, True)
    )
    replace(plain, scores=plain.scores + centred.scores).write(job.out / "results.json")
    layer, values = best_layer(centred.scores)
    return Outcome(
        label=job.label,
        seed=job.seed,
        model=model,
        tokens=tokens,
        layer=layer,
        by_language={name.split("-")[1]: 100 * value for name, value in values.items()},
        plain=100 * mean(best_layer(plain.scores)[1].values()),
    )
