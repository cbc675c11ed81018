"""The LM head, at prediction sites only.

Reads final hidden states and flat site indices (b * L + l); gives a loss for each site. With 15 %
of the tokens masked and 250,000 words, logits everywhere would be most of the work of a step and
nearly all of its memory, for numbers nobody reads.

The head of any `*ForMaskedLM` model is whatever it holds beside its encoder: its direct children
but `base_model`, applied in order. That this is so is checked when a model is opened.

More sites than one chunk are recomputed in the backward pass, so that at most `chunk` rows of
logits exist at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from isoglot.types import IGNORE

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadConfig:
    """How the LM head runs."""

    chunk: int = 4096
    """Prediction sites whose logits exist at the same time."""


@dataclass(slots=True, kw_only=True)
class SiteLosses:
    """What the LM head says at N sites; zeros where the weight is zero."""

    losses: Tensor
    """(N,) cross-entropy times weight, float32 or better."""
    correct: Tensor
    """(N,) bool: was the right word the likeliest?"""


def lm_head(model: Any) -> Callable[[Tensor], Tensor]:
    """The head of a `*ForMaskedLM` model, from hidden states (..., D) to logits (..., V)."""
    layers = [child for child in model.children() if child is not model.base_model]

    def apply(hidden: Tensor) -> Tensor:
        for layer in layers:
            hidden = layer(hidden)
        return hidden

    return apply


def at_sites(hidden: Tensor, positions: Tensor) -> Tensor:
    """The states (N, D) at flat indices into (B, L, D) states."""
    return hidden.flatten(0, 1).index_select(0, positions)


def site_losses(
    head: Callable[[Tensor], Tensor],
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
        head: from states (n, D) to logits (n, V).
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
        losses, correct = _chunk_losses(head, states, targets, smoothing)
    else:
        pieces = [
            checkpoint(
                _chunk_losses, head, some_states, some_targets, smoothing, use_reentrant=False
            )
            for some_states, some_targets in zip(
                states.split(chunk), targets.split(chunk), strict=True
            )
        ]
        losses = torch.cat([piece[0] for piece in pieces])
        correct = torch.cat([piece[1] for piece in pieces])
    return SiteLosses(losses=losses * weights, correct=correct)


def _chunk_losses(
    head: Callable[[Tensor], Tensor], states: Tensor, targets: Tensor, smoothing: float
) -> tuple[Tensor, Tensor]:
    logits = head(states)
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    losses = F.cross_entropy(
        logits, targets, ignore_index=IGNORE, reduction="none", label_smoothing=smoothing
    )
    # last, so that the recomputation of the backward pass stops before it
    correct = logits.detach().argmax(dim=-1) == targets
    return losses, correct
