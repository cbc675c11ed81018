"""Predictions of a fine-tuned model: batches of similar lengths, logits decoded by the head."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from isoglot.errors import ModelError
from isoglot.languages import language_sides
from isoglot.models.attention import attention_kernels
from isoglot.models.cpu_memory import keep_freed_memory
from isoglot.models.finite import is_finite
from isoglot.models.length_batches import batches_by_length, cpu_batch_tokens

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isoglot.finetuning.head import Logits, TaskHead, Window

_GPU_BATCH_TOKENS = 16_384


def predict(
    model: Any, head: TaskHead[Any, Any], examples: Sequence[Any], language: str | None = None
) -> list[Any]:
    """One prediction for each example."""
    return head.decode(examples, *run_model(model, head, examples, language))


@torch.no_grad()
def run_model(
    model: Any, head: TaskHead[Any, Any], examples: Sequence[Any], language: str | None = None
) -> tuple[list[Window], list[Logits]]:
    """The windows of all examples, and the model's logits for each window.

    `language` is that of the examples (`de`, or `en-de` for two texts).

    Raises:
        ModelError: a logit is not finite.
    """
    languages = None if language is None else [language_sides(language)] * len(examples)
    windows = head.windows(examples, training=False, languages=languages)
    logits: dict[int, Logits] = {}
    was_training = model.training
    model.eval()
    max_tokens = _GPU_BATCH_TOKENS
    if model.device.type == "cpu":
        keep_freed_memory()
        max_tokens = cpu_batch_tokens()
    try:
        with attention_kernels("sdpa"):
            for batch in _batches_by_length(windows, max_tokens):
                tensors = head.collate([windows[index] for index in batch])
                output = model(**{name: t.to(model.device) for name, t in tensors.items()})
                outputs = [output[name].float().cpu() for name in head.output_names]
                if not all(map(is_finite, outputs)):
                    raise ModelError(
                        "The fine-tuned model gives logits that are not finite, so nothing is "
                        "scored. Set a lower learning rate (--set learning_rate=...)."
                    )
                for row, index in enumerate(batch):
                    logits[index] = tuple(tensor[row] for tensor in outputs)
    finally:
        model.train(was_training)
    return windows, [logits[index] for index in range(len(windows))]


def _batches_by_length(windows: Sequence[Window], max_tokens: int) -> list[list[int]]:
    lengths = [sum(len(s["input_ids"]) for s in window.sequences) for window in windows]
    batches = batches_by_length(np.array(lengths, np.int64), max_tokens)
    return [batch.tolist() for batch in batches]
