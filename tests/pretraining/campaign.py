"""Kill campaign over all recipes with several stages: `python -m tests.pretraining.campaign`.

Each recipe is trained at tiny size without interruption, and again while it is killed with SIGKILL
at random moments, a third of them inside the writing of a checkpoint, and resumed. Every file of
the exported folders must be the same, byte for byte.

    python -m tests.pretraining.campaign --kills 1000 --seed 7
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import signal
import sys
import tempfile
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from isoglot.api import pretrain
from isoglot.batching.planner import BatchConfig
from isoglot.corpus import Corpus
from isoglot.models.config import ModelConfig
from isoglot.objectives.contrast.momentum import QueueConfig
from isoglot.pretraining.checkpoints.checkpoint import CheckpointConfig
from isoglot.pretraining.config import LoggingConfig, Recipe
from isoglot.recipe import document, load_recipe
from tests.pretraining.driver import die_at_sync
from tests.pretraining.launching import FORKING, last_step

if TYPE_CHECKING:
    from multiprocessing.context import ForkServerProcess

STEPS = 4
"""Steps of each stage."""
SAVED_EVERY = 2
_NAMES = ("sources", "languages", "target_languages")
"""Settings that name a part of a corpus."""
SYNCS = 7
"""Times that something is synced to disk for a checkpoint, on one process."""


def staged_recipes() -> list[str]:
    """The built-in recipes with several stages; of those that are equal when tiny, the first."""
    staged = [name for name in document.built_in() if len(load_recipe(name).stages) > 1]
    distinct: dict[str, str] = {}
    for name in staged:
        distinct.setdefault(tiny(name).fingerprint(), name)
    return list(distinct.values())


def tiny(name: str) -> Recipe:
    """A built-in recipe with its stages, streams and objectives, at a size of milliseconds."""
    recipe = load_recipe(name)
    warmup: dict[str, Any] = {"warmup_steps": 1, "warmup_ratio": None}
    model = ModelConfig(
        size="tiny",
        num_layers=1,
        hidden_size=16,
        num_heads=2,
        max_positions=96,
        decoder=recipe.model.decoder,
        language_embeddings=recipe.model.language_embeddings,
    )
    return replace(
        recipe,
        model=model,
        stages=tuple(
            replace(
                stage,
                steps=STEPS,
                epochs=None,
                optimizer=stage.optimizer and replace(stage.optimizer, **warmup),
                streams={key: _for_any_corpus(one) for key, one in stage.streams.items()},
            )
            for stage in recipe.stages
        ),
        objectives={key: _for_any_corpus(one) for key, one in recipe.objectives.items()},
        batch=BatchConfig(rows=8, micro_rows=4, row_length=96),
        loader=replace(recipe.loader, num_workers=0),
        optimizer=replace(recipe.optimizer, **warmup),
        checkpoint=CheckpointConfig(every_steps=SAVED_EVERY),
        logging=LoggingConfig(validate_every_steps=0, validate_examples=2, trackers=()),
        compile=False,
    )


def _for_any_corpus(settings: Any) -> Any:
    """Settings that read all sources and languages that there are, with small queues."""
    if isinstance(settings, QueueConfig):
        return replace(settings, size=8)
    if not is_dataclass(settings) or isinstance(settings, type):
        return settings
    given = {one.name: getattr(settings, one.name) for one in fields(settings) if one.init}
    changed = {
        name: () if name in _NAMES else _for_any_corpus(value) for name, value in given.items()
    }
    return replace(settings, **{k: v for k, v in changed.items() if v is not given[k]})


class Training:
    """A training of a tiny recipe in a forked process."""

    def __init__(
        self, name: str, corpus: Path, run: Path, *, resume: bool, kill_at_sync: int = 0
    ) -> None:
        self._errors = run.with_suffix(".errors")
        self._process: ForkServerProcess = FORKING.Process(
            target=_train, args=(name, corpus, run, resume, kill_at_sync, self._errors)
        )
        self._process.start()

    @property
    def alive(self) -> bool:
        return self._process.is_alive()

    def kill(self) -> None:
        """SIGKILL."""
        assert self._process.pid is not None
        os.kill(self._process.pid, signal.SIGKILL)

    def end(self) -> int | None:
        """Wait for the process; gives its exit code."""
        self._process.join(120)
        return self._process.exitcode

    def finish(self) -> None:
        """Wait for the process, which must succeed."""
        code = self.end()
        assert code == 0, self._errors.read_text(encoding="utf-8")


def _train(
    name: str, corpus: Path, run: Path, resume: bool, kill_at_sync: int, errors: Path
) -> None:
    """In a forked process: train, with its messages in a file."""
    torch.set_num_threads(1)
    gc.collect = lambda *_: 0  # takes as long as the steps, and decides no number
    warnings.simplefilter("ignore")
    with errors.open("ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    if kill_at_sync:
        die_at_sync(kill_at_sync)
    pretrain(tiny(name), Corpus.open(corpus, verify="never"), run, resume=resume)


@dataclass(slots=True, kw_only=True)
class Outcome:
    """What became of a recipe."""

    name: str
    kills: int = 0
    in_checkpoints: int = 0
    """Kills inside the writing of a checkpoint."""
    files: int = 0
    """Files compared."""
    differing: list[str] = field(default_factory=list)


def attack(name: str, corpus: Path, folder: Path, *, kills: int, seed: int) -> Outcome:
    """Train a recipe twice, once without interruption and once with kills; compare the exports."""
    chance = random.Random(f"{seed} {name}")
    outcome = Outcome(name=name)
    base = folder / name.replace("/", "-")
    whole, run = base.with_name(f"{base.name}-whole"), base.with_name(f"{base.name}-killed")
    began = time.monotonic()
    Training(name, corpus, whole, resume=False).finish()
    seconds = time.monotonic() - began
    while outcome.kills < kills:
        if (run / "model").exists():  # it was too quick: once more from the start
            run = run.with_name(f"{run.name}-again")
        if chance.random() < 1 / 3:
            at = chance.randint(1, SYNCS)
            training = Training(name, corpus, run, resume=True, kill_at_sync=at)
            killed = training.end() == -signal.SIGKILL
            outcome.in_checkpoints += killed
        else:
            killed = _killed_at_random(name, corpus, run, chance, seconds)
        outcome.kills += killed
    Training(name, corpus, run, resume=True).finish()
    exported = _exports(whole)
    outcome.files = len(exported)
    found = _exports(run)
    outcome.differing = sorted(
        path
        for path in exported.keys() | found.keys()
        if path not in exported
        or path not in found
        or exported[path].read_bytes() != found[path].read_bytes()
    )
    return outcome


def _killed_at_random(
    name: str, corpus: Path, run: Path, chance: random.Random, seconds: float
) -> bool:
    """Kill once a step has been noted, after a random share of the time that is left."""
    training = Training(name, corpus, run, resume=True)
    before = last_step(run / "metrics.jsonl")
    step = before + chance.randint(0, SAVED_EVERY + 1)
    while training.alive and last_step(run / "metrics.jsonl") < step:
        time.sleep(0.002)
    time.sleep(chance.random() * seconds / 10)
    if not training.alive:
        training.finish()
        return False
    training.kill()
    return training.end() == -signal.SIGKILL


def _exports(run: Path) -> dict[str, Path]:
    """Every file of a run's exported folders, and its recipe."""
    files = [
        path
        for folder in ("model", "sentence-transformers", "intermediate")
        for path in (run / folder).rglob("*")
        if path.is_file()
    ]
    return {path.relative_to(run).as_posix(): path for path in [*files, run / "recipe.yaml"]}


def campaign(
    names: list[str], corpus: Path, folder: Path, *, kills: int, seed: int
) -> list[Outcome]:
    """Attack recipes, two at a time, with a number of kills in all."""
    shares = [kills // len(names) + (i < kills % len(names)) for i in range(len(names))]
    with ThreadPoolExecutor(2) as pool:
        jobs = [
            pool.submit(attack, name, corpus, folder, kills=share, seed=seed)
            for name, share in zip(names, shares, strict=True)
        ]
        return [job.result() for job in jobs]


def main() -> None:
    """Run a campaign on a small corpus that is made for it."""
    from tests.tiny_corpus import make_corpus
    from tests.tiny_knowledge import with_knowledge

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--kills", type=int, default=100, help="number of kills in all")
    parser.add_argument("--seed", type=int, default=0, help="random seed of the moments")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        corpus = with_knowledge(make_corpus(folder / "plain"), folder / "corpus").folder
        names = staged_recipes()
        outcomes = campaign(names, corpus, folder, kills=arguments.kills, seed=arguments.seed)
    for one in outcomes:
        told = ", ".join(one.differing) or "all equal"
        sys.stdout.write(
            f"{one.name}: {one.kills} kills, {one.in_checkpoints} in checkpoints, "
            f"{one.files} files: {told}\n"
        )
    sys.exit(any(one.differing for one in outcomes))


if __name__ == "__main__":
    main()
