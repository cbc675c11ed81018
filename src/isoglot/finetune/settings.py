"""How a model is fine-tuned: the settings that papers put into their tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from isoglot.errors import require

Selection = Literal["source-dev", "all-dev", "last"]
"""Which epoch's model is scored: best on dev of the languages trained on, of all, or the last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinetuneConfig:
    """All settings of one fine-tuning run but its data and its seed."""

    epochs: int = 3
    """Passes over the training data."""
    batch_size: int = 32
    """Sequences in an optimizer step."""
    accumulate: int = 1
    """Parts that a step's sequences are split into, to save memory."""
    learning_rate: float = 2e-5
    """Peak learning rate, of the head and, without layer_decay, of everything."""
    layer_decay: float = 1.0
    """The learning rate of a layer is that of the layer above it times this; 1: the same."""
    schedule: Literal["linear", "constant"] = "linear"
    """The course of the learning rate after warm-up."""
    warmup: float = 0.1
    """Warm-up in steps, or below 1 as a share of all steps."""
    weight_decay: float = 0.0
    """Decay of weight matrices and embeddings; biases and norms have none."""
    betas: tuple[float, float] = (0.9, 0.999)
    """Adam's decay rates of the two moments."""
    eps: float = 1e-8
    """Adam's addition to the denominator."""
    clip: float = 1.0
    """Largest norm of the gradient."""
    dropout: float | None = None
    """Dropout of the encoder's states and attention; none: what the model's folder says."""
    max_length: int = 128
    """Tokens of a sequence, special ones included; a longer text is cut, or read in windows."""
    stride: int = 128
    """Span: tokens that two windows of a long context share."""
    max_answer: int = 30
    """Span: most tokens of an answer."""
    n_best: int = 20
    """Span: starts and ends of a window that are tried with each other."""
    code_switch: bool = False
    """Translated pairs: train on (translation, original) and (original, translation) instead."""
    selection: Selection = "source-dev"
    """Which epoch's model is scored: see the documentation of scenarios."""
    max_train: int | None = None
    """Training examples of each language to use, from the top; none: all."""
    max_scored: int | None = None
    """Examples of each language to score, evenly spaced; none: all."""
    precision: Literal["auto", "float32", "bf16"] = "auto"
    """Arithmetic: bf16 on a GPU that has it and float32 elsewhere (auto), or always one of them."""

    def __post_init__(self) -> None:
        require(self.epochs >= 1, "finetune.epochs must be 1 or more")
        require(self.batch_size >= 1, "finetune.batch_size must be 1 or more")
        require(self.accumulate >= 1, "finetune.accumulate must be 1 or more")
        require(
            self.batch_size % self.accumulate == 0,
            "finetune.batch_size must be a multiple of finetune.accumulate",
        )
        micro_batch = self.batch_size // self.accumulate
        require(
            not self.code_switch or micro_batch % 2 == 0,
            "finetune.code_switch keeps two sequences together: batch_size / accumulate must be "
            "even",
        )
        require(self.learning_rate >= 0, "finetune.learning_rate must not be negative")
        require(0 < self.layer_decay <= 1, "finetune.layer_decay must be above 0 and at most 1")
        require(self.warmup >= 0, "finetune.warmup must not be negative")
        require(self.max_length >= 8, "finetune.max_length must be 8 or more")
        require(self.max_answer >= 1, "finetune.max_answer must be 1 or more")
        require(self.n_best >= 1, "finetune.n_best must be 1 or more")
        require(
            self.max_scored is None or self.max_scored >= 1, "finetune.max_scored must be 1 or more"
        )
