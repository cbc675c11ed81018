"""The runs of a study: pre-train and score one recipe with one seed, several runs side by side.

A run's folder holds `corpus.json` beside the run's own files: fingerprints of the data that its
streams read and of the weights that it began with. A finished run is taken as it is only if
recipe, data and initial weights are the same.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from isoglot import json_text
from isoglot.atomic import write_json
from isoglot.corpus import Corpus
from isoglot.errors import IsoglotError, RecipeError
from isoglot.evaluation.evaluate import evaluate_tasks
from isoglot.evaluation.settings import FeatureConfig
from isoglot.finetuning.finetune import finetune_tasks
from isoglot.finetuning.settings import FinetuneRequest
from isoglot.folders import model_folder
from isoglot.model_results import fingerprint
from isoglot.pretraining.config import Recipe, data_fingerprint
from isoglot.pretraining.run import pretrain
from isoglot.progress import duration
from isoglot.recipe import dump
from isoglot.tasks import FINE_TUNED_KINDS, find_task
from isoglot.tasks.base import DataFolders

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from isoglot.corpus.engine.runner import Progress
    from isoglot.results import Score

_CORPUS = "corpus.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One run of a study: a recipe with its seed, its corpus and folder, and what to score."""

    recipe: Recipe
    corpus: Path
    folder: Path
    tasks: tuple[str, ...]
    data: DataFolders
    request: FinetuneRequest

    @property
    def is_finished(self) -> bool:
        """Whether there is nothing left to pre-train."""
        return is_finished(self.folder)


def is_finished(run: Path) -> bool:
    """Whether a run has exported its model."""
    return (run / "model/config.json").is_file()


def run_jobs(
    jobs: Sequence[Job], num_parallel: int, console: Console, progress: Progress | None = None
) -> list[tuple[Score, ...]]:
    """Run jobs, `num_parallel` at a time; returns the scores of each.

    Several at a time run in processes of their own, with the GPUs shared out among them and their
    output in RUN.log beside each run's folder.
    """
    for job in jobs:
        check_job(job)
    clock = _Clock(jobs, num_parallel, console)
    found: list[tuple[Score, ...]] = []
    if num_parallel == 1:
        for job in jobs:
            clock.start(job)
            found.append(run_job(job, console, progress))
            clock.finish(job)
        return found
    context = multiprocessing.get_context("spawn")
    devices = context.SimpleQueue()
    for number in range(num_parallel):
        devices.put(number)
    threads = max(1, (os.cpu_count() or 1) // num_parallel)
    with ProcessPoolExecutor(num_parallel, context, _start_worker, (devices, threads)) as pool:
        futures = [pool.submit(_run_in_process, job) for job in jobs]
        waiting = dict(zip(futures, jobs, strict=True))
        try:
            for future in as_completed(futures):
                future.result()
                clock.finish(waiting[future])
        finally:
            pool.shutdown(cancel_futures=True)
        return [future.result() for future in futures]


def check_job(job: Job) -> None:
    """Refuse a folder that holds a run of another recipe, corpus or initial model.

    A run that ended before its first checkpoint, as after an error in its settings, is begun anew.

    Raises:
        RecipeError: one of the three is another.
    """
    if not job.is_finished and not any((job.folder / "checkpoints").glob("step-*")):
        return
    file = job.folder / "recipe.yaml"
    if file.is_file() and file.read_bytes() != dump(job.recipe).encode():
        raise RecipeError(
            f"{job.folder} has a run of {job.recipe.name} with other settings ({file}). Choose "
            "another folder with --out, or remove it."
        )
    file = job.folder / _CORPUS
    if not file.is_file() and job.is_finished:
        raise RecipeError(
            f"{job.folder} does not say which corpus its run was trained on ({file} is missing). "
            "Choose another folder with --out, or remove it."
        )
    if file.is_file():
        try:
            trained_on = json_text.parse(file.read_text(encoding="utf-8"))
            same = trained_on["fingerprint"] == _fingerprint(job)
            same_start = trained_on["init_from"] == _start_fingerprint(job)
        except (ValueError, KeyError, TypeError):
            raise RecipeError(f"{file} is damaged. Remove {job.folder} to run it again.") from None
        if not same:
            raise RecipeError(
                f"{job.folder} has a run of {job.recipe.name} that was trained on another corpus "
                f"({trained_on.get('folder')}) than {job.corpus}. Choose another folder with "
                "--out, or remove it."
            )
        if not same_start:
            raise RecipeError(
                f"{job.folder} has a run of {job.recipe.name} that began with other weights than "
                f"those of {job.recipe.model.init_from} now. Choose another folder with --out, or "
                "remove it."
            )


def run_job(job: Job, console: Console, progress: Progress | None = None) -> tuple[Score, ...]:
    """Pre-train unless finished, then score; returns all scores of the run's results file.

    The folder has been checked (`check_job`).
    """
    model = job.folder / "model"
    if not job.is_finished:
        resume = job.folder.exists()
        job.folder.mkdir(parents=True, exist_ok=True)
        content = {
            "fingerprint": _fingerprint(job),
            "folder": str(job.corpus),
            "init_from": _start_fingerprint(job),
        }
        write_json(job.folder / _CORPUS, content)
        outcome = pretrain(
            job.recipe,
            Corpus.open(job.corpus),
            job.folder,
            resume=resume,
            name=job.recipe.name,
            recipe_text=dump(job.recipe),
            console=console,
        )
        if outcome.model is None:
            raise IsoglotError(f"{job.folder} was stopped. Repeat the command to continue.")
        model = outcome.model
    out = job.folder / "results.json"
    return score_model(model, job.tasks, job.data, job.request, out, progress)


def score_model(
    model: Path,
    tasks: Sequence[str],
    data: DataFolders,
    request: FinetuneRequest,
    out: Path,
    progress: Progress | None,
) -> tuple[Score, ...]:
    """Fine-tune or evaluate a model on each task; returns all scores of the results file."""
    finetuned = [name for name in tasks if find_task(name).kind in FINE_TUNED_KINDS]
    evaluated = [name for name in tasks if name not in finetuned]
    scores: tuple[Score, ...] = ()
    if evaluated:
        languages = request.scenario.targets
        scores = evaluate_tasks(
            model, evaluated, data, FeatureConfig(), out=out, languages=languages, progress=progress
        ).scores
    if finetuned:
        scores = finetune_tasks(model, finetuned, data, request, out=out, progress=progress).scores
    return scores


def _fingerprint(job: Job) -> str:
    return data_fingerprint(job.recipe, Corpus.open(job.corpus, verify="never"))


def _start_fingerprint(job: Job) -> str | None:
    """Of the weights that the run begins with; none: it begins from scratch."""
    name = job.recipe.model.init_from
    return None if name is None else fingerprint(model_folder(name))


class _Clock:
    """Prints which run of how many starts or ends, and the time left."""

    def __init__(self, jobs: Sequence[Job], num_parallel: int, console: Console) -> None:
        self._jobs, self._num_parallel, self._console = list(jobs), num_parallel, console
        self._to_train = [job for job in jobs if not job.is_finished]
        self._began = time.monotonic()
        self._trained = 0

    def start(self, job: Job) -> None:
        number = self._jobs.index(job) + 1
        done = " (trained already)" if job.is_finished else ""
        self._print(f"run {number} of {len(self._jobs)}: {job.folder.name}{done}{self._left()}")

    def finish(self, job: Job) -> None:
        if job in self._to_train:
            self._trained += 1
        if self._num_parallel > 1:
            number = self._jobs.index(job) + 1
            self._print(
                f"run {number} of {len(self._jobs)} is finished: {job.folder.name}{self._left()}"
            )

    def _left(self) -> str:
        """The mean seconds of the runs trained so far, for each that is left."""
        left = len(self._to_train) - self._trained
        if not self._trained or not left:
            return ""
        seconds = (time.monotonic() - self._began) / self._trained * left
        return f", about {duration(seconds)} left of the study"

    def _print(self, text: str) -> None:
        self._console.print(text, highlight=False, soft_wrap=True)


# --- in the process of a run ------------------------------------------------------------------


def _start_worker(devices: multiprocessing.SimpleQueue[int], threads: int) -> None:
    """Take a number of one's own: the GPU to use, where there are several."""
    import torch

    number = devices.get()
    torch.set_num_threads(threads)
    if torch.cuda.is_available():
        torch.cuda.set_device(number % torch.cuda.device_count())


def _run_in_process(job: Job) -> tuple[Score, ...]:
    from rich.console import Console
    from transformers.utils import logging

    logging.disable_progress_bar()
    job.folder.parent.mkdir(parents=True, exist_ok=True)
    log = job.folder.parent / f"{job.folder.name}.log"
    with log.open("a", encoding="utf-8") as file:
        return run_job(job, Console(file=file, width=120))
