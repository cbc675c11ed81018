"""A checkpoint of a run as a transformers folder, as the run itself would have exported it.

It reads RUN/recipe.yaml, RUN/corpus, RUN/tokenizer and the checkpoint, not the corpus. Where the
corpus is at hand, heads of objectives that are made from its knowledge (`entailment`) are written,
too. A run that is being trained is only read: its newest checkpoint may be removed meanwhile, so
the next one is tried.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from isoglot.corpus import Corpus
from isoglot.errors import CheckpointError, CorpusError, IsoglotError, LockedError, WriteError
from isoglot.locks import lock_folder
from isoglot.pretraining.checkpoints.checkpoint import (
    Checkpoint,
    folder_of_step,
    latest,
    latest_valid,
)
from isoglot.pretraining.config import Recipe
from isoglot.pretraining.monitoring.records import RECIPE, corpus_origin, recorded_corpus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console

    from isoglot.models.model_card import ModelCard
    from isoglot.pretraining.train_module import TrainModule

    Warn = Callable[[str], None]

WhichCheckpoint = Literal["last", "best"] | int
_TRIES = 3
"""Checkpoints that are tried while the run removes old ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCheckpoint:
    """A checkpoint of a run, with what its model is made from."""

    run: Path
    recipe: Recipe
    recipe_text: str
    checkpoint: Checkpoint
    corpus: Corpus
    """The run's own record of it, or the corpus itself."""
    is_whole: bool
    """Is it the corpus itself, with all of its rows?"""

    @property
    def step(self) -> int:
        """Steps of the run until the checkpoint."""
        return self.checkpoint.state.total_steps


def has_checkpoints(run: Path) -> bool:
    """Is this the folder of a run that can be exported?"""
    try:
        return latest(run / "checkpoints") is not None
    except (OSError, ValueError):  # no path at all
        return False


@contextmanager
def locked_unless_training(run: Path, warn: Warn) -> Iterator[bool]:
    """Lock a run; one that is being trained, or must not be written, is only read (False)."""
    with ExitStack() as stack:
        try:
            stack.enter_context(lock_folder(run))
        except (LockedError, WriteError):
            warn(f"{run} is in use or read-only: its newest checkpoint is read, nothing else.")
            yield False
            return
        yield True


def open_checkpoint(
    run: Path, which: WhichCheckpoint, corpus: str | Path | None, warn: Warn
) -> RunCheckpoint:
    """Verify a checkpoint and read what belongs to it.

    Raises:
        CheckpointError: there is no such checkpoint, or it is damaged.
        IsoglotError: the run has no recipe, or no corpus is known.
    """
    from isoglot.recipe import load_recipe

    file = run / RECIPE
    if not file.is_file():
        raise IsoglotError(f"{file} is missing: a model is built from the recipe of its run.")
    for left in reversed(range(_TRIES)):
        try:
            found = _checkpoint(run, which, warn)
            break
        except CheckpointError:
            if not left:
                raise
    known, is_whole = _corpus(run, corpus)
    return RunCheckpoint(
        run=run,
        recipe=load_recipe(str(file)),
        recipe_text=file.read_text(encoding="utf-8"),
        checkpoint=found,
        corpus=known,
        is_whole=is_whole,
    )


def _checkpoint(run: Path, which: WhichCheckpoint, warn: Warn) -> Checkpoint:
    folder = run / "checkpoints"
    newest = latest_valid(folder, warn)
    if newest is None:
        raise CheckpointError(f"{run} has no checkpoint yet. Train it with isoglot pretrain.")
    if which == "last":
        return newest
    step = which
    if which == "best":
        if newest.state.heldout is None:
            raise CheckpointError(
                f"{run} has not looked for its best checkpoint: its recipe has neither "
                "early_stopping nor export.checkpoint: best. Give --checkpoint last or a step: "
                f"{_steps(folder)}."
            )
        step = newest.state.heldout.best_step
    place = folder_of_step(folder, int(step))
    if not place.is_dir():
        raise CheckpointError(f"{place} is not there. Give --checkpoint one of: {_steps(folder)}.")
    return Checkpoint(place)


def _steps(folder: Path) -> str:
    return ", ".join(
        str(int(path.name.removeprefix("step-"))) for path in sorted(folder.glob("step-*"))
    )


def _corpus(run: Path, given: str | Path | None) -> tuple[Corpus, bool]:
    """The corpus of a run: named, where it was, or as the run has recorded it."""
    recorded = recorded_corpus(run)
    if given is not None:
        found = Corpus.open(given, verify="never")
        if recorded is not None and found.fingerprint != recorded.fingerprint:
            raise CorpusError(
                f"{given} is not the corpus that {run} was trained on. Leave --corpus out, or give "
                "that one."
            )
        return found, True
    origin = corpus_origin(run)
    if origin is not None:
        return origin, True
    if recorded is not None:
        return recorded, False
    raise CorpusError(
        f"{run} does not know its corpus, because an earlier version of Isoglot wrote it. Give the "
        "corpus with --corpus FOLDER."
    )


def export_checkpoint(
    found: RunCheckpoint, folder: Path, console: Console
) -> tuple[ModelCard, list[str]]:
    """Write the transformers folder of a checkpoint.

    Gives its card, and notes on what the folder could not hold.
    """
    from isoglot.pretraining.export import Exporter
    from isoglot.pretraining.optimizers.weight_average import WeightAverage, averaged_weights

    state = found.checkpoint.state
    module, notes = _build_module(found, console)
    if found.recipe.averaging is not None:
        module.average = WeightAverage(module, found.recipe.averaging)
    found.checkpoint.restore_weights(module, partly=True)
    plain = replace(found.recipe.export, sentence_transformers="none", fold_languages=())
    exporter = Exporter(
        config=replace(found.recipe, export=plain),
        corpus=found.corpus,
        module=module.eval(),
        accelerator=None,
        folder=found.run,
        name=found.recipe.name,
        recipe_text=found.recipe_text,
        console=console,
    )
    with averaged_weights(module.average):
        notes += exporter.export(folder, state)
    return exporter.card(state), notes


def _build_module(found: RunCheckpoint, console: Console) -> tuple[TrainModule, list[str]]:
    """The model and the objectives that export a head; notes on heads that cannot be made."""
    from isoglot.pretraining.build import build_train_module, resolve_init
    from isoglot.pretraining.config import objectives_of

    config, corpus = found.recipe, found.corpus
    model = resolve_init(config, corpus, found.run, console, transplant_now=False)
    heads = {name: one for name, one in objectives_of(config).items() if one.exports_head}
    length = config.batch.row_length
    try:
        return build_train_module(model, heads, corpus, row_length=length), []
    except CorpusError as error:
        if found.is_whole:
            raise
        note = (
            f"the heads of {', '.join(heads)} are not in the folder, because they need the corpus "
            f"({error}) Give it with --corpus."
        )
        return build_train_module(model, {}, corpus, row_length=length), [note]
