"""The base class of task heads: examples in, tokenized windows for the model, predictions out.

    examples --encode--> windows --collate--> tensors --(model)--> logits --decode--> predictions

A window is what the model reads at once: an example, or a part of a long one. A task head knows one
kind of task, the tokenizer and the settings; a model of transformers' Auto class has the weights.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic

import numpy as np
import torch

from isoglot.corpus.tokenization.pretokenization import Pretokenizer
from isoglot.errors import ModelError
from isoglot.models.loading import check_encoder_weights, load_config, load_tokenizer
from isoglot.models.optimizations import ATTENTION_DROPOUT_FIELDS, HIDDEN_DROPOUT_FIELDS
from isoglot.tasks.base import E, P
from isoglot.types import IGNORE, IntArray

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from isoglot.finetuning.settings import FinetuneConfig

Inputs = dict[str, IntArray]
"""input_ids and, where the model has them, token_type_ids of one sequence."""
Logits = tuple[torch.Tensor, ...]
"""Logits of one window on the CPU: one tensor for each of the head's `output_names`."""

_POSITIONS_AFTER_PADDING = ("roberta", "xlm-roberta", "xlm-roberta-xl", "camembert", "mpnet")
"""Model types whose position embeddings start after the padding id."""
_TOKENIZER_BATCH = 4096
"""Examples that are tokenized together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """What the model reads at once."""

    example: int
    """Index of its example."""
    sequences: tuple[Inputs, ...]
    """The sequence; for multiple choice one sequence for each alternative."""
    targets: dict[str, int | list[int]] = field(default_factory=dict)
    """Model argument -> label: one for the window, or one for each token (or IGNORE)."""
    alignment: Any = None
    """Tokens mapped back to the example, for decoding: words (tags) or characters (answers)."""


class TaskHead(ABC, Generic[E, P]):
    """Encodes examples of one kind of task for a model, and decodes the model's logits."""

    auto_class: ClassVar[Any]
    """transformers' Auto class."""
    output_names: ClassVar[tuple[str, ...]] = ("logits",)
    """Outputs of the model that predictions are decoded from."""

    def __init__(self, folder: Path, settings: FinetuneConfig, labels: Sequence[str]) -> None:
        self.folder, self.settings, self.labels = folder, settings, tuple(labels)
        self.label_ids = {label: number for number, label in enumerate(self.labels)}
        self.config, self.tokenizer = load_config(str(folder)), load_tokenizer(str(folder))
        if not self.tokenizer.is_fast:
            raise ModelError(
                f"{folder} has a slow tokenizer, which does not align tokens with words. Save it "
                "with its tokenizer.json."
            )
        self.pretokenization = Pretokenizer.load(folder)
        limit = max_positions(self.config)
        self.max_length = settings.max_length if limit is None else min(limit, settings.max_length)

    @staticmethod
    @abstractmethod
    def labels_of(examples: Sequence[Any]) -> list[str]:
        """The labels of examples, in the order of their ids."""

    @abstractmethod
    def encode(self, examples: Sequence[E], *, training: bool) -> Iterable[Window]:
        """The windows of examples, in order; with targets for training."""

    @abstractmethod
    def decode(
        self, examples: Sequence[E], windows: Sequence[Window], logits: Sequence[Logits]
    ) -> list[P]:
        """One prediction for each example."""

    def windows(self, examples: Sequence[E], *, training: bool) -> list[Window]:
        """The windows of all examples, tokenized in batches."""
        return [
            replace(window, example=first + window.example)
            for first in range(0, len(examples), _TOKENIZER_BATCH)
            for window in self.encode(examples[first : first + _TOKENIZER_BATCH], training=training)
        ]

    def load_model(self) -> Any:
        """The folder's encoder with a new head, initialised by torch's global random generator."""
        self.configure(self.config)
        if self.settings.dropout is not None:
            for name in (*ATTENTION_DROPOUT_FIELDS, *HIDDEN_DROPOUT_FIELDS):
                if hasattr(self.config, name):
                    setattr(self.config, name, self.settings.dropout)
        try:
            with _quiet_loading():
                model, report = self.auto_class.from_pretrained(
                    self.folder,
                    config=self.config,
                    dtype=torch.float32,
                    use_safetensors=True,
                    # the folder may have the head of another task, with other labels
                    ignore_mismatched_sizes=True,
                    output_loading_info=True,
                )
        except (OSError, ValueError, KeyError) as error:
            raise ModelError(
                f"{self.folder} cannot be opened by {self.auto_class.__name__}: {error} "
                "Give a Hugging Face folder of an encoder that has such a head."
            ) from error
        check_encoder_weights(str(self.folder), model, report["missing_keys"])
        return model

    def configure(self, config: Any) -> None:
        """Write the labels into the model's config."""
        config.id2label = dict(enumerate(self.labels))
        config.label2id = self.label_ids

    def collate(self, windows: Sequence[Window]) -> dict[str, torch.Tensor]:
        """Windows as model inputs, padded to the longest."""
        sequences = [sequence for window in windows for sequence in window.sequences]
        length = max(len(sequence["input_ids"]) for sequence in sequences)
        padding = {"input_ids": self.tokenizer.pad_token_id}
        batch = {
            name: _padded([sequence[name] for sequence in sequences], length, padding.get(name, 0))
            for name in sequences[0]
        }
        batch["attention_mask"] = _padded(
            [np.ones_like(sequence["input_ids"]) for sequence in sequences], length, 0
        )
        for name in windows[0].targets:
            targets = [window.targets[name] for window in windows]
            batch[name] = torch.tensor(
                [t if isinstance(t, int) else t + [IGNORE] * (length - len(t)) for t in targets]
            )
        return batch

    def tokenize(self, *texts: Any, **options: Any) -> Any:
        """The tokenizer's encoding, limited to the length of the settings and the model."""
        return self.tokenizer(*texts, max_length=self.max_length, padding=False, **options)


def max_positions(config: Any) -> int | None:
    """The longest sequence that position embeddings allow; None where the config sets no limit."""
    positions = getattr(config, "max_position_embeddings", None)
    if positions is None:
        return None
    is_shifted = config.model_type in _POSITIONS_AFTER_PADDING
    return int(positions) - (config.pad_token_id + 1 if is_shifted else 0)


def model_inputs(encoding: Mapping[str, Any], index: int) -> Inputs:
    """The inputs of one sequence of a tokenizer's encoding, without the attention mask."""
    names = ("input_ids", "token_type_ids")
    return {name: np.asarray(encoding[name][index], np.int32) for name in names if name in encoding}


@contextmanager
def _quiet_loading() -> Iterator[None]:
    """Hide transformers' list of new and unused weights: a new head is expected."""
    from transformers.utils import logging

    before = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(before)


def _padded(arrays: Sequence[IntArray], length: int, padding: int) -> torch.Tensor:
    padded = np.full((len(arrays), length), padding, np.int64)
    for number, array in enumerate(arrays):
        padded[number, : len(array)] = array
    return torch.from_numpy(padded)
