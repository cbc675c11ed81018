"""Settings of fine-tuning: languages (scenario), hyperparameters, and the request that joins them.

| scenario | trained on | number of trainings |
|---|---|---|
| zero-shot | the source language | one for each source |
| translate-train | the source's training data, translated into the target | one for each target |
| translate-train-all | the source's training data in all languages | one |
| pooled | every language's own training data | one |
| supervised | the target's own training data | one for each target |

Several sources give every transfer direction (MetaXLM, Figure 6).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from isoglot.errors import nearest, require

Scenario = Literal["zero-shot", "translate-train", "translate-train-all", "pooled", "supervised"]
SCENARIOS: tuple[Scenario, ...] = get_args(Scenario)
TRANSLATED: tuple[Scenario, ...] = ("translate-train", "translate-train-all")
FROM_SOURCE: tuple[Scenario, ...] = ("zero-shot", *TRANSLATED)
"""Scenarios that start from the source language's training data."""
MULTILINGUAL: tuple[Scenario, ...] = ("translate-train-all", "pooled")
"""Scenarios that train one model on the data of all languages."""
Selection = Literal["source-dev", "all-dev", "last"]
"""The scored epoch: best on dev of the training languages, best on dev of all, or the last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioConfig:
    """A scenario and its languages."""

    name: Scenario = "zero-shot"
    """Training data: one language, translations of its data, or every language's own data."""
    sources: tuple[str, ...] = ("en",)
    """Source languages, one training each; for translate scenarios the one original language."""
    targets: tuple[str, ...] | None = None
    """Languages to score; none: all that the task has test data for."""
    train_languages: tuple[str, ...] | None = None
    """Training languages of translate-train-all and pooled; none: all with training data."""

    def __post_init__(self) -> None:
        # a name may come from a command line, unchecked
        require(
            self.name in SCENARIOS,
            f"there is no scenario {self.name!r}: {nearest(self.name, SCENARIOS)}",
        )
        require(len(self.sources) >= 1, "a scenario needs a source language")
        require(
            self.name not in TRANSLATED or len(self.sources) == 1,
            f"{self.name} has one original language: give one source",
        )
        require(
            self.train_languages is None or self.name in MULTILINGUAL,
            f"{self.name} does not pool training languages: use --train-languages only with the "
            f"scenario {' or '.join(MULTILINGUAL)}",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FinetuneConfig:
    """Hyperparameters of one fine-tuning run."""

    epochs: int = 3
    """Passes over the training data."""
    batch_size: int = 32
    """Sequences per optimizer step."""
    gradient_accumulation_steps: int = 1
    """Micro-batches that a batch is split into, to save memory."""
    learning_rate: float = 2e-5
    """Peak learning rate of the head and, without layerwise_lr_decay, of the encoder."""
    layerwise_lr_decay: float = 1.0
    """Learning rate of a layer relative to the layer above it; 1: the same for all layers."""
    schedule: Literal["linear", "constant"] = "linear"
    """Learning rate schedule after warm-up."""
    warmup_ratio: float = 0.1
    """Warm-up as a share of all steps."""
    warmup_steps: int | None = None
    """Warm-up in optimizer steps; none: warmup_ratio decides."""
    weight_decay: float = 0.0
    """Decay of weight matrices and embeddings; biases and norms have none."""
    betas: tuple[float, float] = (0.9, 0.999)
    """Adam's decay rates of the two moments."""
    eps: float = 1e-8
    """Adam's addition to the denominator."""
    max_grad_norm: float = 1.0
    """Gradient clipping: the largest norm of the gradient."""
    dropout: float | None = None
    """Dropout of hidden states and attention; none: the value in the model's config."""
    max_length: int = 128
    """Tokens of a sequence with special tokens; longer texts are truncated or read in windows."""
    stride: int = 128
    """Question answering: tokens that two consecutive windows of a context share."""
    max_answer_tokens: int = 30
    """Question answering: most tokens of an answer."""
    n_best: int = 20
    """Question answering: start and end candidates of a window that are combined."""
    code_switch: bool = False
    """Translated pairs: train on (translation, original) and (original, translation) instead."""
    selection: Selection = "source-dev"
    """The epoch that is scored: best on dev of the training languages, of all, or the last."""
    max_train_examples: int | None = None
    """Training examples of each language, from the top of the file; none: all."""
    max_test_examples: int | None = None
    """Test examples of each language, evenly spaced over the file; none: all."""
    precision: Literal["auto", "float32", "bf16"] = "auto"
    """Arithmetic; auto: bf16 on a GPU that supports it, float32 elsewhere."""

    def __post_init__(self) -> None:
        counts = ("epochs", "batch_size", "gradient_accumulation_steps", "max_answer_tokens")
        for name in (*counts, "n_best", "max_test_examples"):
            value = getattr(self, name)
            require(value is None or value >= 1, f"finetune.{name} must be 1 or more")
        accumulation = self.gradient_accumulation_steps
        require(
            self.batch_size % accumulation == 0,
            "finetune.batch_size must be a multiple of finetune.gradient_accumulation_steps",
        )
        require(
            not self.code_switch or self.batch_size // accumulation % 2 == 0,
            "finetune.code_switch keeps two sequences in one micro-batch: batch_size / "
            "gradient_accumulation_steps must be even",
        )
        require(self.learning_rate >= 0, "finetune.learning_rate must not be negative")
        require(
            0 < self.layerwise_lr_decay <= 1,
            "finetune.layerwise_lr_decay must be above 0 and at most 1",
        )
        require(0 <= self.warmup_ratio <= 1, "finetune.warmup_ratio must be between 0 and 1")
        require((self.warmup_steps or 0) >= 0, "finetune.warmup_steps must not be negative")
        require(self.max_length >= 8, "finetune.max_length must be 8 or more")


@dataclass(frozen=True, slots=True, kw_only=True)
class FinetuneRequest:
    """What to fine-tune and score: scenario, a paper's hyperparameters, changes to them, seeds."""

    scenario: ScenarioConfig = field(default_factory=ScenarioConfig)
    """Training and test languages."""
    protocol: str = "xtreme"
    """The paper whose hyperparameters are used (`isoglot show protocols`)."""
    changes: dict[str, Any] = field(default_factory=dict)
    """Hyperparameters that differ from the protocol's, by name."""
    seeds: tuple[int, ...] = (0,)
    """Random seeds, one training each."""
