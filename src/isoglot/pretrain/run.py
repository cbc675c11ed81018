"""A whole run: corpus and recipe in, checkpoints, metrics and a Hugging Face folder out.

runs/NAME/
    recipe.yaml  metrics.jsonl  tensorboard files  checkpoints/  model/
    (start/  along/step-N/  sentence-transformers/)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console as Terminal

from isoglot.batching.permutation import key_of
from isoglot.errors import CheckpointError
from isoglot.pretrain import checkpoint
from isoglot.pretrain.calendar import Calendar
from isoglot.pretrain.config import data_fingerprint
from isoglot.pretrain.devices import for_processes
from isoglot.pretrain.filling import fill, wanting
from isoglot.pretrain.hooks import Console, MetricsFile, Trackers, Writers
from isoglot.pretrain.hooks.record import step_record
from isoglot.pretrain.kinds import begin_decoder
from isoglot.pretrain.loop import anyone, training_steps
from isoglot.pretrain.optim import hand_on, make_optimizer
from isoglot.pretrain.parts import Parts, assemble
from isoglot.pretrain.resume import check_cursor, to_resume
from isoglot.pretrain.stage import Stage, Step
from isoglot.pretrain.stopping import StopAtSignal
from isoglot.types import Cursor

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch

    from isoglot.batching.mixture import OpenStream
    from isoglot.corpus import Corpus
    from isoglot.pretrain.config import PretrainConfig, StageConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a run ended."""

    finished: bool
    """False if it was asked to stop; resume it later."""
    model: Path | None
    """The exported folder of a finished run."""
    total_steps: int
    tokens: int
    """Tokens trained on."""
    warnings: tuple[str, ...] = ()
    """What the exported folder could not hold."""


def pretrain(
    config: PretrainConfig,
    corpus: Corpus,
    folder: Path,
    *,
    resume: bool = False,
    name: str = "isoglot",
    recipe_text: str | None = None,
    terminal: Terminal | None = None,
    on_step: Callable[[Step], None] | None = None,
) -> Outcome:
    """Train all stages of a recipe on a corpus and export the encoder.

    Args:
        config: what to train, on what streams, for how long.
        corpus: a prepared corpus.
        folder: where checkpoints, metrics and the model go.
        resume: go on from the newest sound checkpoint in `folder`.
        name: the name of the run, for the model card and trackers.
        recipe_text: the resolved recipe, kept with the run and the exported model.
        terminal: where progress is shown; none: standard error.
        on_step: told of every step, for those who want to listen in; it may come a step late.
    """
    parts = assemble(config, corpus, folder, name, recipe_text, terminal or Terminal(stderr=True))
    return _Run(parts).go(resume=resume, on_step=on_step)


class _Run:
    """Takes the stages of a run one after the other, and knows how far it is."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        # what nearly every method needs
        self.config, self.folder, self.terminal = parts.config, parts.folder, parts.terminal
        self.trainee, self.accelerator = parts.trainee, parts.accelerator
        self.state = checkpoint.State(
            stage=0,
            step=0,
            total_steps=0,
            tokens=0,
            cursor=Cursor(),
            corpus=data_fingerprint(parts.config, parts.corpus),
            recipe=parts.config.fingerprint(),
        )

    def go(self, *, resume: bool, on_step: Callable[[Step], None] | None) -> Outcome:
        """Run the stages that are left, then export."""
        optimizer = self._resume() if resume else self._begin()
        # padded batches have many shapes, and compiling takes longer than it saves
        one_shape = self.config.model.decoder is None
        on_gpu = self.accelerator.device.type == "cuda"
        if self.config.compile if self.config.compile is not None else on_gpu and one_shape:
            self.trainee.compile()
        wrapped = for_processes(self.trainee, self.accelerator)
        writers = self._writers()
        try:
            with StopAtSignal(self.terminal.print) as stopping:
                for number in range(self.state.stage, len(self.config.stages)):
                    config = self.config.stages[number]
                    optimizer = self._enter(number, optimizer)
                    finished = self._stage(
                        config, wrapped, optimizer, writers, lambda: stopping.requested, on_step
                    )
                    if not finished:
                        return self._outcome(finished=False)
        finally:
            writers.close()
        return self._outcome(finished=True)

    def _begin(self) -> torch.optim.Optimizer | None:
        before = checkpoint.newest(self.folder / "checkpoints")
        if before is not None:
            raise CheckpointError(
                f"{self.folder} already holds a run ({before.name}). Add --resume to go on with "
                f"it, or choose another folder with --out."
            )
        self._keep_recipe()
        self.accelerator.wait_for_everyone()
        return None

    def _keep_recipe(self) -> None:
        """Write the recipe beside the run; one that it was begun with, and is another, stays."""
        if not self.accelerator.is_main_process:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        if self.parts.recipe_text is None:
            return
        file = self.folder / "recipe.yaml"
        if self.state.total_steps and file.is_file():
            before = file.read_text(encoding="utf-8")
            if before != self.parts.recipe_text:
                file.replace(self.folder / f"recipe-until-{self.state.total_steps}.yaml")
        file.write_text(self.parts.recipe_text, encoding="utf-8")

    def _resume(self) -> torch.optim.Optimizer | None:
        found = to_resume(
            self.folder,
            corpus=self.parts.corpus,
            fingerprint=self.state.corpus,
            recipe=self.state.recipe,
            num_stages=len(self.config.stages),
            warn=self._warn,
        )
        if found is None:
            self._keep_recipe()
            return None
        optimizer = self._optimizer(found.state.stage)
        found.restore(self.trainee, optimizer)
        self.state = replace(found.state, recipe=self.state.recipe)
        self._keep_recipe()
        self.terminal.print(
            f"resuming from {found.place} at step {self.state.total_steps}", highlight=False
        )
        return optimizer

    def _enter(self, number: int, optimizer: torch.optim.Optimizer | None) -> torch.optim.Optimizer:
        """The optimizer of a stage: resumed, or new, with the moments of the last one if asked."""
        if number == self.state.stage and optimizer is not None:
            return optimizer
        fresh = self._optimizer(number)
        begin_decoder(self.trainee, self.config, self.parts.objectives, number)
        trained = self.config.objectives_in(number - 1) if number else []
        for name in self.config.objectives_in(number):
            if name not in trained:
                self.trainee.objective(name).begin()
        if optimizer is not None and self.config.stages[number].keep_optimizer:
            hand_on(optimizer, fresh)
        if number != self.state.stage:
            self.state = replace(self.state, stage=number, step=0, cursor=Cursor())
        return fresh

    def _optimizer(self, stage: int) -> torch.optim.Optimizer:
        """A new optimizer for the weights that a stage trains."""
        weights = self.trainee.weights_of(self.config.objectives_in(stage))
        return make_optimizer(weights, self.config.optimizer_in(stage))

    def _stage(
        self,
        config: StageConfig,
        wrapped: torch.nn.Module,
        optimizer: torch.optim.Optimizer,
        writers: Writers,
        stopping: Callable[[], bool],
        on_step: Callable[[Step], None] | None,
    ) -> bool:
        """Train one stage; False if it was asked to stop before its last step."""
        number = self.state.stage
        opened = self.parts.data.opened(config, self._warn)
        loader = self.parts.data.loader(opened, stage=number, seed=self.config.seed)
        check_cursor(self.state.cursor, loader)
        if config.epochs is not None:
            steps = self.parts.steps[number]
            self.terminal.print(f"epochs {config.epochs:g}: {steps:,} steps", highlight=False)
        names = self.config.objectives_in(number)
        objectives = {name: self.parts.objectives[name] for name in names}
        calendar = Calendar(
            before=self.state.total_steps - self.state.step,
            last=self.parts.steps[number],
            validate_every=self.config.watch.validate_every,
            save_every=self.config.checkpoints.every,
            keep_every=self.config.export.every,
        )
        stage = Stage(
            trainee=self.trainee,
            wrapped=wrapped,
            optimizer=optimizer,
            optimizer_config=self.config.optimizer_in(number),
            loss=self.config.loss,
            weights={name: one.weight for name, one in objectives.items()},
            weights_at=lambda step: {name: one.weight_at(step) for name, one in objectives.items()},
            steps=calendar.last,
            seed=self.config.seed,
            number=number,
            dump=self.folder,
            stopping=stopping,
            looks=calendar.looks,
        )
        validation = self.parts.data.validation(config)
        batches = loader.steps(self.state.cursor)
        saved = self.state.total_steps
        self.trainee.train()
        self._fill(opened, stopping)
        if self.state.total_steps == 0:
            self.parts.exports.along(self.state)
        for step in training_steps(stage, batches, self.accelerator, done=self.state.step):
            total = calendar.before + step.step
            self.state = replace(
                self.state,
                step=step.step,
                total_steps=total,
                tokens=self.state.tokens + step.num_tokens,
                cursor=step.cursor,
            )
            if total % self.config.watch.log_every == 0:
                writers.write(step_record(step, total, self.state))
            if calendar.validates(step.step):
                writers.write({"step": total, **validation(self.trainee)})
            if calendar.saves(step.step):
                self._save(optimizer)
                saved = total
            if calendar.keeps(step.step):
                self.parts.exports.along(self.state)
            if on_step is not None:
                on_step(step)
        if saved != self.state.total_steps:
            self._save(optimizer)
        return self.state.step >= calendar.last

    def _fill(self, opened: tuple[OpenStream, ...], stopping: Callable[[], bool]) -> None:
        """Give objectives what they want to see before their first step, from data of its own."""
        names = list(wanting(self.trainee, self.config.objectives_in(self.state.stage)))
        if names:
            seed = key_of(self.config.seed, "before the first step")
            fill(
                self.trainee,
                names,
                self.parts.data.loader(opened, stage=self.state.stage, seed=seed).steps(Cursor()),
                self.accelerator,
                seed=seed,
                stopping=lambda: anyone(self.accelerator, stopping()),
                say=lambda line: self.terminal.print(line, highlight=False),
            )

    def _writers(self) -> Writers:
        if not self.accelerator.is_main_process:
            return Writers()
        writers = Writers(
            MetricsFile(self.folder / "metrics.jsonl", resume_at=self.state.total_steps),
            Console(self.parts.name, sum(self.parts.steps), self.state.total_steps, self.terminal),
        )
        if self.config.watch.trackers:
            writers.add(Trackers(self.accelerator, self.parts.name))
        return writers

    def _save(self, optimizer: torch.optim.Optimizer) -> None:
        if self.accelerator.is_main_process:
            checkpoint.save(
                self.folder / "checkpoints",
                self.state,
                self.trainee,
                optimizer,
                keep=self.config.checkpoints.keep,
            )
        self.accelerator.wait_for_everyone()

    def _outcome(self, *, finished: bool) -> Outcome:
        model, warnings = self.parts.exports.final(self.state) if finished else (None, ())
        return Outcome(
            finished=finished,
            model=model,
            total_steps=self.state.total_steps,
            tokens=self.state.tokens,
            warnings=warnings,
        )

    def _warn(self, message: str) -> None:
        self.terminal.print(f"[yellow]note[/]: {message}", highlight=False, soft_wrap=True)
