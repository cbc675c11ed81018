"""States of all layers, pooled in several ways in one pass over the texts, and retrieval by them.

`isoglot.evaluation.embed` pools in one way at a time; the studies choose among poolings and layers.
A process scores many models of one vocabulary on the same texts: it tokenizes each text once.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor

from isoglot.evaluation.embed import GPU_VECTOR_TOKENS, encode_in_batches, language_ids
from isoglot.evaluation.tokenize_texts import tokenize_texts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from isoglot.types import Rows


_tokenized: dict[tuple[str, int, tuple[str, ...]], list[list[int]]] = {}
"""(tokenizer, most tokens, texts) -> the ids of each text."""


def tokenized(tokenizer: Any, texts: Sequence[str], max_length: int) -> list[list[int]]:
    """The ids of each text with special tokens, kept for the next model with this tokenizer."""
    key = fingerprint(tokenizer), max_length, tuple(texts)
    if key not in _tokenized:
        _tokenized[key] = tokenize_texts(tokenizer, list(texts), max_length)
    return _tokenized[key]


def fingerprint(tokenizer: Any) -> str:
    """Of the file of a tokenizer: folders of several models have the same one."""
    file = Path(tokenizer.name_or_path) / "tokenizer.json"
    return hashlib.blake2b(file.read_bytes(), digest_size=16).hexdigest()


def own_tokens(tokenizer: Any) -> Callable[[Rows], Tensor]:
    """The pooling of all tokens but special ones."""
    special = torch.tensor(sorted(set(tokenizer.all_special_ids)))
    return lambda rows: (rows.sequences >= 0) & ~torch.isin(rows.ids, special)


@torch.no_grad()
def pooled_layers(
    encoder: Any,
    tokenizer: Any,
    texts: Sequence[str],
    poolings: Mapping[str, Callable[[Rows], Tensor]],
    language: str | None = None,
) -> dict[str, Tensor]:
    """Pooling -> (layers, texts, D) on the encoder's device: means over the tokens it names.

    A pooling gives (B, L) which tokens of padded rows count; a text without any has a zero vector.
    """
    encoded = tokenized(tokenizer, texts, encoder.max_positions)
    device = next(encoder.parameters()).device
    found: dict[str, Tensor] = {}
    for indices, rows, states in encode_in_batches(
        encoder,
        encoded,
        tokenizer.pad_token_id,
        languages=language_ids(encoder, language, len(encoded)),
        max_tokens=GPU_VECTOR_TOKENS if device.type == "cuda" else None,
    ):
        assert states.layers is not None
        places = torch.from_numpy(indices).to(device)
        for pooling, counts in poolings.items():
            counted = counts(rows)
            weights = counted.float() / counted.sum(dim=1, keepdim=True).clamp(min=1)
            weights = weights[:, None].to(device)
            if pooling not in found:
                size = len(states.layers), len(encoded), states.layers[0].shape[-1]
                found[pooling] = torch.zeros(size, device=device)
            for of_layer, hidden in zip(found[pooling], states.layers, strict=True):
                of_layer.index_copy_(0, places, torch.bmm(weights, hidden.float())[:, 0])
    return found


def accuracies_by_layer(queries: Tensor, candidates: Tensor, texts: Sequence[str]) -> list[float]:
    """`isoglot.evaluation.retrieval.retrieval_accuracy` of (layers, n, D) vectors at each layer.

    The share of queries whose nearest candidate by cosine is theirs, or has an identical text.
    """
    number = {text: place for place, text in enumerate(dict.fromkeys(texts))}
    items = torch.tensor([number[text] for text in texts], device=queries.device)
    similar = F.normalize(queries.float(), dim=-1) @ F.normalize(candidates.float(), dim=-1).mT
    hits = items[similar.argmax(dim=-1)] == items
    shares: list[float] = hits.double().mean(dim=-1).tolist()
    return shares
