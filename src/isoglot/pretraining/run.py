"""A pre-training run: corpus and recipe in; checkpoints, metrics and a Hugging Face folder out.

    RUN/recipe.yaml  metrics.jsonl  tensorboard files  checkpoints/  model/
        (transplanted/  intermediate/step-N/  sentence-transformers/)

`build.py` builds the run, `train_step.py` takes its steps; this file takes its stages.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from isoglot.atomic import write_text
from isoglot.pretraining import checkpoint
from isoglot.pretraining.build import RunContext, build_run, init_decoder
from isoglot.pretraining.checkpoint import TrainState, check_cursor, checkpoint_to_resume
from isoglot.pretraining.config import data_fingerprint
from isoglot.pretraining.interruptions import StopSignal, explained_interruptions
from isoglot.pretraining.optimizer import make_optimizer, transfer_state
from isoglot.pretraining.queue_warmup import warm_up_queues
from isoglot.pretraining.requirements import check_run
from isoglot.pretraining.runtime import (
    StepSchedule,
    lock_run,
    make_accelerator,
    wrap_ddp,
)
from isoglot.pretraining.stage_data import describe_length, make_loader, open_stage
from isoglot.pretraining.train_step import StageContext, training_steps
from isoglot.pretraining.validation import Validation
from isoglot.pretraining.writers import (
    ConsoleWriter,
    MetricsFile,
    RisingLossWriter,
    TrackerWriter,
    Writers,
    step_record,
)
from isoglot.types import Cursor

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch

    from isoglot.corpus import Corpus
    from isoglot.pretraining.config import PretrainConfig
    from isoglot.pretraining.train_step import StepResult


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
    console: Console | None = None,
    on_step: Callable[[StepResult], None] | None = None,
) -> Outcome:
    """Train all stages of a recipe on a corpus and export the encoder.

    Args:
        config: a recipe (`load_recipe`): what to train, on which streams, for how long.
        corpus: a prepared corpus (`Corpus.open`).
        folder: where checkpoints, metrics and the model go.
        resume: continue from the newest valid checkpoint in `folder`.
        name: the name of the run, for the model card and trackers.
        recipe_text: the resolved recipe, kept with the run and the exported model.
        console: where progress is shown; none: standard error.
        on_step: called with every step, possibly one step late.
    """
    console = console or Console(stderr=True)
    check_run(config, folder, resume=resume)
    accelerator = make_accelerator(config, folder)
    with lock_run(folder, accelerator):
        context = build_run(config, corpus, folder, name, recipe_text, console, accelerator)
        return _Run(context).train(resume=resume, on_step=on_step)


class _Run:
    """Takes the stages of a run one after the other."""

    def __init__(self, context: RunContext) -> None:
        self.context, self.config = context, context.config
        self.module, self.accelerator = context.module, context.accelerator
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
        optimizer = None
        if resume:
            optimizer = self._resume()
        else:
            self._begin()
        # padded batches of encoder-decoders have many shapes: compiling costs more than it saves
        packed = self.config.model.decoder is None
        on_gpu = self.accelerator.device.type == "cuda"
        if self.config.compile if self.config.compile is not None else on_gpu and packed:
            self.module.compile()
        wrapped = wrap_ddp(self.module, self.accelerator)
        writers = self._writers()
        try:
            with (
                explained_interruptions(self.accelerator.num_processes),
                StopSignal(self._say) as stop,
            ):
                for stage in range(self.state.stage, len(self.config.stages)):
                    optimizer = self._enter_stage(stage, optimizer)
                    context = self._stage_context(wrapped, optimizer, stop)
                    if not self._train_stage(context, writers, on_step):
                        return self._outcome(finished=False)
        finally:
            writers.close()
        return self._outcome(finished=True)

    def _begin(self) -> None:
        self._keep_recipe()
        self.accelerator.wait_for_everyone()

    def _resume(self) -> torch.optim.Optimizer | None:
        found = checkpoint_to_resume(
            self.context.folder,
            corpus=self.context.corpus,
            corpus_fingerprint=self.state.corpus_fingerprint,
            recipe_fingerprint=self.state.recipe_fingerprint,
            num_stages=len(self.config.stages),
            warn=self.context.warn,
        )
        if found is None:
            self._keep_recipe()
            return None
        optimizer = self._make_optimizer(found.state.stage)
        found.restore(self.module, optimizer)
        self.state = replace(found.state, recipe_fingerprint=self.state.recipe_fingerprint)
        self._keep_recipe()
        self._say(f"resuming from {found.place} at step {self.state.total_steps}")
        return optimizer

    def _keep_recipe(self) -> None:
        """Write the recipe beside the run; a different one of an earlier start is kept too."""
        context = self.context
        if not self.accelerator.is_main_process:
            return
        context.folder.mkdir(parents=True, exist_ok=True)
        if context.recipe_text is None:
            return
        file = context.folder / "recipe.yaml"
        resumed = self.state.total_steps and file.is_file()
        if resumed and file.read_bytes() != context.recipe_text.encode():
            file.replace(context.folder / f"recipe-until-{self.state.total_steps}.yaml")
        write_text(file, context.recipe_text)

    def _make_optimizer(self, stage: int) -> torch.optim.Optimizer:
        weights = self.module.weights_of(self.config.objectives_in(stage))
        return make_optimizer(weights, self.config.optimizer_in(stage))

    def _enter_stage(
        self, stage: int, optimizer: torch.optim.Optimizer | None
    ) -> torch.optim.Optimizer:
        """The optimizer of a stage: resumed, or new, with the moments of the last one if asked."""
        if stage == self.state.stage and optimizer is not None:
            return optimizer
        fresh = self._make_optimizer(stage)
        init_decoder(self.context, stage)
        trained_before = self.config.objectives_in(stage - 1) if stage else []
        for name in self.config.objectives_in(stage):
            if name not in trained_before:
                self.module.objective(name).on_stage_start()
        if optimizer is not None and self.config.stages[stage].keep_optimizer:
            transfer_state(optimizer, fresh)
        if stage != self.state.stage:
            self.state = replace(self.state, stage=stage, step=0, cursor=Cursor())
        return fresh

    def _stage_context(
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
            dump_folder=self.context.folder,
        )

    def _train_stage(
        self,
        stage: StageContext,
        writers: Writers,
        on_step: Callable[[StepResult], None] | None,
    ) -> bool:
        """Train one stage; False if it was asked to stop before its last step."""
        config = self.config.stages[stage.stage]
        assert stage.schedule is not None
        opened = open_stage(self.context, stage.stage)
        loader = make_loader(self.context, opened, stage=stage.stage, seed=self.config.seed)
        check_cursor(self.state.cursor, loader)
        if config.epochs is not None:
            self._say(describe_length(config, stage.steps))
        validation = Validation(self.context, config)
        batches = loader.steps(self.state.cursor)
        saved_at = self.state.total_steps
        self.module.train()
        warm_up_queues(self.context, stage, opened)
        if self.state.total_steps == 0:
            self.context.exporter.export_intermediate(self.state)
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
                writers.write({"step": total, **validation(self.module)})
            if stage.schedule.saves(result.step):
                self._save(stage.optimizer)
                saved_at = total
            if stage.schedule.exports(result.step):
                self.context.exporter.export_intermediate(self.state)
            if on_step is not None:
                on_step(result)
        if saved_at != self.state.total_steps:
            self._save(stage.optimizer)
        return self.state.step >= stage.steps

    def _writers(self) -> Writers:
        context = self.context
        if not self.accelerator.is_main_process:
            return Writers()
        writers = Writers(
            MetricsFile(context.folder / "metrics.jsonl", resume_at=self.state.total_steps),
            ConsoleWriter(
                context.name, sum(context.num_steps), self.state.total_steps, context.console
            ),
            RisingLossWriter(context.warn),
        )
        if self.config.logging.trackers:
            writers.add(TrackerWriter(self.accelerator, context.name, self.config))
        return writers

    def _save(self, optimizer: torch.optim.Optimizer) -> None:
        if self.accelerator.is_main_process:
            checkpoint.save(
                self.context.folder / "checkpoints",
                self.state,
                self.module,
                optimizer,
                keep=self.config.checkpoint.keep,
            )
        self.accelerator.wait_for_everyone()

    def _outcome(self, *, finished: bool) -> Outcome:
        exporter = self.context.exporter
        model, warnings = exporter.export_final(self.state) if finished else (None, ())
        return Outcome(
            finished=finished,
            model=model,
            total_steps=self.state.total_steps,
            tokens=self.state.tokens,
            warnings=warnings,
        )

    def _say(self, line: str) -> None:
        self.context.console.print(line, highlight=False)
