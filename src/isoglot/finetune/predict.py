"""What a fine-tuned model says of examples: batches of like lengths, only logits kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from isoglot.models.attention import kernels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isoglot.finetune.head import Head, Logits, Piece

_TOKENS_AT_A_TIME = 16_384


def predictions(model: Any, head: Head[Any, Any], examples: Sequence[Any]) -> list[Any]:
    """One prediction for every example."""
    return head.predict(examples, *read_by(model, head, examples))


@torch.no_grad()
def read_by(
    model: Any, head: Head[Any, Any], examples: Sequence[Any]
) -> tuple[list[Piece], list[Logits]]:
    """The pieces of all examples, and what the model says of each."""
    pieces = head.pieces(examples, training=False)
    was_training = model.training
    model.eval()
    try:
        with kernels("sdpa"):
            return pieces, _logits(model, head, pieces)
    finally:
        model.train(was_training)


def _logits(model: Any, head: Head[Any, Any], pieces: Sequence[Piece]) -> list[Logits]:
    found: dict[int, Logits] = {}
    for batch in _of_like_lengths(pieces):
        tensors = head.collate([pieces[i] for i in batch])
        said = model(**{name: tensor.to(model.device) for name, tensor in tensors.items()})
        outputs = [said[name].float().cpu() for name in head.outputs]
        for row, index in enumerate(batch):
            found[index] = tuple(output[row] for output in outputs)
    return [found[index] for index in range(len(pieces))]


def _of_like_lengths(pieces: Sequence[Piece]) -> list[list[int]]:
    lengths = [sum(len(row["input_ids"]) for row in piece.rows) for piece in pieces]
    batches: list[list[int]] = []
    for index in sorted(range(len(pieces)), key=lengths.__getitem__):
        # sorted: the newest is the longest, and all others are padded to it
        full = not batches or (len(batches[-1]) + 1) * lengths[index] > _TOKENS_AT_A_TIME
        if full:
            batches.append([])
        batches[-1].append(index)
    return batches
