"""Check that an architecture keeps packed sequences apart, when a model is loaded.

Reads an encoder; raises `PackingError` where its architecture ignores the mask, numbers positions
in another way, or has an LM head that is more than the children besides its encoder. A few dozen
tokens go through the model on the CPU, where results can be compared exactly.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from isoglot.errors import ModelError
from isoglot.models.finite import is_finite
from isoglot.models.loading import SUPPORTED_MODELS, PackingError
from isoglot.types import MaskRule, Rows

if TYPE_CHECKING:
    from torch import Tensor

    from isoglot.models.encoder import Encoder

TOLERANCE = 1e-4
"""Relative to the largest value: far above rounding, far below the effect of a visible token."""


@torch.no_grad()
def check_packing(encoder: Encoder, name: str) -> None:
    """Check an encoder that was just loaded under this name."""
    training = encoder.training
    encoder.eval()
    try:
        rows, length = _example_rows(encoder)
        try:
            _check(encoder, rows, length, name)
        except (TypeError, ValueError, RuntimeError, IndexError, AssertionError) as error:
            if isinstance(error, ModelError):
                raise
            raise PackingError(
                f"{name}, a {encoder.model.config.model_type} model, cannot run packed rows with "
                f"an LM head at target positions ({type(error).__name__}: {error}). "
                f"{SUPPORTED_MODELS}"
            ) from error
    finally:
        encoder.train(training)


def _check(encoder: Encoder, rows: Rows, length: int, name: str) -> None:
    kind = f"{name}, a {encoder.model.config.model_type} model,"
    states = encoder(rows)
    if not is_finite(states.hidden):
        raise ModelError(
            f"{name} gives states that are not finite (NaN or infinity), although its weights are: "
            "they are too large. Use a checkpoint of before training diverged."
        )
    first, sentence = states.hidden[:, :length], states.hidden[:, length : length + 4]

    changed = _with_other_ids(encoder, rows, slice(length, None))
    if not torch.equal(encoder(changed).hidden[:, :length], first):
        raise PackingError(
            f"{kind} lets sequences of one row see each other. Choose another model."
        )
    changed = _with_other_ids(encoder, rows, slice(length + 4, None))
    if not torch.equal(encoder(changed).hidden[:, length : length + 4], sentence):
        raise PackingError(f"{kind} lets a sentence see its translation. Choose another model.")

    alone = encoder.model(input_ids=rows.ids[:, :length], output_hidden_states=True)
    if not _close(alone.hidden_states[-1], first):
        raise PackingError(f"{kind} numbers positions in another way. Choose another model.")
    if not _close(alone.logits[0], encoder.logits_at(states, torch.arange(length))):
        raise PackingError(f"{kind} has an LM head that cannot run at single positions.")


def _example_rows(encoder: Encoder) -> tuple[Rows, int]:
    """One row: a sequence longer than any window, a sentence of four with three slots, padding."""
    window = getattr(encoder.model.config, "sliding_window", None) or 4
    length = min(2 * window + 4, encoder.max_positions)
    sentence, slots, padding = 4, 3, 2
    total = length + sentence + slots + padding
    full, translate = int(MaskRule.FULL), int(MaskRule.TRANSLATE)
    rules = [full] * length + [translate] * (sentence + slots) + [full] * padding

    def column(values: list[int]) -> Tensor:
        return torch.tensor([values])

    zeros = torch.zeros(1, total, dtype=torch.long)
    rows = Rows(
        ids=_example_ids(encoder, total, step=7),
        positions=column([*range(length), *range(sentence), *range(slots), *range(padding)]),
        languages=zeros - 1,  # none: the plain model that it is compared with has none
        sentences=zeros,
        roles=column([0] * (length + sentence) + [1] * slots + [0] * padding),
        rules=column(rules),
        sequences=column([0] * length + [1] * (sentence + slots) + [-1] * padding),
    )
    return rows, length


def _with_other_ids(encoder: Encoder, rows: Rows, where: slice) -> Rows:
    ids = rows.ids.clone()
    ids[:, where] = _example_ids(encoder, ids.shape[1], step=11)[:, where]
    return replace(rows, ids=ids)


def _example_ids(encoder: Encoder, length: int, *, step: int) -> Tensor:
    """Token ids without padding, whose embedding may be zero and its position another."""
    ids = torch.arange(1, length + 1) * step % encoder.vocabulary_size
    pad = -1 if encoder.model.config.pad_token_id is None else encoder.model.config.pad_token_id
    return torch.where(ids == pad, (ids + 1) % encoder.vocabulary_size, ids)[None]


def _close(left: Tensor, right: Tensor) -> bool:
    scale = float(right.abs().max()) or 1.0
    return float((left - right).abs().max()) <= TOLERANCE * scale
