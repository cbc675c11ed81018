"""Context extension: another base of rotary positions and more of them, before a model is built.

A larger base (theta) turns positions more slowly, so that distances beyond those of pre-training
have angles that the model knows. ModernBERT (Warner et al., 2024) and mmBERT (Marone et al., 2025)
raise the base of their global layers from 10,000 to 160,000 and train on at 8,192 tokens; layers
that attend within a window keep theirs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isoglot.errors import ModelError

if TYPE_CHECKING:
    from isoglot.models.config import ModelConfig

_GLOBAL = "full_attention"
"""Layers without a window, in configs that have rotary settings for each kind of layer."""


def extend_context(config: Any, settings: ModelConfig, name: str) -> None:
    """Give a transformers config the rotary base and the positions that the settings ask for.

    Args:
        config: of the model to build, changed in place.
        settings: `rope_theta` and `max_positions`.
        name: of the model, for messages.

    Raises:
        ModelError: the model has no rotary positions, or scales them in a way of its own.
    """
    if settings.rope_theta is None:
        return
    found = getattr(config, "rope_parameters", None)
    if not found:
        raise ModelError(
            f"model.rope_theta is for rotary positions (ModernBERT, EuroBERT), and {name}, a "
            f"{config.model_type} model, has none. Leave it out."
        )
    parameters = found.get(_GLOBAL, found)
    kind = parameters.get("rope_type", "default")
    if kind != "default":
        raise ModelError(
            f"model.rope_theta: {name} scales its rotary positions ({kind}), which another base "
            "would not fit. Leave it out."
        )
    parameters["rope_theta"] = settings.rope_theta
    config.max_position_embeddings = max(config.max_position_embeddings, settings.max_positions)
