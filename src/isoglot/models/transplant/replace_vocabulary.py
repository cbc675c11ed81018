"""A new encoder with the source's body and another vocabulary.

Reads an encoder, `Matches` and the target's special ids; gives an encoder of the same architecture.
Which tensors depend on the vocabulary, and which on the number of positions, is found by comparing
the shapes of the architecture with those of a config that differs in that number alone: no name of
a layer is needed. The word embeddings, separate output embeddings and the LM head's bias all follow
the same `Matches`. A row with a single source row is copied bit for bit.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F
from transformers import AutoModelForMaskedLM

from isoglot.models.attention import PACKED_ATTENTION
from isoglot.models.encoder import Encoder

if TYPE_CHECKING:
    from torch import Tensor

    from isoglot.models.transplant.config import TransplantConfig
    from isoglot.models.transplant.matching import Matches
    from isoglot.types import Vocabulary


def replace_vocabulary(
    encoder: Encoder, matches: Matches, vocabulary: Vocabulary, settings: TransplantConfig
) -> Encoder:
    """An encoder with the target's vocabulary; the source is not changed."""
    config = _new_config(encoder, vocabulary, settings.max_positions)
    generator = torch.Generator().manual_seed(settings.seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        model = AutoModelForMaskedLM.from_config(
            config, attn_implementation=PACKED_ATTENTION, dtype=torch.float32
        )
    new = Encoder(
        model,
        encoder.settings,
        languages=encoder.language_codes,
        attention_dropout=encoder.attention_dropout,
    )
    if encoder.languages is not None and new.languages is not None:
        new.languages.load_state_dict(encoder.languages.state_dict())
    vocabulary_tensors = tensors_depending_on(encoder.model.config, "vocab_size")
    position_tensors = tensors_depending_on(encoder.model.config, "max_position_embeddings")
    copy_body = settings.initialize in ("body", "both")
    copy_embeddings = settings.initialize in ("embeddings", "both")
    state: dict[str, Tensor] = model.state_dict()
    done: dict[int, Tensor] = {}
    for name, tensor in encoder.model.state_dict().items():
        if name in vocabulary_tensors:
            if copy_embeddings:
                # tied weights are one tensor under several names: they stay equal
                address = tensor.data_ptr()
                if address not in done:
                    done[address] = weighted_rows(tensor, matches, generator)
                state[name] = done[address]
        elif not copy_body:
            continue
        elif name in position_tensors:
            state[name] = _new_positions(tensor, encoder, new, generator)
        else:
            state[name] = tensor
    model.load_state_dict(state)
    new.pooler = encoder.pooler if copy_body else {}
    new.eval()
    return new


def tensors_depending_on(config: Any, number: str) -> set[str]:
    """The tensors of an architecture whose shape depends on this number of its config."""
    shapes = []
    for more in (0, 1):
        other = copy.deepcopy(config)
        setattr(other, number, getattr(config, number) + more)
        with torch.device("meta"):
            model = AutoModelForMaskedLM.from_config(other, attn_implementation=PACKED_ATTENTION)
        shapes.append({name: tensor.shape for name, tensor in model.state_dict().items()})
    return {name for name, shape in shapes[0].items() if shapes[1][name] != shape}


def describe_positions(before: Encoder, after: Encoder) -> str:
    """A sentence on how the number of positions changed."""
    old, new = before.max_positions, after.max_positions
    if new == old:
        return f"{old} positions, as before."
    if new < old:
        return f"Reduced from {old} to {new} positions: longer sequences no longer fit."
    if tensors_depending_on(before.model.config, "max_position_embeddings"):
        return f"Extended from {old} to {new} positions: the new ones are random and need training."
    return f"Extended from {old} to {new} positions, which this architecture computes."


def weighted_rows(table: Tensor, matches: Matches, generator: torch.Generator) -> Tensor:
    """A tensor with a row for each target id, from one (V, ...) with a row for each source id."""
    flat = table.reshape(len(table), -1)
    num_sources = np.diff(matches.offsets)
    rows = flat.new_zeros(len(num_sources), flat.shape[1])
    single, several = num_sources == 1, num_sources > 1
    rows[torch.from_numpy(single)] = flat[
        torch.from_numpy(matches.sources[matches.offsets[:-1][single]])
    ]
    if several.any():
        rows[torch.from_numpy(several)] = _weighted_means(flat, matches, several)
    random = torch.tensor([kind == "random" for kind in matches.kinds])
    rows[random] = random_rows(flat, int(random.sum()), generator)
    return rows.reshape(len(num_sources), *table.shape[1:])


def random_rows(table: Tensor, number: int, generator: torch.Generator) -> Tensor:
    """New rows, normally distributed with the mean and standard deviation of a table."""
    drawn = torch.randn(number, table.shape[1], generator=generator, dtype=table.dtype)
    return drawn * table.std() + table.mean()


def _weighted_means(flat: Tensor, matches: Matches, several: np.ndarray) -> Tensor:
    entries = np.repeat(several, np.diff(matches.offsets))
    lengths = np.diff(matches.offsets)[several]
    return F.embedding_bag(
        torch.from_numpy(matches.sources[entries]),
        flat,
        torch.from_numpy(np.cumsum(lengths) - lengths),
        mode="sum",
        per_sample_weights=torch.from_numpy(matches.weights[entries]).to(flat.dtype),
    )


def _new_config(encoder: Encoder, vocabulary: Vocabulary, max_positions: int | None) -> Any:
    """The source's config with the target's vocabulary size and special ids."""
    config = copy.deepcopy(encoder.model.config)
    config.vocab_size = vocabulary.size
    special_ids = {
        "pad": vocabulary.pad,
        "bos": vocabulary.cls,
        "cls": vocabulary.cls,
        "eos": vocabulary.sep,
        "sep": vocabulary.sep,
        "mask": vocabulary.mask,
    }
    for role, index in special_ids.items():
        if getattr(config, f"{role}_token_id", None) is not None:
            setattr(config, f"{role}_token_id", index)
    # RoBERTa's positions begin after the padding id, which may have changed
    first = vocabulary.pad + 1 if encoder.first_position else 0
    config.max_position_embeddings = (max_positions or encoder.max_positions) + first
    return config


def _new_positions(
    table: Tensor, before: Encoder, after: Encoder, generator: torch.Generator
) -> Tensor:
    """The position table, copied from the first position on, shortened or extended."""
    old, new = before.first_position, after.first_position
    rows = random_rows(table, new + after.max_positions, generator)
    unused, common = min(old, new), min(before.max_positions, after.max_positions)
    rows[:new] = 0
    rows[:unused] = table[:unused]
    rows[new : new + common] = table[old : old + common]
    return rows
