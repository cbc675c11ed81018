"""What a pre-training run needs to know: the settings of its parts, put together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from accelerate.utils import LoggerType

from isoglot.batching.loader import LoaderConfig
from isoglot.batching.permutation import key_of
from isoglot.batching.planner import BatchConfig
from isoglot.batching.streams import StreamConfig
from isoglot.errors import RecipeError, nearest, require
from isoglot.models import ExportConfig, ModelConfig
from isoglot.models.transplant import TransplantConfig
from isoglot.objectives import Objective, find_objective
from isoglot.objectives.slots import check_positions
from isoglot.pretrain.checkpoint import CheckpointConfig
from isoglot.pretrain.optim import OptimizerConfig
from isoglot.pretrain.stage import LossConfig

if TYPE_CHECKING:
    from isoglot.corpus import Corpus


@dataclass(frozen=True, slots=True, kw_only=True)
class StageConfig:
    """One stage of training: streams, and for how long. Weights go on from stage to stage."""

    steps: int | None = None
    """Optimizer steps of this stage; none: its epochs say."""
    epochs: float | None = None
    """How often to draw as many examples as the streams have; with steps, what ends first."""
    streams: dict[str, StreamConfig]
    """The streams it draws from, each with the objectives that read it."""
    optimizer: OptimizerConfig | None = None
    """This stage's own optimizer settings; none means the recipe's."""
    keep_optimizer: bool = False
    """Go on with the moments of the stage before instead of starting with none."""

    def __post_init__(self) -> None:
        require(self.steps is not None or self.epochs is not None, "a stage needs steps, or epochs")
        require(self.steps is None or self.steps >= 1, "a stage needs steps: 1 or more")
        require(self.epochs is None or self.epochs > 0, "a stage needs epochs: above 0")
        require(len(self.streams) > 0, "a stage needs a stream to draw from")


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchConfig:
    """What is written down while training."""

    log_every: int = 1
    """Steps between two lines of metrics.jsonl."""
    validate_every: int = 1000
    """Steps between two validations on the held-out text of each language; 0: only at the end."""
    validate_most: int = 200
    """Held-out examples of each language to validate on."""
    trackers: tuple[str, ...] = ("tensorboard",)
    """Trackers of accelerate to send metrics to (tensorboard, wandb, ...); none is fine."""

    def __post_init__(self) -> None:
        require(self.log_every >= 1, "watch.log_every must be 1 or more")
        require(self.validate_every >= 0, "watch.validate_every must not be negative")
        known = [str(kind.value) for kind in LoggerType if kind.value != "all"]
        for name in self.trackers:
            require(name in known, f"there is no tracker {name!r}: {nearest(name, known)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PretrainConfig:
    """All settings of a run."""

    model: ModelConfig
    """The encoder: where it starts, or its size."""
    transplant: TransplantConfig | None = None
    """Give the start the corpus's vocabulary first (MetaXLM); none: it has it already."""
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
    loss: LossConfig = field(default_factory=LossConfig)
    """How the objectives' losses are joined."""
    checkpoints: CheckpointConfig = field(default_factory=CheckpointConfig)
    """When checkpoints are written."""
    watch: WatchConfig = field(default_factory=WatchConfig)
    """What is written down."""
    export: ExportConfig = field(default_factory=ExportConfig)
    """What is written beside the plain Hugging Face folder."""
    precision: Literal["auto", "float32", "bf16"] = "auto"
    """Arithmetic: bf16 on a GPU and float32 elsewhere (auto), or always one of them."""
    deterministic: bool = True
    """On a GPU, use only kernels that give the same bits twice, for exact resume."""
    compile: bool | None = None
    """Compile the encoder; none: on a GPU."""
    seed: int = 0
    """Decides the order of the data, the masks, new weights and dropout."""

    def __post_init__(self) -> None:
        require(len(self.stages) > 0, "a recipe needs a stage")
        require(
            self.transplant is None or self.model.start is not None,
            "transplant: there is nothing to transplant. Name a model with model.start, or leave "
            "transplant out.",
        )
        require(
            not (self.deterministic and self.model.attention == "cudnn"),
            "model.attention: cudnn does not give the same bits twice. Set deterministic: false, "
            "or leave model.attention at auto.",
        )

    def objectives_in(self, stage: int) -> list[str]:
        """Names of the objectives that a stage trains, in the order in which streams name them."""
        streams = self.stages[stage].streams.values()
        return list(dict.fromkeys(name for stream in streams for name in stream.objectives))

    def optimizer_in(self, stage: int) -> OptimizerConfig:
        """A stage's own optimizer settings, or else the recipe's."""
        return self.stages[stage].optimizer or self.optimizer

    def fingerprint(self) -> str:
        """Of what decides the numbers; not of what is written down or how data is loaded."""
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
        )
        return f"{key_of(repr(deciding)):016x}"


def data_fingerprint(config: PretrainConfig, corpus: Corpus) -> str:
    """Of what the streams read of a corpus: the corpus's own, unless they read knowledge too."""
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
                        f"stream {stream.kind!r}."
                    )
                hosts = objective.hosts()
                if hosts and not set(hosts) & set(stream.objectives):
                    raise RecipeError(
                        f"the objective {name!r} is computed at the hidden tokens of "
                        f"{' or '.join(hosts)}, and a stream that names it has none of them. Add "
                        f"{hosts[0]!r} to its objectives."
                    )
                found[name] = objective
    check_positions(found)
    writing = [name for name, objective in found.items() if objective.decodes]
    if writing and config.model.decoder is None:
        raise RecipeError(
            f"the objective {writing[0]!r} needs a decoder, and the model is an encoder. Set "
            "model.decoder: {} for one with the encoder's shape."
        )
    return found
