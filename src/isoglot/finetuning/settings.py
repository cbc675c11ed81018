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
from typing import Annotated, Any, Literal, get_args

from isoglot.errors import nearest, require
from isoglot.ranges import AdamBeta, NumTokens, Probability, Range, Seed, check_ranges

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

    epochs: Annotated[int, Range(1, 10_000)] = 3
    """Passes over the training data."""
    batch_size: Annotated[int, Range(1, 2**17)] = 32
    """Sequences per optimizer step."""
    gradient_accumulation_steps: Annotated[int, Range(1, 2**17)] = 1
    """Micro-batches that a batch is split into, to save memory."""
    learning_rate: Annotated[float, Range(0, 100)] = 2e-5
    """Peak learning rate of the head and, without layerwise_lr_decay, of the encoder."""
    layerwise_lr_decay: Annotated[float, Range(0, 1, above=True)] = 1.0
    """Learning rate of a layer relative to the layer above it; 1: the same for all layers."""
    schedule: Literal["linear", "constant"] = "linear"
    """Learning rate schedule after warm-up."""
    warmup_ratio: Probability = 0.1
    """Warm-up as a share of all steps."""
    warmup_steps: Annotated[int | None, Range(0, 10**9)] = None
    """Warm-up in optimizer steps; none: warmup_ratio decides."""
    weight_decay: Annotated[float, Range(0, 100)] = 0.0
    """Decay of weight matrices and embeddings; biases and norms have none."""
    betas: tuple[AdamBeta, AdamBeta] = (0.9, 0.999)
    """Adam's decay rates of the two moments."""
    eps: Annotated[float, Range(0, 1)] = 1e-8
    """Adam's addition to the denominator."""
    max_grad_norm: Annotated[float, Range(0, 1e9, above=True)] = 1.0
    """Gradient clipping: the largest norm of the gradient."""
    dropout: Annotated[float | None, Range(0, 1, below=True)] = None
    """Dropout of hidden states and attention; none: the value in the model's config."""
    pooler: Literal["new", "pretrained", "none"] = "new"
    """Layer between [CLS] and a text classifier: new, the folder's own, or none (PPA, MLM-GC)."""
    max_length: Annotated[int, Range(8, 2**17)] = 128
    """Tokens of a sequence with special tokens; longer texts are truncated or read in windows."""
    stride: Annotated[int, Range(0, 2**17)] = 128
    """Question answering: tokens that two consecutive windows of a context share."""
    max_answer_tokens: NumTokens = 30
    """Question answering: most tokens of an answer."""
    n_best: Annotated[int, Range(1, 10_000)] = 20
    """Question answering: start and end candidates of a window that are combined."""
    null_threshold: Annotated[float, Range(-1e6, 1e6)] = 0.0
    """Question answering: lead over the best span from which on no answer is predicted."""
    code_switch: bool = False
    """Translated pairs: train on (translation, original) and (original, translation) instead."""
    selection: Selection = "source-dev"
    """The epoch that is scored: best on dev of the training languages, of all, or the last."""
    max_train_examples: Annotated[int | None, Range(1, 10**12)] = None
    """Training examples of each language, from the top of the file; none: all."""
    max_test_examples: Annotated[int | None, Range(1, 10**12)] = None
    """Test examples of each language, drawn from all parts of the file; none: all."""
    language_embeddings: bool = True
    """Add the language embeddings of a model that was trained with them on all tokens."""
    precision: Literal["auto", "float32", "bf16"] = "auto"
    """Arithmetic; auto: bf16 on a GPU that supports it, float32 elsewhere."""
    cuda_graphs: bool = False
    """On a GPU, replay the kernels of a step from CUDA graphs: faster where batches are small."""

    def __post_init__(self) -> None:
        check_ranges(self)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class FinetuneRequest:
    """What to fine-tune and score: scenario, a paper's hyperparameters, changes to them, seeds."""

    scenario: ScenarioConfig = field(default_factory=ScenarioConfig)
    """Training and test languages."""
    protocol: str = "xtreme"
    """The paper whose hyperparameters are used (`isoglot show protocols`)."""
    changes: dict[str, Any] = field(default_factory=dict)
    """Hyperparameters that differ from the protocol's, by name."""
    seeds: tuple[Seed, ...] = (0,)
    """Random seeds, one training each."""

    def __post_init__(self) -> None:
        check_ranges(self)
