"""The memory that a run will need on each GPU, calculated before anything is trained.

    recipe, corpus --fake model, one real step of batches--> weights, gradients, moments, ...

`isoglot pretrain --estimate` prints it, in seconds and for models that this machine could not hold;
`--plan` (`estimate.py`) measures instead, on the machine that will train.

Weights, gradients and moments are counted exactly; activations are what a pass keeps for the
backward pass (`activations.py`). The peak is the highest of three moments: the backward pass of the
LM head, when logits and all activations exist; that of a layer; and the update.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Literal

from isoglot.batching.loader import Loader, LoaderConfig, open_streams
from isoglot.batching.schedules import MaskingRate, StageSchedules
from isoglot.errors import RecipeError
from isoglot.pretraining.config import objectives_of, objectives_to_fit
from isoglot.pretraining.estimates.activations import (
    KeptBytes,
    Passes,
    fake_tensors,
    kept_bytes,
    seq2seq_bytes,
    traced_settings,
)
from isoglot.pretraining.estimates.memory_parts import LogitBytes, ModelBytes
from isoglot.pretraining.estimates.shape_model import (
    build_encoder,
    build_module,
    model_config,
    with_layers,
)
from isoglot.pretraining.memory import gib
from isoglot.pretraining.requirements import check_corpus
from isoglot.pretraining.stage_data import with_corpus_defaults
from isoglot.pretraining.train_module import Seq2SeqTrainModule, TrainModule
from isoglot.types import Cursor, Seq2SeqBatch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isoglot.corpus import Corpus
    from isoglot.objectives.base import Objective
    from isoglot.pretraining.config import PretrainConfig, StageConfig
    from isoglot.types import Batch

Device = Literal["cuda", "cpu"]
_AUTO_TOKENS = 16_384
"""Tokens at a time that are assumed for `micro_rows: auto`, where its trial begins on a GPU."""
_SAMPLED_BATCHES = 4
"""Micro-batches that are built to count targets."""
_LAYER_GRADIENTS = 0.25
"""Gradients of a layer's activations that exist at once, as a share of the activations (measured
on a CPU with three shapes)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEstimate:
    """Bytes on one GPU in the stage that needs most."""

    stage: int
    """Index of that stage."""
    micro_rows: int
    """Rows at a time."""
    num_parameters: int
    """Weights of the model that is trained, of all processes together."""
    weights: int
    gradients: int
    moments: int
    momentum_encoders: int
    """Momentum encoders, queues and other tables of objectives."""
    exchange: int
    """DDP's buckets of gradients, or the weights that FSDP gathers."""
    activations: int
    logits: int
    """Logits, their gradient, and copies of the output embeddings and their gradient."""
    peak: int
    """The highest sum of what exists at one time."""
    host: int = 0
    """Memory of the host that one process needs besides: an offloaded optimizer."""
    host_first: int = 0
    """Memory of the host that the first process needs: all weights, before they are sharded."""

    def rows(self) -> list[tuple[str, str]]:
        """What the estimate says, line by line: (what, how much)."""
        named = {
            "weights": f"{self.num_parameters:,} in all",
            "gradients": "",
            "moments": "of the optimizer",
            "momentum_encoders": "and queues",
            "exchange": "buckets of gradients, or gathered weights",
            "activations": f"{self.micro_rows} rows at a time",
            "logits": "at target positions, with their gradient",
        }
        found = []
        for one in fields(self):
            value = getattr(self, one.name)
            if one.name in named and value:
                note = f" ({named[one.name]})" if named[one.name] else ""
                found.append((one.name.replace("_", " "), f"{gib(value)}{note}"))
        found.append(("total", f"{gib(self.peak)} at the highest, in stage {self.stage + 1}"))
        if self.host:
            found.append(("host memory", f"{gib(self.host)} for each process"))
        if self.host_first:
            note = f"{gib(self.host_first)} for the first process, before the model is sharded"
            found.append(("host memory", note))
        return found


def estimate_memory(
    config: PretrainConfig,
    corpus: Corpus,
    *,
    processes: int = 1,
    device: Device = "cuda",
) -> MemoryEstimate:
    """What a run of a recipe on a corpus needs on each of its GPUs.

    Args:
        config: the recipe; nothing of its model but the shape is read.
        corpus: a prepared corpus, for the vocabulary and the number of targets.
        processes: GPUs of the run.
        device: what it trains on.

    Raises:
        IsoglotError: there is no such model, or the batch does not divide by the processes.
    """
    check_corpus(config, corpus)
    config = with_corpus_defaults(config, corpus)
    config = replace(config, batch=replace(config.batch, micro_rows=_micro_rows(config, processes)))
    objectives = {name: one.prepare(corpus) for name, one in objectives_of(config).items()}
    passes = passes_of(config, device)
    settings = traced_settings(config.model, passes)
    shape = model_config(config.model, corpus, transplanted=config.transplant is not None)
    with fake_tensors(), warnings.catch_warnings():
        # of copying a fake encoder, for a momentum encoder
        warnings.filterwarnings("ignore", message="Accessing the data pointer of FakeTensor")
        module = build_module(shape, settings, objectives, corpus)
    kept = None
    if not isinstance(module, Seq2SeqTrainModule):
        batch = config.batch
        kept = kept_bytes(
            lambda layers: build_encoder(with_layers(shape, layers), settings, corpus),
            batch.micro_batch_rows,
            batch.row_length,
            passes,
        )
    stages = [
        _estimate_stage(config, corpus, objectives, module, kept, number, processes, passes)
        for number in range(len(config.stages))
    ]
    return max(stages, key=lambda one: one.peak)


def _micro_rows(config: PretrainConfig, processes: int) -> int:
    own, rest = divmod(config.batch.rows, processes)
    if rest or not own:
        raise RecipeError(
            f"batch.rows = {config.batch.rows} does not divide into parts for {processes} "
            f"processes. Choose batch.rows as a multiple of {processes}."
        )
    if config.batch.micro_rows != "auto":
        return min(config.batch.micro_rows, own)
    wanted = max(1, _AUTO_TOKENS // config.batch.row_length)
    return max(size for size in range(1, own + 1) if own % size == 0 and size <= wanted)


def passes_of(config: PretrainConfig, device: Device) -> Passes:
    """How the passes of a recipe run on a device."""
    on_gpu = device == "cuda"
    compiled = on_gpu and config.model.decoder is None
    return Passes(
        bf16=config.precision == "bf16" or (config.precision == "auto" and on_gpu),
        on_gpu=on_gpu,
        compiled=compiled if config.compile is None else config.compile,
        recompute=config.memory.activation_checkpointing == "blocks",
        bf16_weights=config.memory.weights == "bf16",
    )


def _estimate_stage(
    config: PretrainConfig,
    corpus: Corpus,
    objectives: Mapping[str, Objective],
    module: TrainModule,
    kept: KeptBytes | None,
    stage: int,
    processes: int,
    passes: Passes,
) -> MemoryEstimate:
    """What a stage needs: the numbers of its own batches."""
    batches = _some_batches(config, corpus, objectives, stage, passes)
    if kept is None:
        largest = max(seq2seq_bytes(module, batch, passes) for batch in batches)
        kept = KeptBytes(rest=largest, layer=0, recomputed_layer=0)
    targets = max(map(_num_targets, batches))
    return stage_memory(
        config, module, kept, passes, stage=stage, processes=processes, num_targets=targets
    )


def stage_memory(
    config: PretrainConfig,
    module: TrainModule,
    kept: KeptBytes,
    passes: Passes,
    *,
    stage: int = 0,
    processes: int = 1,
    num_targets: int,
) -> MemoryEstimate:
    """What a stage needs on one GPU.

    Args:
        config: the recipe, `batch.micro_rows` as a number.
        module: what is trained, on fake tensors.
        kept: the activations of a micro-batch.
        passes: how passes run.
        stage: index of the stage.
        processes: GPUs of the run.
        num_targets: target positions of a micro-batch.
    """
    activations = kept.all_layers(int(module.encoder.model.config.num_hidden_layers))
    head = LogitBytes(config.model, module, passes, num_targets)
    model = ModelBytes(config, module, stage, processes)
    whole = kept.recomputed_layer or kept.layer
    one_layer = (whole if kept.recomputed_layer else 0) + round(_LAYER_GRADIENTS * whole)
    accumulates = config.batch.rows // processes > config.batch.micro_batch_rows
    fixed = model.weights + model.moments + model.momentum_encoders + model.exchange
    before = model.gradients if accumulates else 0  # of earlier micro-batches
    peak = fixed + max(
        before + activations + head.bytes,
        before + activations + head.gradient + one_layer,
        model.gradients + 2 * head.gradient,
        model.gradients + model.update_bytes,
    )
    return MemoryEstimate(
        stage=stage,
        micro_rows=config.batch.micro_batch_rows,
        num_parameters=model.num_parameters,
        weights=model.weights,
        gradients=model.gradients,
        moments=model.moments,
        momentum_encoders=model.momentum_encoders,
        exchange=model.exchange,
        activations=activations + (one_layer if kept.recomputed_layer else 0),
        logits=head.bytes,
        peak=peak,
        host=model.host,
        host_first=model.host_first,
    )


def _some_batches(
    config: PretrainConfig,
    corpus: Corpus,
    objectives: Mapping[str, Objective],
    stage: int,
    passes: Passes,
) -> list[Batch]:
    """A few micro-batches of a stage, built from real examples."""
    own = config.batch.micro_batch_rows
    shape = replace(config.batch, rows=min(config.batch.rows, _SAMPLED_BATCHES * own) // own * own)
    known = {**objectives_to_fit(config), **objectives}
    opened = open_streams(corpus, config.stages[stage].streams, known, row_length=shape.row_length)
    pads = passes.on_gpu if shape.pad_targets is None else shape.pad_targets
    loader = Loader(
        corpus, opened, shape, seed=config.seed, stage=stage, workers=LoaderConfig(),
        pad_targets=pads, schedules=_most_targets(config.stages[stage]),
    )  # fmt: skip
    steps = loader.steps(Cursor())
    return next(steps)


def _most_targets(stage: StageConfig) -> StageSchedules:
    """The schedules of a stage as in the step with most targets."""
    rate = stage.masking_rate
    return StageSchedules(masking_rate=None if rate is None else MaskingRate(start=rate.highest))


def _num_targets(batch: Batch) -> int:
    """Target positions at which logits exist together."""
    if isinstance(batch, Seq2SeqBatch):
        return max(len(batch.targets), len(batch.decoding.targets))
    return len(batch.targets)
