"""GPU hours of a command, from the recipe's tokens, the model's shape and speeds measured here.

Pre-training: the tokens per second that benchmarks/race measured on an H200 for the same kind of
input, times the arithmetic of a token of the measured shape over that of the recipe's.
Fine-tuning has not been timed: it pads its batches as transformers' Trainer does, so it is counted
at the arithmetic rate that the same benchmark measured for the Trainer. Generation
(back-translation and `isoglot translate`) has not been timed on a GPU and is not counted.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isoglot.models.config import SHAPES

if TYPE_CHECKING:
    from isoglot.finetuning.settings import FinetuneConfig, FinetuneRequest
    from isoglot.pretraining.config import PretrainConfig, StageConfig
    from isoglot.tasks.base import Task

_RACE = Path(__file__).parent.parent / "benchmarks/race/results/race-NVIDIA-H200.json"
_DETERMINISTIC = 516_775 / 543_665
"""Speed of `deterministic: true` over that without it, in one run on an H200 (docs/speed.md)."""
_UPDATE_SECONDS = 0.003
"""AdamW and clipping of the measured shape, once a step (docs/speed.md)."""
_MASKED = 0.15
_FORWARD_AND_BACKWARD = 6
PAIRS_A_STEP = 128
"""PPA's batch, which a step of its recipe holds about (its `differs`)."""
PPA_PAIRS = {
    "fr": 1_800_000,
    "es": 1_700_000,
    "de": 1_700_000,
    "bg": 467_000,
    "ar": 2_000_000,
    "zh": 2_000_000,
    "hi": 800_000,
}
"""Pairs of 10 to 128 tokens, at most 2M a language (PPA, Table 1, Ours (2M))."""
TRAIN_EXAMPLES = {
    "xnli": 392_702,
    "squad": 87_599,
    "conll": 14_041,
    "wikiann": 20_000,
    "ud-pos": 12_544,
    "paws-x": 49_401,
    "tydiqa": 3_696,
}
"""English training examples: the data sets' own numbers (docs of the tasks)."""
_SHORT = {"xnli": 45, "paws-x": 60, "conll": 30, "wikiann": 20, "ud-pos": 30}
"""Tokens of an example, about; question answering fills its windows."""


@dataclass(frozen=True)
class ModelShape:
    """What decides the arithmetic of a token and the size of a checkpoint."""

    layers: int
    width: int
    vocabulary: int
    length: int = 512
    """Positions, and tokens of a full row."""

    @property
    def body(self) -> int:
        """Weights of the layers: attention 4 w², feed-forward 8 w²."""
        return self.layers * 12 * self.width**2

    @property
    def weights(self) -> int:
        """All weights: the embeddings, tied to the LM head, and the layers."""
        return self.body + (self.vocabulary + self.length) * self.width + self.width**2

    def operations(self, *, masked: float = _MASKED) -> float:
        """Floating-point operations of a trained token (benchmarks/race/flops.py)."""
        head = self.width**2 + self.width * self.vocabulary
        attention = 2 * self.layers * self.width * self.length
        return _FORWARD_AND_BACKWARD * (self.body + attention + masked * head)


_MEASURED_SHAPE = ModelShape(layers=12, width=768, vocabulary=250_002)
HUB = {
    "xlm-roberta-base": ModelShape(layers=12, width=768, vocabulary=250_002),
    "xlm-roberta-large": ModelShape(layers=24, width=1024, vocabulary=250_002),
    "bert-base-multilingual-cased": ModelShape(layers=12, width=768, vocabulary=119_547),
    "roberta-base": ModelShape(layers=12, width=768, vocabulary=50_265),
}
"""Models that recipes start from."""


def shape_of(recipe: PretrainConfig, vocabulary: int) -> ModelShape:
    """The shape that a recipe trains; a new or transplanted model has the corpus's vocabulary."""
    model, length = recipe.model, recipe.batch.row_length
    if model.init_from in HUB:
        own = HUB[model.init_from]
        words = own.vocabulary if recipe.transplant is None else vocabulary
        return ModelShape(own.layers, own.width, words, length)
    size = SHAPES[model.size or "base"]
    return ModelShape(
        model.num_layers or size.layers, model.hidden_size or size.hidden, vocabulary, length
    )


def steps_of(stage: StageConfig) -> float:
    """Steps of a stage; of one in epochs, those over PPA's pairs."""
    if stage.steps is not None:
        return stage.steps
    limit = max(getattr(stream, "max_pairs", None) or 0 for stream in stage.streams.values())
    pairs = sum(min(number, limit or number) for number in PPA_PAIRS.values())
    return (stage.epochs or 0) * pairs / PAIRS_A_STEP


def pretraining_hours(recipe: PretrainConfig, vocabulary: int) -> float:
    """Hours of all stages on one H200."""
    shape = shape_of(recipe, vocabulary)
    relative = shape.operations() / _MEASURED_SHAPE.operations()
    update = _UPDATE_SECONDS * shape.weights / _MEASURED_SHAPE.weights
    tokens = recipe.batch.rows * recipe.batch.row_length
    seconds = sum(
        steps_of(stage)
        * (tokens * relative / _measured(_input_of(stage), "tokens_per_second") + update)
        for stage in recipe.stages
    )
    return seconds / (_DETERMINISTIC if recipe.deterministic else 1) / 3600


def _input_of(stage: StageConfig) -> str:
    """The benchmark whose input is most like a stage's."""
    objectives = {name for stream in stage.streams.values() for name in stream.objectives}
    if "moco" in objectives:
        return "mix: ppa"
    if "btmlm" in objectives:
        return "mix: ernie-m, second stage"
    if len(stage.streams) > 1:
        return "mix: ernie-m, first stage"
    return "pairs: Isoglot" if "parallel" in stage.streams else "rows: Isoglot"


@cache
def _measured(name: str, what: str) -> float:
    found = json.loads(_RACE.read_text(encoding="utf-8"))["found"][name]
    return float(found[what])


def finetuning_hours(shape: ModelShape, task: Task[Any, Any], request: FinetuneRequest) -> float:
    """Hours of all trainings of a task: seeds, and languages that are trained one by one."""
    from isoglot.finetuning.protocols import settings_for
    from isoglot.tasks.language_sets import LANGUAGE_SETS

    settings = settings_for(request, task)
    name = "squad" if task.name in ("mlqa", "xquad") else task.name
    languages = LANGUAGE_SETS.get(task.name, "en").split()
    if request.scenario.targets is not None:
        languages = [one for one in languages if one in request.scenario.targets]
    trainings = len(languages) if request.scenario.name.startswith("translate-train") else 1
    if request.scenario.name == "pooled":
        trainings = len(languages)
    # code-switched pairs are two for each translation
    doubled = 2 if settings.code_switch and trainings > 1 else 1
    tokens = TRAIN_EXAMPLES[name] * _tokens(name, settings) * settings.epochs * doubled
    operations = tokens * shape.operations(masked=0) * trainings * len(request.seeds)
    kind = "pairs" if name in _SHORT else "rows"
    rate = _measured(f"{kind}: Trainer, default flags", "operations_per_second")
    return operations / rate / 3600


def _tokens(name: str, settings: FinetuneConfig) -> int:
    return min(_SHORT.get(name, settings.max_length), settings.max_length)
