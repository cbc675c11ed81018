"""Encoders made from scratch: the shapes, as transformers configs.

All but `mbert` and `albert` use XLM-R's classes (post-norm, GELU, learned positions). `xlm` is the
shape of XLM-15: its own transformers classes take no 4-D mask, and differ from these in nothing
that matters here once the language embeddings are the encoder's. `albert` is ALBERT base: one layer
used twelve times, and embeddings of 128 dimensions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from transformers import AlbertConfig, BertConfig, XLMRobertaConfig

from isoglot.errors import ModelError

if TYPE_CHECKING:
    from isoglot.models.config import ModelConfig

Size = Literal["tiny", "small", "base", "large", "xlm", "mbert", "albert"]


class Shape(NamedTuple):
    """Layers, width, attention heads; the feed-forward layer is four times as wide."""

    layers: int
    hidden: int
    heads: int


SHAPES: dict[Size, Shape] = {
    "tiny": Shape(4, 128, 4),
    "small": Shape(6, 384, 6),
    "base": Shape(12, 768, 12),
    "large": Shape(24, 1024, 16),
    "xlm": Shape(12, 1024, 8),
    "mbert": Shape(12, 768, 12),
    "albert": Shape(12, 768, 12),
}
_CLASSES: dict[Size, Any] = {"mbert": BertConfig, "albert": AlbertConfig}


def scratch_config(
    settings: ModelConfig, *, vocabulary_size: int, pad: int, cls: int | None, sep: int | None
) -> Any:
    """The transformers config of a new model of the size that the settings name."""
    if settings.size is None:
        raise ModelError("A model made from scratch needs model.size: " + ", ".join(SHAPES) + ".")
    named = SHAPES[settings.size]
    shape = Shape(
        settings.layers or named.layers,
        settings.hidden or named.hidden,
        settings.heads or named.heads,
    )
    if shape.hidden % shape.heads:
        raise ModelError(
            f"model.hidden ({shape.hidden}) must be a multiple of model.heads ({shape.heads})."
        )
    of_bert = settings.size in _CLASSES
    return _CLASSES.get(settings.size, XLMRobertaConfig)(
        vocab_size=vocabulary_size,
        num_hidden_layers=shape.layers,
        hidden_size=shape.hidden,
        num_attention_heads=shape.heads,
        intermediate_size=4 * shape.hidden,
        # XLM-R's positions start after the padding id
        max_position_embeddings=settings.max_positions + (0 if of_bert else pad + 1),
        type_vocab_size=2 if of_bert else 1,
        layer_norm_eps=1e-12 if of_bert else 1e-5,
        pad_token_id=pad,
        bos_token_id=cls,
        eos_token_id=sep,
    )
