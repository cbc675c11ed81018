"""A model with another vocabulary and the same body.

Reads an encoder, `Matches` and the target's special ids; gives a new encoder of the source's
architecture. Which tensors depend on the vocabulary, and which on the number of positions, is
asked of the architecture itself: its shapes are compared with those of a model that differs in
that number alone. So nothing here knows the name of a layer.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import torch
from transformers import AutoModelForMaskedLM

from isoglot.models.attention import PACKED
from isoglot.models.encoder import Encoder
from isoglot.models.transplant.rows import random_like, transplanted_rows

if TYPE_CHECKING:
    from torch import Tensor

    from isoglot.models.transplant.matching import Matches
    from isoglot.models.transplant.settings import TransplantConfig
    from isoglot.types import Vocabulary


def with_vocabulary(
    encoder: Encoder, matches: Matches, vocabulary: Vocabulary, settings: TransplantConfig
) -> Encoder:
    """The encoder of the target's vocabulary; the source stays as it is."""
    config = _config_for(encoder, vocabulary, settings.positions)
    generator = torch.Generator().manual_seed(settings.seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        model = AutoModelForMaskedLM.from_config(
            config, attn_implementation=PACKED, dtype=torch.float32
        )
    new = Encoder(model, encoder.settings, attention_dropout=encoder.attention_dropout)
    of_words = depending_on(encoder.model.config, "vocab_size")
    of_positions = depending_on(encoder.model.config, "max_position_embeddings")
    body = settings.initialise in ("body", "both")
    embeddings = settings.initialise in ("embeddings", "both")
    state: dict[str, Tensor] = model.state_dict()
    known: dict[int, Tensor] = {}
    for name, tensor in encoder.model.state_dict().items():
        if name in of_words:
            if embeddings:
                # one tensor may go by several names: tied weights are made once, and stay equal
                place = tensor.data_ptr()
                if place not in known:
                    known[place] = transplanted_rows(tensor, matches, generator)
                state[name] = known[place]
        elif not body:
            continue
        elif name in of_positions:
            state[name] = _positions(tensor, encoder, new, generator)
        else:
            state[name] = tensor
    model.load_state_dict(state)
    model.eval()
    return new


def depending_on(config: Any, number: str) -> set[str]:
    """The tensors of an architecture whose shape depends on this number of its config."""
    shapes = []
    for more in (0, 1):
        other = copy.deepcopy(config)
        setattr(other, number, getattr(config, number) + more)
        with torch.device("meta"):
            model = AutoModelForMaskedLM.from_config(other, attn_implementation=PACKED)
        shapes.append({name: tensor.shape for name, tensor in model.state_dict().items()})
    return {name for name, shape in shapes[0].items() if shapes[1][name] != shape}


def word_on_positions(before: Encoder, after: Encoder) -> str:
    """What became of the positions, as a sentence."""
    old, new = before.max_positions, after.max_positions
    if new == old:
        return f"{old} positions, as before."
    if new < old:
        return f"Cut from {old} to {new} positions: longer sequences no longer fit."
    if depending_on(before.model.config, "max_position_embeddings"):
        return f"Extended from {old} to {new} positions: the new ones are random and need training."
    return f"Extended from {old} to {new} positions, which this architecture computes."


def _config_for(encoder: Encoder, vocabulary: Vocabulary, positions: int | None) -> Any:
    """The source's config with the target's size and special ids."""
    config = copy.deepcopy(encoder.model.config)
    config.vocab_size = vocabulary.size
    roles = {
        "pad": vocabulary.pad,
        "bos": vocabulary.cls,
        "cls": vocabulary.cls,
        "eos": vocabulary.sep,
        "sep": vocabulary.sep,
        "mask": vocabulary.mask,
    }
    for role, index in roles.items():
        if getattr(config, f"{role}_token_id", None) is not None:
            setattr(config, f"{role}_token_id", index)
    # RoBERTa's positions begin after the padding id, which may be another one now
    first = vocabulary.pad + 1 if encoder.first_position else 0
    config.max_position_embeddings = (positions or encoder.max_positions) + first
    return config


def _positions(
    table: Tensor, before: Encoder, after: Encoder, generator: torch.Generator
) -> Tensor:
    """The position table: copied from each one's first position on, cut or extended."""
    old, new = before.first_position, after.first_position
    rows = random_like(table, new + after.max_positions, generator)
    unused, common = min(old, new), min(before.max_positions, after.max_positions)
    rows[:new] = 0
    rows[:unused] = table[:unused]
    rows[new : new + common] = table[old : old + common]
    return rows
