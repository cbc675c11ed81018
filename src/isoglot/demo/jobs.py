"""The demo's training runs: several processes of one thread each, with progress and time left.

Models as small as the demo's gain nothing from a second thread; a second run in parallel does.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any

from rich.console import Console

from isoglot.demo.testbed_corpus import TEST_PAIRS
from isoglot.locks import lock_file
from isoglot.progress import duration, progress_bars

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

REPORT_SECONDS = 15.0
"""About how long scoring and the report take after the last run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One training run of the demo; `init_from` is the model folder it starts from."""

    label: str
    recipe: str
    corpus: Path
    out: Path
    seed: int
    num_steps: int
    init_from: Path | None = None
    settings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class JobScores:
    """Retrieval scores of a trained model: centered accuracy@1 by language, in percent."""

    label: str
    seed: int
    model: Path
    num_tokens: int
    by_language: dict[str, float]
    """At the best layer, which is chosen on one half of the sentences and scored on the other."""
    uncentered: float
    """The average over languages without centering, at the layer best for that."""

    @property
    def average(self) -> float:
        """Mean over languages."""
        return mean(self.by_language.values())


@contextmanager
def job_runner(
    jobs: list[Job], console: Console
) -> Iterator[Callable[[list[Job]], Iterator[JobScores]]]:
    """A function that trains and scores jobs in parallel and yields scores as they finish.

    Args:
        jobs: all jobs there will be, in order: the time left is that of all of them.
        console: shows a progress bar per job; a log file gets a line at each quarter.
    """
    context = multiprocessing.get_context("spawn")
    num_workers = min(len(jobs), os.cpu_count() or 1)
    with context.Manager() as manager, _Bars(jobs, num_workers, console) as bars:
        queue = manager.Queue()
        listener = threading.Thread(target=bars.listen, args=(queue,), daemon=True)
        listener.start()
        try:
            with ProcessPoolExecutor(num_workers, context, _start_worker, (queue,)) as pool:
                yield lambda some: (
                    future.result()
                    for future in as_completed([pool.submit(_train, job) for job in some])
                )
        finally:
            queue.put(None)
            listener.join(timeout=5)


class _Bars:
    """Progress bars of all jobs, and an estimate of the seconds left."""

    def __init__(self, jobs: list[Job], num_workers: int, console: Console) -> None:
        self._jobs, self._num_workers, self._console = jobs, num_workers, console
        self._left = {job.out.name: job.num_steps for job in jobs}
        self._steps = dict(self._left)
        self._first: dict[str, tuple[float, int]] = {}
        """When the first step of a job was seen, and the steps left then."""
        self._quarters: dict[str, int] = {}
        self._progress = progress_bars(console)
        self._tasks = {
            name: self._progress.add_task(name, total=steps, status="")
            for name, steps in {**self._left, "all": sum(self._left.values())}.items()
        }

    def __enter__(self) -> _Bars:
        self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._progress.stop()

    def listen(self, queue: Any) -> None:
        """Show the steps that the processes report, until a None comes."""
        while (news := queue.get()) is not None:
            self._show(*news)

    def _show(self, name: str, step: int, losses: dict[str, float]) -> None:
        done = step / self._steps[name]
        self._left[name] = self._steps[name] - step
        self._first.setdefault(name, (time.monotonic(), self._left[name]))
        note = "  ".join(f"{objective} {loss:.2f}" for objective, loss in losses.items())
        left = f"about {duration(self._seconds_left())} left"
        self._progress.update(self._tasks[name], completed=step, status=note)
        total = sum(self._steps.values()) - sum(self._left.values())
        self._progress.update(self._tasks["all"], completed=total, status=left)
        if not self._console.is_terminal and int(4 * done) > self._quarters.get(name, 0):
            self._quarters[name] = int(4 * done)
            self._console.print(f"{name:<18} {100 * done:3.0f} %  {note}  ({left})")

    def _seconds_left(self) -> float:
        """The first job runs alone, the others in order on the workers as they become free."""
        now = time.monotonic()
        seen = [
            ((now - began) / (left - self._left[name]), left - self._left[name])
            for name, (began, left) in self._first.items()
            if left > self._left[name]
        ]
        steps = sum(count for _, count in seen) or 1
        per_step = sum(seconds * count for seconds, count in seen) / steps
        first, *rest = (self._left[job.out.name] for job in self._jobs)
        workers = [0] * self._num_workers
        for left in rest:
            workers[workers.index(min(workers))] += left
        return (first + max(workers)) * per_step + REPORT_SECONDS


# --- in the process of a run ------------------------------------------------------------------

_queue: Any = None


def _start_worker(queue: Any) -> None:
    global _queue  # noqa: PLW0603 (an initializer of a pool has no other way)
    _queue = queue
    threading.Thread(target=_exit_with_parent, args=(os.getppid(),), daemon=True).start()
    import torch
    from transformers.utils import logging

    torch.set_num_threads(1)
    logging.disable_progress_bar()


def _exit_with_parent(parent: int) -> None:
    """Exit when the demo's own process is gone, even if it was killed."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def _train(job: Job) -> JobScores:
    """Train, or continue from the newest checkpoint, and score."""
    from isoglot.corpus import Corpus
    from isoglot.pretraining.run import pretrain
    from isoglot.recipe import dump, load_recipe

    recipe = load_recipe(job.recipe, [f"seed={job.seed}", *job.settings])
    if job.init_from is not None:
        recipe = replace(
            recipe, model=replace(recipe.model, init_from=str(job.init_from), size=None)
        )
    done = pretrain(
        recipe,
        Corpus.open(job.corpus),
        job.out,
        resume=job.out.exists(),
        name=recipe.name,
        recipe_text=dump(recipe),
        console=Console(quiet=True),
        on_step=lambda step: _queue.put((job.out.name, step.step, step.losses)),
    )
    assert done.model is not None
    _queue.put((job.out.name, job.num_steps, {}))
    return _score(job, done.model, done.tokens)


def _score(job: Job, model: Path, num_tokens: int) -> JobScores:
    from isoglot.averaging import best_layer
    from isoglot.evaluation.evaluate import evaluate
    from isoglot.evaluation.settings import FeatureConfig

    files = sorted((job.corpus.parent / "raw/test").glob("*.tsv"))
    uncentered, centered = (
        evaluate(model, pairs=files, features=FeatureConfig(limit=TEST_PAIRS, center=center))
        for center in (False, True)
    )
    with lock_file(job.out / "results.json", wait=True):
        uncentered.merged(centered.scores).write(job.out / "results.json")
    best, best_uncentered = (best_layer(found.scores) for found in (centered, uncentered))
    assert best is not None, "retrieval has halves"
    assert best_uncentered is not None
    return JobScores(
        label=job.label,
        seed=job.seed,
        model=model,
        num_tokens=num_tokens,
        by_language={name.split("-")[1]: 100 * v for name, v in best.by_language.items()},
        uncentered=100 * best_uncentered.average,
    )
