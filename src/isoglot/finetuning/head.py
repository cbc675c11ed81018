"""The base class of task heads: examples in, tokenized windows for the model, predictions out.

    examples --encode--> windows --collate--> tensors --(model)--> logits --decode--> predictions

A window is what the model reads at once: an example, or a part of a long one. A task head knows one
kind of task, the tokenizer and the settings; a model of transformers' Auto class has the weights.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic

import numpy as np
import torch

from isoglot.corpus.tokenization.pretokenization import Pretokenizer
from isoglot.errors import ModelError
from isoglot.finetuning.task_model import load_task_model
from isoglot.models.language_embeddings import languages_of, row_of
from isoglot.models.language_input import ARGUMENT, add_language_embeddings
from isoglot.models.loading import check_is_encoder, load_config, load_tokenizer
from isoglot.models.optimizations import ATTENTION_DROPOUT_FIELDS, HIDDEN_DROPOUT_FIELDS
from isoglot.tasks.base import E, P
from isoglot.types import IGNORE, IntArray

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from isoglot.finetuning.settings import FinetuneConfig

Inputs = dict[str, IntArray]
"""input_ids and, where the model has them, token_type_ids of one sequence."""
Logits = tuple[torch.Tensor, ...]
"""Logits of one window on the CPU: one tensor for each of the head's `output_names`."""

_POSITIONS_AFTER_PADDING = ("roberta", "xlm-roberta", "xlm-roberta-xl", "camembert", "mpnet")
"""Model types whose position embeddings start after the padding id."""
_MIN_POSITIONS = 8
"""Special tokens of two texts, and a token of each."""
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
    languages: tuple[int, int] = (-1, -1)
    """Rows of the model's language embeddings for the first and the second text; -1: none."""


class TaskHead(ABC, Generic[E, P]):
    """Encodes examples of one kind of task for a model, and decodes the model's logits."""

    auto_class: ClassVar[Any]
    """transformers' Auto class."""
    output_names: ClassVar[tuple[str, ...]] = ("logits",)
    """Outputs of the model that predictions are decoded from."""
    reads_pooler: ClassVar[bool] = False
    """Whether some architectures classify the output of a pooler."""

    def __init__(self, folder: Path, settings: FinetuneConfig, labels: Sequence[str]) -> None:
        self.folder, self.settings, self.labels = folder, settings, tuple(labels)
        self.label_ids = {label: number for number, label in enumerate(self.labels)}
        self.config, self.tokenizer = load_config(str(folder)), load_tokenizer(str(folder))
        check_is_encoder(str(folder), self.config)
        if not self.tokenizer.is_fast:
            raise ModelError(
                f"{folder} has a slow tokenizer, which does not align tokens with words. Save it "
                "with its tokenizer.json."
            )
        self.pretokenization = Pretokenizer.load(folder)
        self.language_codes = languages_of(folder) if settings.language_embeddings else ()
        """Languages that the model has an embedding of; empty: it was trained without them."""
        if self.config.pad_token_id is None:
            self.config.pad_token_id = self.tokenizer.pad_token_id
        limit = max_positions(self.config)
        if limit is not None and limit < _MIN_POSITIONS:
            raise ModelError(
                f"{folder}/config.json leaves {limit} positions for a text "
                "(max_position_embeddings, pad_token_id). Copy the model's own config.json."
            )
        self.max_length = settings.max_length if limit is None else min(limit, settings.max_length)

    @classmethod
    def check_architecture(cls, folder: Path, kind: str) -> None:
        """Refuse a folder of an architecture that transformers has no such head for."""
        config = load_config(str(folder))
        check_is_encoder(str(folder), config)
        if type(config) not in cls.auto_class._model_mapping:  # noqa: SLF001 (no public table)
            raise ModelError(
                f"{folder}: transformers has no head for {kind} on a model of type "
                f"{config.model_type} ({cls.auto_class.__name__}). Leave tasks of this kind out, "
                "or take another encoder."
            )

    @property
    def model_class(self) -> Any:
        """The Auto class that the settings ask for."""
        return self.auto_class

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

    def windows(
        self,
        examples: Sequence[E],
        *,
        training: bool,
        languages: Sequence[tuple[str, str]] | None = None,
    ) -> list[Window]:
        """The windows of all examples, tokenized in batches.

        `languages` are those of each example's first and second text, for the language embeddings
        of a model that has them.
        """
        windows = [
            replace(window, example=first + window.example)
            for first in range(0, len(examples), _TOKENIZER_BATCH)
            for window in self.encode(examples[first : first + _TOKENIZER_BATCH], training=training)
        ]
        if not self.language_codes or languages is None:
            return windows
        rows = {code: row_of(code, self.language_codes) for pair in languages for code in pair}
        of_examples = [(rows[first], rows[second]) for first, second in languages]
        return [replace(window, languages=of_examples[window.example]) for window in windows]

    def load_model(self, note: Callable[[str], None] | None = None) -> Any:
        """The folder's encoder with a new head, initialized by torch's random generator.

        `note` is called with a sentence about the new and the unused weights.
        """
        self.configure(self.config)
        if self.settings.dropout is not None:
            for name in (*ATTENTION_DROPOUT_FIELDS, *HIDDEN_DROPOUT_FIELDS):
                if hasattr(self.config, name):
                    setattr(self.config, name, self.settings.dropout)
        pooler = self.settings.pooler if self.reads_pooler else "new"
        loaded = load_task_model(self.folder, self.model_class, self.config, pooler=pooler)
        if note is not None:
            note(loaded.note)
        if self.settings.language_embeddings:
            add_language_embeddings(loaded.model, self.folder)
        return loaded.model

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
        if self.language_codes:
            rows = [self._token_languages(w, s) for w in windows for s in w.sequences]
            batch[ARGUMENT] = _padded(rows, length, -1)
        for name in windows[0].targets:
            targets = [window.targets[name] for window in windows]
            batch[name] = torch.tensor(
                [t if isinstance(t, int) else t + [IGNORE] * (length - len(t)) for t in targets]
            )
        return batch

    def _token_languages(self, window: Window, sequence: Inputs) -> IntArray:
        """The row of each token's language: the first text ends with the first separator."""
        first, second = window.languages
        is_separator = sequence["input_ids"] == self.tokenizer.sep_token_id
        before = np.cumsum(is_separator) - is_separator
        return np.where(before == 0, first, second).astype(np.int32)

    def tokenize(self, *texts: Any, **options: Any) -> Any:
        """The tokenizer's encoding, limited to the length of the settings and the model."""
        return self.tokenizer(*texts, max_length=self.max_length, padding=False, **options)


def max_positions(config: Any) -> int | None:
    """The longest sequence that position embeddings allow; None where the config sets no limit."""
    positions = getattr(config, "max_position_embeddings", None)
    if positions is None:
        return None
    is_shifted = config.model_type in _POSITIONS_AFTER_PADDING
    return int(positions) - ((config.pad_token_id or 0) + 1 if is_shifted else 0)


def model_inputs(encoding: Mapping[str, Any], index: int) -> Inputs:
    """The inputs of one sequence of a tokenizer's encoding, without the attention mask."""
    names = ("input_ids", "token_type_ids")
    return {name: np.asarray(encoding[name][index], np.int32) for name in names if name in encoding}


def _padded(arrays: Sequence[IntArray], length: int, padding: int) -> torch.Tensor:
    padded = np.full((len(arrays), length), padding, np.int64)
    for number, array in enumerate(arrays):
        padded[number, : len(array)] = array
    return torch.from_numpy(padded)
