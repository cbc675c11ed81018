"""Settings of a pre-training run, and the recipe that names them.

Each part of the library owns its settings class; this file composes them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Literal

from accelerate.utils import LoggerType
from typing_extensions import override

from isoglot.batching.counter_rng import key_of
from isoglot.batching.loader import LoaderConfig
from isoglot.batching.planner import BatchConfig
from isoglot.batching.schedules import BatchWarmup, MaskingRate, StageSchedules
from isoglot.batching.streams import StreamConfig
from isoglot.errors import RecipeError, nearest, require, require_name
from isoglot.models.config import ExportConfig, ModelConfig
from isoglot.models.transplant.config import TransplantConfig
from isoglot.objectives import Objective, find_objective
from isoglot.pretraining.checkpoints.checkpoint import CheckpointConfig
from isoglot.pretraining.memory_config import MemoryConfig
from isoglot.pretraining.monitoring.early_stopping import EarlyStoppingConfig
from isoglot.pretraining.optimizers.optimizer import OptimizerConfig
from isoglot.pretraining.optimizers.weight_average import AveragingConfig
from isoglot.pretraining.processes.distributed import DistributedConfig
from isoglot.ranges import NumSteps, Range, Seed, check_ranges

if TYPE_CHECKING:
    from isoglot.corpus import Corpus


@dataclass(frozen=True, slots=True, kw_only=True)
class StageConfig:
    """One stage of training: its streams and its length. Weights carry over from stage to stage."""

    steps: Annotated[int | None, Range(1, 10**9)] = None
    """Optimizer steps of this stage; none: `epochs` decides."""
    epochs: Annotated[float | None, Range(0, 1e6, above=True)] = None
    """Passes over the examples of the streams; with `steps` too, the shorter of both counts."""
    streams: dict[str, StreamConfig]
    """The streams it draws from, each with the objectives that read it."""
    optimizer: OptimizerConfig | None = None
    """This stage's own optimizer settings; none means the recipe's."""
    keep_optimizer: bool = False
    """Keep the optimizer's moments of the stage before instead of starting from zero."""
    # not in `repr`, which feeds fingerprints of runs that were made before these settings
    masking_rate: MaskingRate | None = field(default=None, repr=False)
    """The masking rate of `mlm` and `tlm` from step to step; none: that of their own settings."""
    batch_warmup: BatchWarmup | None = field(default=None, repr=False)
    """Batch-size warm-up: fewer rows in the first steps; none: `batch.rows` from the first on."""

    def __post_init__(self) -> None:
        require(self.steps is not None or self.epochs is not None, "a stage needs steps, or epochs")
        check_ranges(self)
        require(len(self.streams) > 0, "a stage needs a stream to draw from")
        for name in self.streams:
            require_name(name, "streams")

    @property
    def changing(self) -> tuple[object, ...]:
        """The settings that make numbers change from step to step: nothing without them."""
        alphas = [(name, one.end_alpha) for name, one in self.streams.items()]
        found = [one for one in alphas if one[1] is not None]
        others = (self.masking_rate, self.batch_warmup)
        return (*found, *(one for one in others if one is not None))

    def schedules(self, steps: int) -> StageSchedules:
        """What changes from step to step of so many."""
        return StageSchedules(
            steps=steps, masking_rate=self.masking_rate, batch_warmup=self.batch_warmup
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LossConfig:
    """How the objectives' losses are combined."""

    weighting: Literal["mean", "targets"] = "mean"
    """`mean`: each objective's mean loss counts by its weight; `targets`: each target does."""
    not_finite: Literal["stop", "skip"] = "stop"
    """On a non-finite loss: stop and write the batch to the run's folder, or skip the update."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggingConfig:
    """What is recorded during training."""

    every_steps: NumSteps = 1
    """Steps between two lines of metrics.jsonl."""
    validate_every_steps: Annotated[int, Range(0, 10**9)] = 1000
    """Steps between two validations on the held-out text of each language; 0: only at the end."""
    validate_examples: Annotated[int, Range(1, 10**9)] = 200
    """Held-out examples of each language to validate on."""
    trackers: tuple[str, ...] = ("tensorboard",)
    """Trackers of accelerate to send metrics to (tensorboard, wandb, ...); none is fine."""

    def __post_init__(self) -> None:
        check_ranges(self)
        known = [str(kind.value) for kind in LoggerType if kind.value != "all"]
        for name in self.trackers:
            require(name in known, f"there is no tracker {name!r}: {nearest(name, known)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PretrainConfig:
    """All settings of a run."""

    model: ModelConfig
    """The encoder: the model it is initialized from, or its size."""
    transplant: TransplantConfig | None = None
    """Give the model of init_from the corpus's vocabulary first (MetaXLM); none: it has it."""
    stages: tuple[StageConfig, ...]
    """The stages, in order."""
    objectives: dict[str, Objective] = field(default_factory=dict)
    """Settings of the objectives that streams name; one left out has its defaults."""
    batch: BatchConfig = field(default_factory=BatchConfig)
    """The shape of a step."""
    loader: LoaderConfig = field(default_factory=LoaderConfig)
    """How batches are built ahead."""
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    """The optimizer and its learning rate."""
    memory: MemoryConfig = field(default_factory=MemoryConfig)
    """How the run saves memory."""
    loss: LossConfig = field(default_factory=LossConfig)
    """How the objectives' losses are combined."""
    checkpoint: CheckpointConfig = field(default_factory=CheckpointConfig)
    """When checkpoints are written."""
    logging: LoggingConfig = field(default_factory=LoggingConfig)
    """What is recorded during training."""
    early_stopping: EarlyStoppingConfig | None = None
    """End the last stage when held-out scores no longer improve; none: take all steps."""
    averaging: AveragingConfig | None = None
    """Validate and export an exponential moving average of the weights; none: the last weights."""
    export: ExportConfig = field(default_factory=ExportConfig)
    """What is written beside the plain Hugging Face folder."""
    precision: Literal["auto", "float32", "bf16"] = "auto"
    """Mixed precision: bf16 autocast on a GPU, float32 on a CPU (auto), or always one of them; bf16
    on a CPU is tried in a process of its own first."""
    distributed: DistributedConfig = field(default_factory=DistributedConfig)
    """How the processes of a run share the model."""
    deterministic: bool = True
    """On a GPU, use only deterministic kernels, for exact resume."""
    compile: bool | None = None
    """Compile the encoder; none: on a GPU."""
    compile_regions: bool | None = None
    """Compile one transformer layer for all of them (regional compilation) in place of the whole
    model; none: with more than 12 layers, or where FSDP shards them."""
    seed: Seed = 0
    """Random seed of the data order, masks, new weights and dropout."""

    def __post_init__(self) -> None:
        check_ranges(self)
        require(len(self.stages) > 0, "a recipe needs a stage")
        for name in self.objectives:
            require_name(name, "objectives")
        self.model.check_source()
        require(
            self.transplant is None or self.model.init_from is not None,
            "transplant: name the model to transplant with model.init_from, or leave it out.",
        )
        require(
            not (self.deterministic and self.model.attention == "cudnn"),
            "model.attention: cudnn is not deterministic. Set deterministic: false, "
            "or leave model.attention at auto.",
        )
        require(
            self.early_stopping is None or self.logging.validate_every_steps > 0,
            "early_stopping: there is nothing to watch with logging.validate_every_steps: 0. Set "
            "the steps between two validations.",
        )
        for stage in self.stages:
            if stage.batch_warmup is not None:
                stage.batch_warmup.check(self.batch.rows)
        if self.averaging is not None:
            self.averaging.check(self.distributed.strategy, self.memory.weights)
        optimizers = tuple(self.optimizer_in(stage) for stage in range(len(self.stages)))
        self.memory.check(optimizers, self.precision, self.distributed.strategy)

    def objectives_in(self, stage: int) -> list[str]:
        """Names of the objectives that a stage trains, in the order in which streams name them."""
        streams = self.stages[stage].streams.values()
        return list(dict.fromkeys(name for stream in streams for name in stream.objectives))

    @property
    def row_unit(self) -> int:
        """The greatest number of rows that divides every step: micro-batches must divide it."""
        warmups = (one.batch_warmup for one in self.stages if one.batch_warmup is not None)
        parts = (part for one in warmups for part in (one.start_rows, one.step_size))
        return math.gcd(self.batch.rows, *parts)

    def optimizer_in(self, stage: int) -> OptimizerConfig:
        """A stage's own optimizer settings, or else the recipe's."""
        return self.stages[stage].optimizer or self.optimizer

    def fingerprint(self) -> str:
        """Hash of the settings that decide the numbers; logging, loading and processes are not."""
        deciding = (
            self.model,
            *((self.transplant,) if self.transplant is not None else ()),
            self.stages,
            self.objectives,
            self.batch,
            self.optimizer,
            self.loss,
            self.precision,
            self.deterministic,
            self.seed,
            *self._block_settings(),
            *((number, one.changing) for number, one in enumerate(self.stages) if one.changing),
            *((self.averaging,) if self.averaging is not None else ()),
            *((("rope_theta", self.model.rope_theta),) if self.model.rope_theta else ()),
            *self._stopping_settings(),
            *self.memory.deciding(),
        )
        return f"{key_of(repr(deciding)):016x}"

    def _block_settings(self) -> tuple[object, ...]:
        """The streams that are shuffled by blocks, and how: nothing without them."""
        return tuple(
            (number, name, stream.blocks_together)
            for number, stage in enumerate(self.stages)
            for name, stream in stage.streams.items()
            if stream.blocks_together is not None
        )

    def _stopping_settings(self) -> tuple[object, ...]:
        """What decides the last step besides `stages`: nothing without early stopping."""
        if self.early_stopping is None:
            return ()
        logging = self.logging
        return self.early_stopping, logging.validate_every_steps, logging.validate_examples


def data_fingerprint(config: PretrainConfig, corpus: Corpus) -> str:
    """Fingerprint of the data that the streams read: the corpus's, and the knowledge store's."""
    streams = [stream for stage in config.stages for stream in stage.streams.values()]
    found = sorted({stream.fingerprint(corpus) for stream in streams})
    return found[0] if len(found) == 1 else f"{key_of(*found):016x}"


def objectives_of(config: PretrainConfig) -> dict[str, Objective]:
    """The objectives that the streams name, with the recipe's settings or their defaults."""
    found: dict[str, Objective] = {}
    for stage in config.stages:
        for stream in stage.streams.values():
            for name in stream.objectives:
                objective = config.objectives.get(name) or find_objective(name)()
                if stream.kind not in objective.reads:
                    raise RecipeError(
                        f"the objective {name!r} reads {' or '.join(objective.reads)}, not the "
                        f"stream {stream.kind!r}. Name it under a stream of such a kind."
                    )
                depends_on = objective.depends_on()
                if depends_on and not set(depends_on) & set(stream.objectives):
                    raise RecipeError(
                        f"the objective {name!r} reads the sequences of "
                        f"{' or '.join(depends_on)}: add {depends_on[0]!r} to the objectives of "
                        f"the stream {stream.kind!r}."
                    )
                found[name] = objective
    for objective in found.values():
        objective.check_together(found)
    for name, objective in found.items():
        if objective.uses_language_tokens and config.model.decoder is None:
            needs = "a decoder" if objective.uses_decoder else "language tokens (start_with)"
            raise RecipeError(
                f"the objective {name!r} needs {needs}, and the model is an encoder. Set "
                "model.decoder: {} for one with the encoder's shape."
            )
    _check_masking_rates(config, found)
    return found


def _check_masking_rates(config: PretrainConfig, objectives: dict[str, Objective]) -> None:
    """Refuse a stage's `masking_rate` that none of its objectives has."""
    for number, stage in enumerate(config.stages):
        if stage.masking_rate is None:
            continue
        names = config.objectives_in(number)
        if all(objectives[name].with_masking_rate(0.5) is objectives[name] for name in names):
            raise RecipeError(
                f"stages.{number}.masking_rate is for the objectives mlm and tlm, and the stage "
                f"trains {', '.join(names)}. Leave it out, or set the rate of the objective itself."
            )


def objectives_to_fit(config: PretrainConfig) -> dict[str, Objective]:
    """The objectives that streams name only for the lengths of their sequences (`must_fit`)."""
    names = {n for stage in config.stages for one in stage.streams.values() for n in one.must_fit}
    return {name: config.objectives.get(name) or find_objective(name)() for name in sorted(names)}


# without slots: a class cannot have two parents that both have them
@dataclass(frozen=True, kw_only=True)
class RecipeInfo:
    """What a recipe is, for its readers."""

    name: str
    """Name of the recipe, and of the run's folder by default."""
    summary: str = ""
    """One line: what it trains."""
    paper: str = ""
    """The paper it follows."""
    differs: dict[str, str] = field(default_factory=dict)
    """Where it differs from the paper, and why, by topic; inherited, null withdraws a topic."""
    corpus: str | None = None
    """The corpus it uses by default: a prepared folder, or a generated one (`testbed`, its English
    part `testbed-en`, or `testbed-zipf`, in which words prefer some neighbors)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe(PretrainConfig, RecipeInfo):
    """A pre-training run with a name: what a recipe file says."""

    @override
    def __post_init__(self) -> None:
        require_name(self.name, "name")
        PretrainConfig.__post_init__(self)
