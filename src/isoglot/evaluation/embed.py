"""Sentence vectors of an encoder without training: the mean of the states of each layer.

Special tokens count in the mean, as in XTREME's Tatoeba script, unless they are left out.
`encode_in_batches` encodes sequences for all feature-based tasks; `tokenize_words` and
`special_tokens` give tokens of single words for any tokenizer.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from isoglot.types import LongArray, MaskRule, Rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from isoglot.models.encoder import Encoder, States

_MAX_BATCH_TOKENS = 8192
_MAX_VECTOR_NUMBERS = 1 << 30
"""Numbers of sentence vectors in memory: 4 GiB. BUCC's largest split takes two layers at a time."""


@torch.no_grad()
def embed(
    encoder: Encoder,
    tokenizer: Any,
    sentences: Sequence[str],
    *,
    skip_special: bool = False,
    first_token: bool = False,
    layers: Sequence[int] | None = None,
) -> torch.Tensor:
    """(layers, sentences, D) mean-pooled states on the CPU; long sentences are truncated.

    `skip_special` leaves special tokens out of the mean; `first_token` takes the state of the first
    token instead. `layers` are those to pool, 0 for the embeddings; none: all.
    """
    encoded = tokenizer(
        list(sentences), truncation=True, max_length=encoder.max_positions, padding=False
    )["input_ids"]
    special = torch.tensor(sorted(set(tokenizer.all_special_ids)))
    pooled: torch.Tensor | None = None
    for indices, rows, states in encode_in_batches(encoder, encoded, tokenizer.pad_token_id):
        assert states.layers is not None
        counted = rows.sequences >= 0
        if skip_special:
            counted &= ~torch.isin(rows.ids, special)
        if first_token:
            counted[:, 1:] = False
        weights = counted.float() / counted.sum(dim=1, keepdim=True).clamp(min=1)
        chosen = states.layers if layers is None else [states.layers[n] for n in layers]
        weights = weights.to(states.hidden.device)
        means = torch.stack(
            [torch.einsum("bl,bld->bd", weights, layer.float()).cpu() for layer in chosen]
        )
        if pooled is None:
            pooled = torch.zeros(len(means), len(sentences), means.shape[-1])
        pooled[:, indices] = means
    assert pooled is not None, "there is at least one sentence"
    return pooled


def layer_groups(encoder: Encoder, num_sentences: int) -> list[range]:
    """Groups of layers whose sentence vectors fit into memory; each group is one more pass."""
    num_layers = int(encoder.model.config.num_hidden_layers) + 1
    size = max(1, _MAX_VECTOR_NUMBERS // (num_sentences * encoder.hidden_size))
    return [range(start, min(start + size, num_layers)) for start in range(0, num_layers, size)]


@torch.no_grad()
def encode_in_batches(
    encoder: Encoder, encoded: Sequence[list[int]], pad: int, *, layers: bool = True
) -> Iterator[tuple[LongArray, Rows, States]]:
    """Encode sequences of ids, shortest first, in batches of at most `_MAX_BATCH_TOKENS`.

    Yields the indices of the sequences of a batch, its rows (on the CPU) and their states.
    """
    encoder.eval()
    device = next(encoder.parameters()).device
    order = np.argsort([len(ids) for ids in encoded], kind="stable")
    start = 0
    while start < len(order):
        number = 1
        while start + number < len(order):
            longest = len(encoded[order[start + number]])
            if (number + 1) * longest > _MAX_BATCH_TOKENS:
                break
            number += 1
        indices = order[start : start + number]
        rows = pad_rows([encoded[i] for i in indices], pad)
        yield indices, rows, encoder(rows.to(device), layers=layers)
        start += number


def pad_rows(sequences: list[list[int]], pad: int) -> Rows:
    """One sequence per row, padded to the longest."""
    longest = max(len(ids) for ids in sequences)
    ids = torch.full((len(sequences), longest), pad)
    owner = torch.full_like(ids, -1)
    for row, sequence in enumerate(sequences):
        ids[row, : len(sequence)] = torch.tensor(sequence)
        owner[row, : len(sequence)] = 0
    zeros = torch.zeros_like(ids)
    return Rows(
        ids=ids,
        positions=torch.where(owner >= 0, torch.arange(longest), 0),
        languages=zeros - 1,
        sentences=zeros,
        roles=zeros,
        rules=zeros + int(MaskRule.FULL),
        sequences=owner,
    )


def tokenize_words(tokenizer: Any, words: Sequence[str]) -> list[list[int]]:
    """The token ids of each word as after a space, without special tokens."""
    if not words:
        return []
    tokenize = partial(tokenizer, add_special_tokens=False)
    alone, after = (tokenize(text)["input_ids"] for text in ("a", " a"))
    # byte-level tokenizers have another id for a word after a space
    space = " " if alone != after and len(after) <= len(alone) else ""
    ids: list[list[int]] = tokenize([space + word for word in words])["input_ids"]
    return ids


def special_tokens(tokenizer: Any) -> tuple[list[int], list[int]]:
    """The ids that the tokenizer puts before and after a sentence; both may be empty."""
    bare = tokenizer("a", add_special_tokens=False)["input_ids"]
    whole = tokenizer("a")["input_ids"]
    number = len(bare)
    begin = next(n for n in range(len(whole)) if whole[n : n + number] == bare)
    return whole[:begin], whole[begin + number :]
