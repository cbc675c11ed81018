"""What a decoder writes: greedily, by beam search or by drawing, with transformers' own `generate`.

Reads encoder states, the first token of each hypothesis (its language) and how long each may get;
gives hypotheses without first and last token, padded. Keys and values of earlier tokens are kept.
XLM (Conneau and Lample, 2019) and its back-translation write greedily, at most 1.3·n + 5 tokens.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor
from transformers.modeling_outputs import BaseModelOutput

from isoglot.errors import require

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class WritingConfig:
    """How hypotheses are written."""

    method: Literal["greedy", "beam", "sample"] = "greedy"
    """The likeliest token each time, the best of some beams, or a token drawn each time."""
    beams: int = 5
    """Beam search: hypotheses kept at a time."""
    length_penalty: float = 1.0
    """Beam search: scores are divided by the length to this power."""
    temperature: float = 1.0
    """Drawing: the logits are divided by it."""
    longer_by: float = 1.3
    """A hypothesis has at most this times the tokens of its source, and `more` besides."""
    more: int = 5
    """Tokens that a hypothesis may have beyond its share."""

    def __post_init__(self) -> None:
        require(self.beams >= 1, "writing.beams must be 1 or more")
        require(self.temperature > 0, "writing.temperature must be above 0")
        require(self.longer_by >= 0, "writing.longer_by must not be negative")
        require(self.more >= 1, "writing.more must be 1 or more")

    def in_words(self) -> str:
        """The method, and the settings that are not the usual ones."""
        others = [
            f"{one.name}={getattr(self, one.name)}"
            for one in fields(self)
            if one.name != "method" and getattr(self, one.name) != one.default
        ]
        return ", ".join([self.method, *others])

    def limit(self, lengths: Any) -> Any:
        """The most tokens of what is written for sources of so many (a tensor, or an array)."""
        return lengths * self.longer_by // 1 + self.more


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """Hypotheses, one a row."""

    ids: Tensor
    """(B, T), without the first token and the last; padding after the end."""
    lengths: Tensor
    """(B,) tokens of each; 0 where nothing was written."""
    cut: Tensor
    """(B,) bool: was it still going on at its limit?"""


def write(
    model: Any,
    states: Tensor,
    visible: Tensor,
    first: Tensor,
    limits: Tensor,
    settings: WritingConfig,
    *,
    never: Sequence[int] = (),
) -> Written:
    """Write a hypothesis for each row.

    Args:
        model: a transformers encoder-decoder, in evaluation mode.
        states: (B, L, D) what the encoder says of the sources.
        visible: (B, L) bool: which of them are there.
        first: (B,) the first token of each hypothesis.
        limits: (B,) the most tokens of each.
        settings: how.
        never: ids that are not written.
    """
    choices: dict[str, dict[str, Any]] = {
        "greedy": {"num_beams": 1, "do_sample": False},
        "beam": {
            "num_beams": settings.beams,
            "do_sample": False,
            "length_penalty": settings.length_penalty,
            "early_stopping": True,
        },
        "sample": {
            "num_beams": 1,
            "do_sample": True,
            "top_k": 0,
            "temperature": settings.temperature,
        },
    }
    found: Tensor = model.generate(
        encoder_outputs=BaseModelOutput(last_hidden_state=states),
        attention_mask=visible.long(),
        decoder_start_token_id=first.tolist(),
        max_length=1 + int(limits.max()),
        suppress_tokens=list(never),
        **choices[settings.method],
    )
    ids = found[:, 1:]
    ended = ids == model.config.eos_token_id
    never_ended = torch.full_like(limits, ids.shape[1])
    ends = torch.where(ended.any(dim=1), ended.int().argmax(dim=1), never_ended)
    lengths = torch.minimum(ends, limits)
    beyond = torch.arange(ids.shape[1], device=ids.device) >= lengths[:, None]
    return Written(
        ids=ids.masked_fill(beyond, model.config.pad_token_id)[:, : int(lengths.max())],
        lengths=lengths,
        cut=~ended.any(dim=1) | (ends > limits),
    )
