"""Dropout in a transformers config: off in the attention, as asked for in the hidden states.

FlexAttention has no dropout, so both realisations of the mask go without. What the config said is
handed back, for the exported model's config to say again.
"""

from __future__ import annotations

from typing import Any

from isoglot.errors import ModelError

ATTENTION = ("attention_probs_dropout_prob", "attention_dropout")
HIDDEN = ("hidden_dropout_prob", "embedding_dropout", "mlp_dropout")


def set_dropout(config: Any, *, hidden: float | None) -> dict[str, float]:
    """Change a config that no model was made from yet; return its own attention dropout."""
    own = {name: getattr(config, name) for name in ATTENTION if hasattr(config, name)}
    for name in own:
        setattr(config, name, 0.0)
    if hidden is not None:
        names = [name for name in HIDDEN if hasattr(config, name)]
        if not names:
            raise ModelError(
                f"A model of type {config.model_type} has no dropout of hidden states to set. "
                "Leave model.dropout out."
            )
        for name in names:
            setattr(config, name, hidden)
    return own
