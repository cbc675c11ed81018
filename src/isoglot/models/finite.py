"""Numbers that are not finite (NaN, infinity) are refused: weights by name, states by sentence.

A NaN would not stop anything by itself: `max` prefers it, so that one NaN vector is the nearest
neighbor of every query, and a comparison with it is false without an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from isoglot.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from torch import Tensor


def check_weights(model: Any, name: str) -> None:
    """Refuse a model with a weight that is not finite; `name` is its folder."""
    prefix = getattr(model, "base_model_prefix", "")
    # tied weights have two names: a file has the encoder's
    weights = sorted(model.state_dict().items(), key=lambda item: not item[0].startswith(prefix))
    check_tensors(weights, name)


def check_tensors(tensors: Iterable[tuple[str, Tensor]], name: str) -> None:
    """Refuse named tensors of a file or folder where one is not finite."""
    for key, tensor in tensors:
        if not is_finite(tensor):
            number = int((~tensor.isfinite()).sum())
            raise ModelError(
                f"{name}: the weights {key} are not finite ({number:,} of {tensor.numel():,} "
                "numbers are NaN or infinite). Use a checkpoint of before training diverged, or "
                "copy the file again."
            )


def is_finite(tensor: Tensor) -> bool:
    """Are all numbers of a tensor finite?"""
    if not tensor.is_floating_point():
        return True
    # a sum is faster than a test of each number; it may overflow, so a test follows
    return bool(tensor.sum().isfinite()) or bool(tensor.isfinite().all())


def check_states(states: Sequence[Tensor], real: Tensor, numbers: Sequence[int]) -> None:
    """Refuse states (B, L, D) of some layers that are not finite at real tokens (B, L).

    Args:
        states: the states of each layer.
        real: (B, L) bool, False for padding.
        numbers: the index of each row's sentence, from 0.
    """
    for layer in states:
        # one number for each row: NaN and infinity survive the sum
        sums = layer.float().sum(dim=-1).masked_fill(~real.to(layer.device), 0).sum(dim=-1)
        if bool(sums.isfinite().all()):
            continue
        finite = layer.isfinite().all(dim=-1) | ~real.to(layer.device)
        rows = (~finite.all(dim=1)).nonzero()[:, 0].tolist()
        if rows:
            refuse_states(min(numbers[row] for row in rows))


def refuse_states(number: int) -> NoReturn:
    """Raise the error for states of a sentence, by its index from 0, that are not finite."""
    raise ModelError(
        f"The states of sentence {number + 1} are not finite (NaN or infinity): the model's "
        "weights are too large, or training diverged. Use an earlier checkpoint."
    )


def check_vectors(vectors: Tensor, what: str) -> None:
    """Refuse vectors (N, D) that are not finite: one NaN would win every comparison."""
    if not is_finite(vectors):
        rows = (~vectors.isfinite().all(dim=-1)).nonzero()[:, 0]
        raise ModelError(
            f"Vector {int(rows[0]) + 1} of {len(vectors)} {what} is not finite (NaN or infinity). "
            "Use an earlier checkpoint of the model."
        )


def num_zero_vectors(vectors: Tensor) -> int:
    """How many of the vectors (N, D) are zero, and so have no direction."""
    return int((vectors == 0).all(dim=-1).sum())
