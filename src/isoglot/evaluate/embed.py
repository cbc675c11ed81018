"""Sentence vectors from an encoder without training it: the mean of a layer's states, every layer.

Special tokens count in the mean, as in XTREME's Tatoeba script, unless they are left out.
`in_batches` is the pass over sequences that all feature-based evaluation shares.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from isoglot.types import Rows, Rule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from isoglot.models import Encoder, States
    from isoglot.types import LongArray

_TOKENS_AT_A_TIME = 8192
_NUMBERS_AT_A_TIME = 1 << 30
"""Numbers of all sentence vectors to hold: 4 GiB. BUCC's largest takes two layers at a time."""


@torch.no_grad()
def embed(
    encoder: Encoder,
    tokenizer: Any,
    sentences: Sequence[str],
    *,
    skip_special: bool = False,
    first_token: bool = False,
    layers: Sequence[int] | None = None,
    progress: Callable[[int], None] | None = None,
) -> torch.Tensor:
    """(layers, sentences, D) mean-pooled states on the CPU; sentences too long are cut.

    With `first_token`, its state instead of the mean; `layers` none: the embeddings and all layers.
    """
    encoded = tokenizer(
        list(sentences), truncation=True, max_length=encoder.max_positions, padding=False
    )["input_ids"]
    special = torch.tensor(sorted(set(tokenizer.all_special_ids)))
    pooled: torch.Tensor | None = None
    done = 0
    for chosen, rows, states in in_batches(encoder, encoded, tokenizer.pad_token_id):
        assert states.layers is not None
        counted = rows.sequences >= 0
        if skip_special:
            counted &= ~torch.isin(rows.ids, special)
        if first_token:
            counted[:, 1:] = False
        weights = counted.float() / counted.sum(dim=1, keepdim=True).clamp(min=1)
        means = torch.stack(
            [
                torch.einsum("bl,bld->bd", weights.to(layer.device), layer.float()).cpu()
                for layer in (
                    states.layers if layers is None else (states.layers[n] for n in layers)
                )
            ]
        )
        if pooled is None:
            pooled = torch.zeros(len(means), len(sentences), means.shape[-1])
        pooled[:, chosen] = means
        done += len(chosen)
        if progress is not None:
            progress(done)
    assert pooled is not None, "there is at least one sentence"
    return pooled


def layers_at_a_time(encoder: Encoder, sentences: int) -> list[range]:
    """Layers in groups whose vectors of so many sentences fit the memory.

    Each group is one more pass over the sentences.
    """
    depth = int(encoder.model.config.num_hidden_layers) + 1
    some = max(1, _NUMBERS_AT_A_TIME // (sentences * encoder.hidden_size))
    return [range(start, min(start + some, depth)) for start in range(0, depth, some)]


@torch.no_grad()
def in_batches(
    encoder: Encoder, encoded: Sequence[list[int]], pad: int, *, layers: bool = True
) -> Iterator[tuple[LongArray, Rows, States]]:
    """Encode sequences of ids, short ones first, as many at a time as the memory likes.

    Gives the indices of the sequences of a batch, its rows (on the CPU) and their states.
    """
    encoder.eval()
    device = next(encoder.parameters()).device
    order = np.argsort([len(ids) for ids in encoded], kind="stable")
    start = 0
    while start < len(order):
        number = 1
        while start + number < len(order):
            longest = len(encoded[order[start + number]])
            if (number + 1) * longest > _TOKENS_AT_A_TIME:
                break
            number += 1
        chosen = order[start : start + number]
        rows = _padded([encoded[i] for i in chosen], pad)
        yield chosen, rows, encoder(rows.to(device), layers=layers)
        start += number


def _padded(sequences: list[list[int]], pad: int) -> Rows:
    """One sequence a row, padded to the longest."""
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
        parts=zeros,
        rules=zeros + int(Rule.FULL),
        sequences=owner,
    )
