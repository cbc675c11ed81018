"""A pre-training run: corpus and recipe in; checkpoints, metrics and a Hugging Face folder out.

    RUN/recipe.yaml  metrics.jsonl  tensorboard files  checkpoints/  model/
        (transplanted/  intermediate/step-N/  sentence-transformers/)

`build.py` builds the run, `train_step.py` takes its steps; this file takes its stages.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from isoglot.errors import CheckpointError
from isoglot.pretraining.build import RunContext, RunRequest, build_run, init_decoder
from isoglot.pretraining.checkpoints.checkpoint import Checkpoint, folder_of_step
from isoglot.pretraining.checkpoints.checkpoint_saver import CheckpointSaver, checkpoint_group
from isoglot.pretraining.checkpoints.checkpoint_state import TrainState
from isoglot.pretraining.config import data_fingerprint
from isoglot.pretraining.estimates.forecast import say_length
from isoglot.pretraining.monitoring.early_stopping import HeldoutWatch
from isoglot.pretraining.monitoring.records import keep_records, keep_stop
from isoglot.pretraining.monitoring.text_samples import with_first_sampled
from isoglot.pretraining.monitoring.validation import Validation
from isoglot.pretraining.monitoring.writers import Record, Writers, open_writers, step_record
from isoglot.pretraining.optimizers.muon import layer_matrices
from isoglot.pretraining.optimizers.optimizer import make_optimizer, transfer_state
from isoglot.pretraining.optimizers.weight_average import averaged_weights
from isoglot.pretraining.processes import agreement
from isoglot.pretraining.processes.interruptions import (
    StopSignal,
    exit_at_signals,
    explained_interruptions,
)
from isoglot.pretraining.processes.liveness import watched_processes
from isoglot.pretraining.processes.waiting import wait_for_all
from isoglot.pretraining.queue_warmup import warm_up_queues
from isoglot.pretraining.requirements import check_run
from isoglot.pretraining.resume import check_cursor, checkpoint_to_resume
from isoglot.pretraining.runtime import (
    StepSchedule,
    compile_and_wrap,
    lock_run,
    make_accelerator,
)
from isoglot.pretraining.stage_data import make_loader, open_stage
from isoglot.pretraining.train_step import StageContext, training_steps
from isoglot.types import Cursor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import torch

    from isoglot.corpus import Corpus
    from isoglot.pretraining.config import PretrainConfig
    from isoglot.pretraining.estimates.measuring import TimeBudget
    from isoglot.pretraining.train_step import StepResult
    from isoglot.types import Batch


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a run ended."""

    finished: bool
    """False if a signal stopped it; resume it later."""
    stopped_early: bool = False
    """Did early stopping end it before its last step?"""
    model: Path | None
    """The exported folder of a finished run."""
    exported_step: int | None = None
    """The step of the exported folder: the last, or with `export.checkpoint: best` the best."""
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
    recipe_text: str | Callable[[PretrainConfig], str] | None = None,
    console: Console | None = None,
    on_step: Callable[[StepResult], None] | None = None,
    budget: TimeBudget | None = None,
    part_of_plan: bool = False,
) -> Outcome:
    """Train all stages of a recipe on a corpus and export the encoder.

    Args:
        config: a recipe (`load_recipe`): what to train, on which streams, for how long.
        corpus: a prepared corpus (`Corpus.open`).
        folder: where checkpoints, metrics and the model go.
        resume: continue from the newest valid checkpoint in `folder`.
        name: the name of the run, for the model card and trackers.
        recipe_text: the recipe as text, kept with the run and the exported model, or what writes
            a recipe, for one whose numbers are found here (`batch.micro_rows: auto`).
        console: where progress is shown; none: standard error.
        on_step: called with every step, possibly one step late.
        budget: hours for everything; the stages get the steps that fill them.
        part_of_plan: whether the run is a step of something (`isoglot adapt`) that has planned its
            passes over the data and shows the time left of the whole.
    """
    console = console or Console(stderr=True)
    check_run(config, folder, resume=resume)
    accelerator = make_accelerator(config, folder)
    with (
        exit_at_signals(),  # a launcher's SIGTERM does not come before the sentence on a lost rank
        watched_processes(accelerator),
        explained_interruptions(accelerator.num_processes),
    ):
        agreement.agree_on_settings(accelerator, config, corpus, resume=resume, budget=budget)
        with lock_run(folder, accelerator):
            agreement.agree_on_folder(accelerator, folder)
            request = RunRequest(
                recipe=config,
                corpus=corpus,
                folder=folder,
                name=name,
                recipe_text=recipe_text,
                console=console,
                accelerator=accelerator,
                budget=budget,
                resume=resume,
                part_of_plan=part_of_plan,
            )
            return Run(build_run(request)).train(resume=resume, on_step=on_step)


class Run:
    """Takes the stages of a run one after the other."""

    def __init__(self, context: RunContext) -> None:
        self.context, self.config = context, context.config
        self.module, self.accelerator = context.module, context.accelerator
        self.watch = HeldoutWatch(context.config, context.objectives, context.accelerator)
        self.saver = CheckpointSaver(
            context.folder / "checkpoints",
            context.config.checkpoint,
            group=checkpoint_group(context.accelerator.num_processes),
            note=context.warn,
        )
        self.state = TrainState(
            stage=0,
            step=0,
            total_steps=0,
            tokens=0,
            cursor=Cursor(),
            corpus_fingerprint=data_fingerprint(context.config, context.corpus),
            recipe_fingerprint=context.config.fingerprint(),
        )

    def train(self, *, resume: bool, on_step: Callable[[StepResult], None] | None) -> Outcome:
        """Take the remaining stages, then export."""
        if self.watch.is_on:
            self.watch.check(Validation(self.context, self.config.stages[-1]).metrics)
        # before an optimizer exists: sharding replaces the weights by parts of them
        wrapped = compile_and_wrap(self.module, self.config, self.accelerator)
        found = self._checkpoint() if resume else None
        position = found.state if found else self.state
        agreement.agree_on_position(self.accelerator, position, self.context.num_steps)
        optimizer = self._restore(found) if found else None
        keep_records(self.context, resumed_at=self.state.total_steps)
        wait_for_all(self.accelerator)
        writers = open_writers(self.context, done=self.state.total_steps)
        try:
            with StopSignal(self._say) as stop, self.saver:
                for stage in range(self.state.stage, len(self.config.stages)):
                    optimizer = self.enter_stage(stage, optimizer)
                    context = self.stage_context(wrapped, optimizer, stop)
                    if self.watch.is_over(self.state.heldout):
                        break  # a run that has stopped early is resumed
                    if not self._train_stage(context, writers, on_step):
                        self.saver.wait()
                        keep_stop(self.context, step=self.state.total_steps, signal=stop.name)
                        return self._outcome(finished=False)
        finally:
            writers.close()
        return self._outcome(finished=True)

    def _checkpoint(self) -> Checkpoint | None:
        return checkpoint_to_resume(
            self.context.folder,
            corpus=self.context.corpus,
            corpus_fingerprint=self.state.corpus_fingerprint,
            recipe_fingerprint=self.state.recipe_fingerprint,
            num_stages=len(self.config.stages),
            warn=self.context.warn,
            group=self.saver.group,
        )

    def _restore(self, found: Checkpoint) -> torch.optim.Optimizer:
        optimizer = self._make_optimizer(found.state.stage)
        found.restore(self.module, optimizer)
        self.state = replace(found.state, recipe_fingerprint=self.state.recipe_fingerprint)
        self._say(f"resuming from {found.place} at step {self.state.total_steps}")
        return optimizer

    def _make_optimizer(self, stage: int) -> torch.optim.Optimizer:
        weights = self.module.weights_of(self.config.objectives_in(stage))
        config = self.config.optimizer_in(stage)
        matrices = layer_matrices(self.module) if config.name == "muon" else ()
        return make_optimizer(
            weights, config, self.config.memory, matrices=matrices, seed=self.config.seed
        )

    def enter_stage(
        self, stage: int, optimizer: torch.optim.Optimizer | None
    ) -> torch.optim.Optimizer:
        """Begin a stage and give its optimizer; a resumed stage has begun already.

        A new stage has a new optimizer, with the moments of the last one if the recipe asks for
        them, and objectives that the stage before did not train start afresh (queues, averages).
        """
        if stage == self.state.stage and optimizer is not None:
            return optimizer
        fresh = self._make_optimizer(stage)
        init_decoder(self.context, stage)
        trained_before = self.config.objectives_in(stage - 1) if stage else []
        for name in self.config.objectives_in(stage):
            if name not in trained_before:
                self.module.objective(name).on_stage_start()
        if self.module.average is not None:
            self.module.average.start()
        if optimizer is not None and self.config.stages[stage].keep_optimizer:
            transfer_state(optimizer, fresh)
        if stage != self.state.stage:
            self.state = replace(self.state, stage=stage, step=0, cursor=Cursor())
        return fresh

    def stage_context(
        self, wrapped: torch.nn.Module, optimizer: torch.optim.Optimizer, stop: StopSignal
    ) -> StageContext:
        """What the training steps of the current stage need."""
        stage = self.state.stage
        last_step = self.context.num_steps[stage]
        names = self.config.objectives_in(stage)
        return StageContext(
            module=self.module,
            wrapped=wrapped,
            optimizer=optimizer,
            optimizer_config=self.config.optimizer_in(stage),
            loss=self.config.loss,
            distributed=self.config.distributed,
            objectives={name: self.context.objectives[name] for name in names},
            steps=last_step,
            seed=self.config.seed,
            stage=stage,
            schedule=StepSchedule.of(
                self.config,
                steps_before=self.state.total_steps - self.state.step,
                last_step=last_step,
            ),
            stop=stop,
            save_failed=lambda: self.saver.failed,
            dump_folder=self.context.folder,
        )

    def _train_stage(
        self,
        stage: StageContext,
        writers: Writers,
        on_step: Callable[[StepResult], None] | None,
    ) -> bool:
        """Train one stage; False if it was asked to stop before its last step."""
        assert stage.schedule is not None
        batches = self._open_stage(stage, writers)
        validation = Validation(self.context, self.config.stages[stage.stage])
        saved_at = self.state.total_steps
        for result in training_steps(stage, batches, self.accelerator, done=self.state.step):
            total = stage.schedule.steps_before + result.step
            self.state = replace(
                self.state,
                step=result.step,
                total_steps=total,
                tokens=self.state.tokens + result.num_tokens,
                cursor=result.cursor,
            )
            if total % self.config.logging.every_steps == 0:
                writers.write(step_record(result, total, self.state))
            if stage.schedule.validates(result.step):
                writers.write(self._validate(validation))
            if stage.schedule.saves(result.step) or self._is_best():
                self.saver.save(self.state, self.module, stage.optimizer)
                saved_at = total
            if stage.schedule.exports(result.step):
                self.saver.wait()
                self.context.exporter.export_intermediate(self.state)
            if on_step is not None:
                on_step(result)
            if self.watch.is_over(self.state.heldout):
                break
        if saved_at != self.state.total_steps:
            self.saver.save(self.state, self.module, stage.optimizer)
        self.saver.wait()
        if self._stopped_early():
            self._say(self.watch.explain(self.state, stage, sum(self.context.num_steps)))
            return True
        return self.state.step >= stage.steps

    def _open_stage(self, stage: StageContext, writers: Writers) -> Iterator[list[Batch]]:
        """The batches of a stage from its next step on, once its queues are warmed up."""
        opened = open_stage(self.context, stage.stage)
        loader = make_loader(self.context, opened, stage=stage.stage, seed=self.config.seed)
        check_cursor(self.state.cursor, loader)
        say_length(self.context, loader.planner, stage.stage)
        batches = loader.steps(self.state.cursor)
        self.module.train()
        warm_up_queues(self.context, stage, opened)
        if self.state.total_steps == 0:
            self.context.exporter.export_intermediate(self.state)
        if writers.show is None or self.state.step or not stage.steps:
            return batches
        show = partial(writers.show, f"samples/stage-{stage.stage + 1}")
        return with_first_sampled(batches, self.context.corpus, show)

    def _validate(self, validation: Validation) -> Record:
        """Score the held-out data, and keep in the state which validation was the best so far."""
        total = self.state.total_steps
        with averaged_weights(self.module.average):
            scores = validation(self.module)
        heldout = self.watch.update(self.state.heldout, scores, stage=self.state.stage, step=total)
        self.state = replace(self.state, heldout=heldout)
        record: Record = {"step": total, "stage": self.state.stage, **scores}
        return record | (heldout.record() if heldout else {})

    def _stopped_early(self) -> bool:
        """Has early stopping ended the last stage before its last step?"""
        ended = self.state.step >= self.context.num_steps[self.state.stage]
        return self.watch.is_over(self.state.heldout) and not ended

    def _is_best(self) -> bool:
        """Was the best validation that of this step? Then it needs a checkpoint."""
        heldout = self.state.heldout
        return heldout is not None and heldout.best_step == self.state.total_steps

    def _outcome(self, *, finished: bool) -> Outcome:
        exporter = self.context.exporter
        exported = self._restore_best() if finished else None
        model, warnings = exporter.export_final(exported) if exported else (None, ())
        return Outcome(
            finished=finished,
            stopped_early=finished and self._stopped_early(),
            model=model,
            exported_step=exported.total_steps if exported else None,
            total_steps=self.state.total_steps,
            tokens=self.state.tokens,
            warnings=warnings,
        )

    def _restore_best(self) -> TrainState:
        """The state to export, its weights in the module."""
        heldout = self.state.heldout
        if self.config.export.checkpoint == "last" or heldout is None or self._is_best():
            return self.state
        self._say(f"exporting the best checkpoint: {heldout.describe()}")
        place = folder_of_step(self.context.folder / "checkpoints", heldout.best_step)
        try:
            found = Checkpoint(place, self.saver.group)
        except CheckpointError as error:
            raise CheckpointError(
                f"The best checkpoint cannot be exported: {error} The last one can: isoglot export "
                f"{self.context.folder} --checkpoint last."
            ) from error
        found.restore_weights(self.module)
        return found.state

    def _say(self, line: str) -> None:
        self.context.console.print(line, highlight=False, soft_wrap=True)
