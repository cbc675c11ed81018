"""Building a run: device, objectives, open numbers, model and exporter, in that order.

    RunRequest: recipe, corpus, folder --build_run--> RunContext: the same with a module to train

A recipe may leave numbers open: `batch.micro_rows: auto`, or the steps where a time is given. They
are measured before the model is built (`estimates/planning.py`) and kept in the run's folder, for a
resumed run.

The model is an encoder, or an encoder-decoder where the recipe has `model.decoder`. A model to
start from (`model.init_from`) whose vocabulary is not the corpus's is transplanted first into
RUN/transplanted (MetaXLM, Chi et al., 2021, section 3.2); the run continues from there.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import torch
from accelerate import Accelerator
from rich.console import Console

from isoglot.batching.counter_rng import key_of
from isoglot.batching.loader import worker_note
from isoglot.corpus import Corpus
from isoglot.folders import model_folder
from isoglot.models.cpu_precision import precision_note
from isoglot.objectives.base import Objective
from isoglot.pretraining.config import PretrainConfig, objectives_of, objectives_to_fit
from isoglot.pretraining.estimates.measuring import RunMeasurer, TimeBudget
from isoglot.pretraining.estimates.planning import (
    RunPlan,
    make_plan,
    needs_plan,
    stored_plan,
    warmup_notes,
)
from isoglot.pretraining.export import Exporter
from isoglot.pretraining.memory_saving import build_device, save_memory
from isoglot.pretraining.monitoring.writers import PrepareProgress
from isoglot.pretraining.optimizers.weight_average import WeightAverage
from isoglot.pretraining.processes.distributed import check_processes
from isoglot.pretraining.processes.initial_weights import build_on_first_process
from isoglot.pretraining.processes.waiting import main_process_first, wait_for_all
from isoglot.pretraining.requirements import (
    TRANSPLANTED,
    check_corpus,
    check_language_tokens,
    check_tokenizer,
    has_begun,
)
from isoglot.pretraining.runtime import enable_determinism
from isoglot.pretraining.stage_data import (
    describe_missing,
    describe_order,
    num_steps,
    with_corpus_defaults,
)
from isoglot.pretraining.train_module import Seq2SeqTrainModule, TrainModule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isoglot.models.config import ModelConfig
    from isoglot.models.encoder import Encoder
    from isoglot.models.transplant.report import TransplantReport


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """What a run is built from."""

    recipe: PretrainConfig
    """As it was given: without the defaults that follow from the corpus, its numbers open."""
    corpus: Corpus
    folder: Path
    name: str
    recipe_text: str | Callable[[PretrainConfig], str] | None = None
    """The recipe as text, or what writes a recipe whose open numbers have been found."""
    console: Console
    accelerator: Accelerator
    budget: TimeBudget | None = None
    """Time for the run; its stages get the steps that fill it."""
    resume: bool = False
    part_of_plan: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """What stays the same from the first stage of a run to its last."""

    config: PretrainConfig
    """The recipe with the corpus's defaults and without open numbers."""
    corpus: Corpus
    folder: Path
    name: str
    recipe_text: str | None
    console: Console
    """Where progress is shown; quiet on all processes but the main one."""
    accelerator: Accelerator
    objectives: dict[str, Objective]
    """By name, prepared for the corpus."""
    num_steps: list[int]
    """Steps of each stage."""
    module: TrainModule
    exporter: Exporter
    part_of_plan: bool = False
    """Whether something else has planned its passes and shows how long the whole still takes."""
    told: set[str] = field(default_factory=set)
    """Notes that were printed once and are not printed again."""

    @property
    def known_objectives(self) -> dict[str, Objective]:
        """The objectives that are trained, and those whose sequences must only fit the rows."""
        return {**objectives_to_fit(self.config), **self.objectives}

    def warn(self, message: str, *, kind: Literal["note", "warning"] = "note") -> None:
        """Tell the user something about the run."""
        label = "[yellow]note[/]" if kind == "note" else "[bold red]warning[/]"
        self.console.print(f"{label}: {message}", highlight=False, soft_wrap=True)


def build_run(request: RunRequest) -> RunContext:
    """Build what a run needs before its first stage."""
    recipe, corpus, accelerator = request.recipe, request.corpus, request.accelerator
    on_gpu = accelerator.device.type == "cuda"
    check_corpus(recipe, corpus)
    check_processes(recipe, accelerator.num_processes)
    if not accelerator.is_main_process:
        request = replace(request, console=Console(quiet=True))
    console = request.console
    if on_gpu and recipe.deterministic:
        enable_determinism()
    torch.manual_seed(key_of(recipe.seed, "weights") >> 1)
    for told in (describe_missing(recipe, corpus), describe_order(recipe, corpus)):
        if told is not None:
            console.print(f"[yellow]note[/]: {told}", highlight=False, soft_wrap=True)
    config = with_corpus_defaults(recipe, corpus)
    objectives = prepare_objectives(config, corpus, console, accelerator)
    plan, steps, model = _resolve(request, config, objectives)
    if plan is not None:
        config, recipe = plan.apply(config), plan.apply(recipe)
    text = request.recipe_text(recipe) if callable(request.recipe_text) else request.recipe_text
    module, note = _build_module(replace(config, model=model), objectives, corpus, accelerator)
    if config.averaging is not None:
        module.average = WeightAverage(module, config.averaging)
    context = RunContext(
        config=config,
        corpus=corpus,
        folder=request.folder,
        name=request.name,
        recipe_text=text,
        console=console,
        accelerator=accelerator,
        objectives=objectives,
        num_steps=steps,
        module=module,
        exporter=Exporter(
            config=config,
            corpus=corpus,
            module=module,
            accelerator=accelerator,
            folder=request.folder,
            name=request.name,
            recipe_text=text,
            console=console,
        ),
        part_of_plan=request.part_of_plan,
    )
    num_weights = sum(weight.numel() for weight in module.parameters())
    local_processes = int(os.environ.get("LOCAL_WORLD_SIZE", accelerator.num_processes))
    for told in (
        worker_note(config.loader, local_processes, on_gpu=on_gpu),
        config.distributed.note(accelerator.num_processes),
        precision_note(config.precision, on_gpu=on_gpu, num_weights=num_weights),
        note,
        None if has_begun(request.folder) else _head_note(module.encoder, model),
        # with hours, planning has said it of the steps that it found
        *([] if request.budget else warmup_notes(config, steps)),
    ):
        if told:
            context.warn(told)
    return context


def _head_note(encoder: Encoder, settings: ModelConfig) -> str | None:
    """A sentence on an LM head that is not in the folder of the model."""
    if not encoder.new_weights:
        return None
    return (
        f"{settings.init_from} lacks {len(encoder.new_weights)} weights of the LM head "
        f"({encoder.new_weights[0]}, ...): these begin random."
    )


def _build_module(
    config: PretrainConfig,
    objectives: Mapping[str, Objective],
    corpus: Corpus,
    accelerator: Accelerator,
) -> tuple[TrainModule, str | None]:
    """The module of a run, whole on the device or still to be sharded; and a note, if there is one.

    The weights of one that is sharded are in the host memory of the first process.
    """

    def build() -> TrainModule:
        return build_train_module(
            config.model, objectives, corpus, row_length=config.batch.row_length
        )

    shards, note = config.distributed.shards(accelerator.num_processes), None
    with build_device(config.model, config.memory, accelerator.device):
        if shards:
            module, note = build_on_first_process(build, accelerator)
        else:
            module = build()
    save_memory(module, config.memory, mixed_precision=accelerator.mixed_precision)
    if not shards:
        module.to(accelerator.device)  # else in parts, as the whole may not fit
    return module, note


def prepare_objectives(
    config: PretrainConfig, corpus: Corpus, console: Console, accelerator: Accelerator
) -> dict[str, Objective]:
    """The objectives of a run by name, with what they compute from the corpus."""
    # tables that an objective computes are made by one process, and kept
    with main_process_first(accelerator):
        progress = PrepareProgress(console)
        return {name: one.prepare(corpus, progress) for name, one in objectives_of(config).items()}


def _resolve(
    request: RunRequest, config: PretrainConfig, objectives: dict[str, Objective]
) -> tuple[RunPlan | None, list[int], ModelConfig]:
    """The plan of a run, if it needs one, the steps of its stages, and the model it starts from.

    `config` is the recipe with the defaults of the corpus; a plan belongs to the recipe as given.
    """
    corpus, folder, accelerator = request.corpus, request.folder, request.accelerator
    plan = None
    if request.resume:
        plan = stored_plan(request.recipe, folder, request.budget, accelerator.num_processes)
    is_open = plan is None and needs_plan(request.recipe, request.budget)
    config = config if plan is None else plan.apply(config)
    # a shape that cannot be is refused before a model is transplanted
    steps = [] if is_open else count_steps(config, corpus, objectives)
    # one process transplants; a run that has begun has been transplanted
    with main_process_first(accelerator):
        transplant_now = accelerator.is_main_process and not has_begun(folder)
        model = resolve_init(config, corpus, folder, request.console, transplant_now=transplant_now)
    if is_open:
        plan = _plan(request, replace(config, model=model), objectives)
        steps = count_steps(plan.apply(config), corpus, objectives)
    return plan, steps, model


def _plan(request: RunRequest, config: PretrainConfig, objectives: dict[str, Objective]) -> RunPlan:
    """Measure the open numbers of a run, and keep them in its folder."""
    corpus, accelerator = request.corpus, request.accelerator
    scratch = request.folder / ".trial"

    def steps_with(micro_rows: int) -> list[int]:
        shape = replace(config.batch, micro_rows=micro_rows)
        return count_steps(replace(config, batch=shape), corpus, objectives)

    measurer = RunMeasurer(
        config=config,
        corpus=corpus,
        scratch=scratch,
        accelerator=accelerator,
        objectives=objectives,
        console=request.console,
        steps=tuple(steps_with(config.batch.rows)),
        budget=request.budget,
    )
    try:
        with measurer:
            plan = make_plan(measurer, request.recipe, steps_with)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if accelerator.is_main_process:
        plan.write(request.folder)
    wait_for_all(accelerator)
    return plan


def count_steps(
    config: PretrainConfig, corpus: Corpus, objectives: Mapping[str, Objective]
) -> list[int]:
    """The steps of each stage."""
    known = {**objectives_to_fit(config), **objectives}
    return [
        num_steps(stage, corpus, known, config.batch, seed=config.seed, number=number)
        for number, stage in enumerate(config.stages)
    ]


def resolve_init(
    config: PretrainConfig, corpus: Corpus, folder: Path, console: Console, *, transplant_now: bool
) -> ModelConfig:
    """The model settings of a run, `init_from` pointing to the transplanted model where asked.

    Args:
        config: the recipe.
        corpus: what the model will be trained on.
        folder: the run's folder.
        console: shows how the vocabulary was matched.
        transplant_now: transplant here; otherwise another process or an earlier start did.

    Raises:
        IsoglotError: the model has another vocabulary than the corpus, or cannot be transplanted.
    """
    source = config.model.init_from
    if source is None:
        return config.model
    if config.transplant is None:
        model = replace(config.model, init_from=str(model_folder(source)))
        check_tokenizer(model, corpus)
        return model
    if transplant_now:
        from isoglot.models.transplant.run import transplant

        seed = key_of(config.seed, "transplant", config.transplant.seed) >> 1
        report = transplant(
            model_folder(source),
            corpus.tokenizer_folder,
            folder / TRANSPLANTED,
            replace(config.transplant, seed=seed),
        )
        console.print(_transplant_summary(source, report), highlight=False, soft_wrap=True)
    return replace(config.model, init_from=str(folder / TRANSPLANTED))


def _transplant_summary(source: str, report: TransplantReport) -> str:
    total = sum(report.kinds.values())
    kinds = ", ".join(f"{kind} {100 * n / total:.1f} %" for kind, n in report.kinds.items())
    return f"transplanted {source} into a vocabulary of {total:,} tokens: {kinds}"


def build_train_module(
    model: ModelConfig, objectives: Mapping[str, Objective], corpus: Corpus, *, row_length: int
) -> TrainModule:
    """The model that a run starts with, and its objectives' modules."""
    from isoglot.models.encoder import Encoder
    from isoglot.models.seq2seq import Seq2Seq

    if model.decoder is None:
        encoder = Encoder.build(model, corpus.vocabulary, languages=corpus.languages)
        encoder.check_length(row_length)
        return TrainModule(encoder, objectives, corpus)
    check_language_tokens(corpus)
    seq2seq = Seq2Seq.build(model, corpus.vocabulary, languages=corpus.languages)
    seq2seq.encoder.check_length(row_length)
    return Seq2SeqTrainModule(seq2seq, objectives, corpus)


def init_decoder(context: RunContext, stage: int) -> None:
    """Copy the encoder into the decoder before the first stage that decodes after others.

    A decoder that came with the model to start from is left as it is.
    """
    from isoglot.models.seq2seq_loading import is_seq2seq

    config = context.config
    if config.model.init_from is not None and is_seq2seq(config.model.init_from):
        return

    def uses_decoder(number: int) -> bool:
        names = config.objectives_in(number)
        return any(context.objectives[name].uses_decoder for name in names)

    first = stage > 0 and uses_decoder(stage) and not any(map(uses_decoder, range(stage)))
    if first and isinstance(context.module, Seq2SeqTrainModule):
        before = {name for number in range(stage) for name in config.objectives_in(number)}
        trained = any(context.objectives[name].uses_language_tokens for name in before)
        context.module.seq2seq.init_decoder(language_tokens_trained=trained)
