"""What the heads have in common: examples in, pieces that a model reads, predictions out.

    examples --pieces--> pieces --collate--> tensors --(model)--> logits --predict--> predictions

A piece is what the model reads at a time: an example, or a window of a long one. A head knows one
kind of task, the tokenizer and the settings; it holds no weights, transformers' Auto class does.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic

import numpy as np
import torch

from isoglot.corpus.pretokenize import Pretokenization
from isoglot.errors import ModelError
from isoglot.models.dropout import ATTENTION, HIDDEN
from isoglot.models.opening import open_config, open_tokenizer
from isoglot.tasks.base import E, P
from isoglot.types import IGNORE, IntArray

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from isoglot.finetune.settings import FinetuneConfig

Inputs = dict[str, IntArray]
"""input_ids and whatever else the model wants, one entry a token."""
Logits = tuple[torch.Tensor, ...]
"""What the model says of one piece, on the CPU: one tensor for each of the head's `outputs`."""

_AFTER_PADDING = ("roberta", "xlm-roberta", "xlm-roberta-xl", "camembert", "mpnet")
"""Models whose table of positions begins after the padding id."""
_AT_A_TIME = 4096
"""Examples that are tokenized together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """What the model reads at a time."""

    example: int
    """Index of its example."""
    rows: tuple[Inputs, ...]
    """The sequence to read; several where alternatives are compared."""
    targets: dict[str, int | list[int]] = field(default_factory=dict)
    """What is to be predicted: one number, or one for each token (IGNORE where nothing is)."""
    note: Any = None
    """What the head needs to read a prediction off the logits."""


class Head(ABC, Generic[E, P]):
    """A kind of task on a kind of model."""

    auto: ClassVar[Any]
    """transformers' Auto class."""
    outputs: ClassVar[tuple[str, ...]] = ("logits",)
    """The model's outputs that predictions are read from."""

    def __init__(self, folder: Path, settings: FinetuneConfig, labels: Sequence[str]) -> None:
        self.folder, self.settings, self.labels = folder, settings, tuple(labels)
        self.numbers = {label: number for number, label in enumerate(self.labels)}
        self.config, self.tokenizer = self._open_tokenizer()
        self.words = Pretokenization.load(folder)
        room = max_positions(self.config)
        self.max_length = settings.max_length if room is None else min(room, settings.max_length)

    @staticmethod
    @abstractmethod
    def labels_of(examples: Sequence[Any]) -> list[str]:
        """The labels that the head must know, from the training examples."""

    @abstractmethod
    def encode(self, examples: Sequence[E], *, training: bool) -> Iterable[Piece]:
        """The pieces of some examples, in order; with targets if for training."""

    @abstractmethod
    def predict(
        self, examples: Sequence[E], pieces: Sequence[Piece], logits: Sequence[Logits]
    ) -> list[P]:
        """One prediction for every example."""

    def pieces(self, examples: Sequence[E], *, training: bool) -> list[Piece]:
        """The pieces of all examples, in order."""
        return [
            replace(piece, example=begin + piece.example)
            for begin in range(0, len(examples), _AT_A_TIME)
            for piece in self.encode(examples[begin : begin + _AT_A_TIME], training=training)
        ]

    def open(self) -> Any:
        """The folder's encoder under a new head (torch's own generator draws its weights)."""
        self.configure(self.config)
        if self.settings.dropout is not None:
            for name in (*ATTENTION, *HIDDEN):
                if hasattr(self.config, name):
                    setattr(self.config, name, self.settings.dropout)
        try:
            with _without_load_report():
                model, found = self.auto.from_pretrained(
                    self.folder,
                    config=self.config,
                    dtype=torch.float32,
                    use_safetensors=True,
                    # a head of another task may lie there, with another number of labels
                    ignore_mismatched_sizes=True,
                    output_loading_info=True,
                )
        except (OSError, ValueError, KeyError) as error:
            raise ModelError(
                f"{self.folder} cannot be opened by {self.auto.__name__}: {error} "
                "Give a Hugging Face folder of an encoder that has such a head."
            ) from error
        prefix = f"{model.base_model_prefix}."
        missing = [name for name in found["missing_keys"] if name.startswith(prefix)]
        # a pooler belongs to the head, and masked language models have none
        missing = [name for name in missing if "pooler" not in name]
        if missing:
            raise ModelError(
                f"{self.folder} lacks weights of the encoder ({missing[0]} and "
                f"{len(missing) - 1} more). Export the model again."
            )
        return model

    def configure(self, config: Any) -> None:
        """Tell the model's config what the head predicts."""
        config.id2label = dict(enumerate(self.labels))
        config.label2id = self.numbers

    def collate(self, pieces: Sequence[Piece]) -> dict[str, torch.Tensor]:
        """Tensors of several pieces, padded to the longest."""
        rows = [row for piece in pieces for row in piece.rows]
        longest = max(len(row["input_ids"]) for row in rows)
        filling = {"input_ids": self.tokenizer.pad_token_id}
        batch = {
            name: _stacked([row[name] for row in rows], longest, filling.get(name, 0))
            for name in rows[0]
        }
        batch["attention_mask"] = _stacked(
            [np.ones_like(row["input_ids"]) for row in rows], longest, 0
        )
        for name in pieces[0].targets:
            batch[name] = _targets([piece.targets[name] for piece in pieces], longest)
        return batch

    def tokens(self, *texts: Any, **options: Any) -> Any:
        """The tokenizer's encoding, at most as long as the settings and the model allow."""
        return self.tokenizer(*texts, max_length=self.max_length, padding=False, **options)

    def _open_tokenizer(self) -> tuple[Any, Any]:
        """The folder's config and tokenizer."""
        tokenizer = open_tokenizer(str(self.folder))
        if not tokenizer.is_fast:
            raise ModelError(
                f"{self.folder} has a tokenizer that cannot tell which piece belongs to which "
                "word. Save it with its tokenizer.json."
            )
        return open_config(str(self.folder)), tokenizer


@contextmanager
def _without_load_report() -> Iterator[None]:
    """Keep transformers' list of new and unused weights off the terminal: a new head is meant."""
    from transformers.utils import logging

    before = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(before)


def max_positions(config: Any) -> int | None:
    """The most tokens that a model's positions have room for; none where the config has no say."""
    positions = getattr(config, "max_position_embeddings", None)
    if positions is None:
        return None
    return int(positions) - (config.pad_token_id + 1 if config.model_type in _AFTER_PADDING else 0)


def model_inputs(encoded: Mapping[str, Any], number: int) -> Inputs:
    """What the model wants of one sequence of an encoding; the mask follows from its length."""
    wanted = ("input_ids", "token_type_ids")
    return {name: np.asarray(encoded[name][number], np.int32) for name in wanted if name in encoded}


def _stacked(rows: Sequence[IntArray], longest: int, filling: int) -> torch.Tensor:
    stacked = np.full((len(rows), longest), filling, np.int64)
    for number, row in enumerate(rows):
        stacked[number, : len(row)] = row
    return torch.from_numpy(stacked)


def _targets(targets: Sequence[int | list[int]], longest: int) -> torch.Tensor:
    return torch.tensor(
        [t if isinstance(t, int) else t + [IGNORE] * (longest - len(t)) for t in targets]
    )
