"""One training of a study and its scores: trains what is left, translates the tests, keeps BLEU.

A cell is a recipe and a seed. Its folder is a run of Isoglot's; `bleu.json` in it says how well it
translates. A cell that is stopped (--minutes) goes on where it was when it is asked for again.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any

import torch
from rich.console import Console
from transformers.utils import logging

from isoglot.corpus import Corpus
from isoglot.evaluation.bleu import bleu
from isoglot.models.translator import Translator
from isoglot.pretraining.config import objectives_of
from isoglot.pretraining.run import pretrain
from isoglot.recipe import dump, load_recipe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isoglot.pretraining.config import Recipe
    from isoglot.pretraining.train_step import StepResult

BLEU = "bleu.json"
SHOWN = 3
"""Translations of each direction that are kept to be looked at."""


def run_cell(
    recipe: str,
    corpus: Path,
    tests: dict[str, Path],
    folder: Path,
    *,
    seed: int = 0,
    settings: Sequence[str] = (),
    share: float = 1.0,
    until: float = float("inf"),
    threads: int | None = None,
) -> bool:
    """Train and score; False if the time (`until`, of time.time) was up before the end."""
    if (folder / BLEU).is_file():
        return True
    if threads is not None:
        torch.set_num_threads(threads)
    logging.disable_progress_bar()
    say = partial(print, flush=True)
    loaded = shortened(load_recipe(recipe, [f"seed={seed}", *settings]), share)
    started, asked = time.time(), False

    def listen(step: StepResult) -> None:
        nonlocal asked
        if step.step % 500 == 0:
            numbers = {**step.losses, **step.metrics}
            told = "  ".join(f"{name} {value:.3f}" for name, value in numbers.items())
            say(f"{folder.name}  step {step.step}  {told}")
        if time.time() > until and not asked:  # asked twice, a run goes at once
            asked = True
            os.kill(os.getpid(), signal.SIGINT)  # the run saves a checkpoint and returns

    done = pretrain(
        loaded,
        Corpus.open(corpus),
        folder,
        resume=(folder / "checkpoints").is_dir(),
        name=loaded.name,
        recipe_text=dump(loaded),
        console=Console(quiet=True),
        on_step=listen,
    )
    if done.model is None:
        say(f"{folder.name}: stopped after step {done.total_steps}; ask for it again to go on")
        return False
    found = score(done.model, tests)
    found |= {"recipe": recipe, "seed": seed, "steps": done.total_steps, "tokens": done.tokens}
    found |= {"seconds": round(time.time() - started, 1)}
    (folder / BLEU).write_text(json.dumps(found, indent=1, ensure_ascii=False), encoding="utf-8")
    say(f"{folder.name}: {summary(found)}")
    return True


def run_cells(cells: Sequence[dict[str, Any]], parallel: int) -> bool:
    """`run_cell` with each of the arguments, some at a time; False if the time was up for any."""
    if parallel == 1:
        return all(run_cell(**cell) for cell in cells)
    for cell in cells:  # side by side they must not count the same pairs
        for objective in objectives_of(load_recipe(cell["recipe"], cell["settings"])).values():
            objective.prepare(Corpus.open(cell["corpus"]))
    with ProcessPoolExecutor(parallel, multiprocessing.get_context("spawn")) as pool:
        waiting = [pool.submit(run_cell, **cell) for cell in cells]
        finished = [one.result() for one in waiting]
    return all(finished)


def shortened(recipe: Recipe, share: float) -> Recipe:
    """A recipe with this share of its steps in every stage."""
    stages = (
        replace(stage, steps=max(1, round(share * (stage.steps or 0)))) for stage in recipe.stages
    )
    return replace(recipe, stages=tuple(stages))


def score(model: Path, tests: dict[str, Path]) -> dict[str, Any]:
    """BLEU of both directions of each test (two columns), named like `en-de` or `news:en-de`."""
    translator = Translator.open(model)
    scores: dict[str, Any] = {}
    for name, file in tests.items():
        pairs = [line.split("\t") for line in file.read_text(encoding="utf-8").splitlines()]
        label, _, codes = name.rpartition(":")
        first, second = codes.split("-")
        for source, target, side in ((first, second, 0), (second, first, 1)):
            lines = [pair[side] for pair in pairs]
            references = [pair[1 - side] for pair in pairs]
            written = dict(translator.translate(lines, source, target))
            translations = [written[number] for number in range(len(lines))]
            shown = zip(lines, translations, references, strict=True)
            key = f"{label}:{source}-{target}".lstrip(":")
            scores[key] = {
                **asdict(bleu(translations, references, target)),
                "examples": [list(three) for three in list(shown)[:SHOWN]],
            }
    return {"bleu": scores}


def summary(found: dict[str, Any]) -> str:
    """The scores of a cell in a line."""
    scores = found["bleu"].items()
    return ", ".join(f"{name} {score['sacrebleu']:.1f}" for name, score in scores)


def table(folders: Sequence[Path]) -> str:
    """Mean BLEU (sacrebleu, and multi-bleu in brackets) of each recipe, over its seeds."""
    cells: dict[str, list[dict[str, Any]]] = {}
    for folder in folders:
        if (folder / BLEU).is_file():
            found = json.loads((folder / BLEU).read_text(encoding="utf-8"))
            cells.setdefault(Path(found["recipe"]).stem, []).append(found)
    if not cells:
        return "no cell has finished"
    names = list(dict.fromkeys(n for found in cells.values() for f in found for n in f["bleu"]))
    lines = [f"| recipe | seeds | {' | '.join(names)} |", "|" + "---|" * (len(names) + 2)]
    for recipe, found in cells.items():
        numbers = []
        for name in names:
            some = [cell["bleu"][name] for cell in found if name in cell["bleu"]]
            usual, tokenized = (
                mean(cell[kind] for cell in some) for kind in ("sacrebleu", "multi_bleu")
            )
            numbers.append(f"{usual:.1f} ({tokenized:.1f})")
        lines.append(f"| {recipe} | {len(found)} | {' | '.join(numbers)} |")
    return "\n".join(lines)
