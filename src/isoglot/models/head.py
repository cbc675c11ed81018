"""The LM head, at prediction sites only.

Reads final hidden states and flat site indices (b * L + l); gives a loss for each site. With 15 %
of the tokens masked and 250,000 words, logits everywhere would be most of the work of a step and
nearly all of its memory, for numbers nobody reads.

The head of any `*ForMaskedLM` model is whatever it holds beside its encoder: its direct children
but `base_model`, applied in order. That this is so is checked when a model is opened. Nearly always
the last of it is one product with a vector for each word; then that product and the cross-entropy
run as one operation (`word_losses`).

More sites than one chunk are recomputed in the backward pass, so that at most `chunk` rows of
logits exist at a time.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from isoglot.models.word_losses import word_logits, word_losses
from isoglot.types import IGNORE

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadConfig:
    """How the LM head runs."""

    chunk: int = 8192
    """Prediction sites whose logits exist at the same time."""


@dataclass(slots=True, kw_only=True)
class SiteLosses:
    """What the LM head says at N sites; zeros where the weight is zero."""

    losses: Tensor
    """(N,) cross-entropy times weight, float32 or better."""
    correct: Tensor
    """(N,) bool: was the right word the likeliest?"""


class LMHead:
    """The head of a `*ForMaskedLM` model, from hidden states (..., D) to logits (..., V)."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._layers = [child for child in model.children() if child is not model.base_model]
        self.ends_with_words = self._ends_with(self._words(), model.config.hidden_size)
        """Is the product with the words its last operation?"""

    def _words(self) -> Any:
        # asked each time: a model whose vocabulary is changed gets another
        return self._model.get_output_embeddings()

    def __call__(self, hidden: Tensor) -> Tensor:
        """The logits of some states."""
        if not (self.ends_with_words and hidden.is_cuda):
            return self._through(hidden)
        words = self._words()
        return word_logits(self._features(hidden), words.weight, words.bias)

    def _through(self, hidden: Tensor) -> Tensor:
        for layer in self._layers:
            hidden = layer(hidden)
        return hidden

    def _features(self, hidden: Tensor) -> Tensor:
        """What the product with the words meets."""
        with _passing_on(self._words()):
            return self._through(hidden)

    def losses(
        self, states: Tensor, targets: Tensor, smoothing: float = 0.0
    ) -> tuple[Tensor, Tensor]:
        """Cross-entropy (N,) of states (N, D), 0 for IGNORE, and whether the best word is right.

        `smoothing` is the share of each target that is spread over all words.
        """
        if self.ends_with_words and not smoothing:
            words = self._words()
            return word_losses(self._features(states), words.weight, words.bias, targets)
        logits = self(states)
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        losses = F.cross_entropy(
            logits, targets, ignore_index=IGNORE, reduction="none", label_smoothing=smoothing
        )
        return losses, logits.detach().argmax(dim=-1) == targets

    @torch.no_grad()
    def _ends_with(self, words: Any, width: int) -> bool:
        """Is the head nothing more after this product? Asked of it, with one state."""
        if not isinstance(words, nn.Linear):
            return False
        weight = words.weight
        state = torch.linspace(-1, 1, width, dtype=weight.dtype, device=weight.device)
        try:
            features = self._features(state[None])
        except (RuntimeError, TypeError):  # no chain of layers, or something comes after it
            return False
        return features.shape[-1] == words.in_features and torch.equal(
            words(features), self._through(state[None])
        )


@contextmanager
def _passing_on(words: nn.Linear) -> Iterator[None]:
    """For a while, this layer hands on what it is given."""
    words.forward = lambda input: input  # type: ignore[method-assign] # noqa: A006
    try:
        yield
    finally:
        del words.forward


def at_sites(hidden: Tensor, positions: Tensor) -> Tensor:
    """The states (N, D) at flat indices into (B, L, D) states."""
    return hidden.flatten(0, 1).index_select(0, positions)


def site_losses(
    head: LMHead,
    hidden: Tensor,
    positions: Tensor,
    targets: Tensor,
    weights: Tensor,
    *,
    chunk: int,
    smoothing: float = 0.0,
) -> SiteLosses:
    """Cross-entropy at sites, in chunks.

    A site with weight 0 has loss 0 and gives exactly no gradient, whatever its target.

    Args:
        head: the model's LM head.
        hidden: (B, L, D) final hidden states.
        positions: (N,) flat indices of the sites.
        targets: (N,) right words.
        weights: (N,) weight of each site.
        chunk: number of sites whose logits exist at a time.
        smoothing: share of each target that is spread over all words.
    """
    states = at_sites(hidden, positions)
    targets = torch.where(weights == 0, IGNORE, targets)
    if len(positions) <= chunk:
        losses, correct = head.losses(states, targets, smoothing)
    else:
        pieces = [
            checkpoint(head.losses, some_states, some_targets, smoothing, use_reentrant=False)
            for some_states, some_targets in zip(
                states.split(chunk), targets.split(chunk), strict=True
            )
        ]
        losses = torch.cat([piece[0] for piece in pieces])
        correct = torch.cat([piece[1] for piece in pieces])
    return SiteLosses(losses=losses * weights, correct=correct)
