"""Fold a language embedding into position embeddings, for a model that transformers runs exactly.

Every token of a text gets its word's, its position's and its language's embedding, summed. For one
language the last two are a table of positions: a folder with that table has no language embeddings
and gives, for texts of that language, the outputs of training. Architectures that rotate queries
and keys instead (ModernBERT, EuroBERT) have no such table.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from isoglot.errors import ModelError
from isoglot.models.encoder import Encoder, position_table
from isoglot.models.sharding import runs_together

if TYPE_CHECKING:
    from torch import Tensor


def fold_into_positions(model: Any, vector: Tensor) -> None:
    """Add a vector to each position embedding of a transformers model."""
    table = position_table(model)
    if table is None:
        raise ModelError(
            f"A {model.config.model_type} model has no position embeddings, so its language "
            "embeddings cannot be folded into them. Use isoglot evaluate and finetune, which add "
            "them, or set model.language_embeddings: none."
        )
    with torch.no_grad():
        table.weight += vector.to(table.weight)


def folded_encoder(encoder: Encoder, language: str) -> Encoder:
    """A copy of an encoder for one language, without language embeddings."""
    row = encoder.language_id(language)
    if encoder.languages is None or row < 0:
        known = ", ".join(encoder.language_codes) or "none"
        raise ModelError(f"The model has no language embedding of {language!r} (it has: {known}).")
    model = _copy(encoder)
    fold_into_positions(model, encoder.languages.weight[row].detach())
    folded = Encoder(
        model,
        replace(encoder.settings, language_embeddings="none"),
        attention_dropout=encoder.attention_dropout,
    )
    folded.pooler = encoder.pooler
    return folded.train(encoder.training)


def _copy(encoder: Encoder) -> Any:
    """A copy of an encoder's model, with plain layers in the place of sharded ones."""
    model = encoder.model
    if not runs_together(encoder):
        return copy.deepcopy(model)
    plain = type(model)(copy.deepcopy(model.config)).to(model.dtype)
    plain.load_state_dict(model.state_dict())
    return plain
