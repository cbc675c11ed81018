"""Sentence vectors of an encoder without training: the mean of the states of each layer.

Special tokens count in the mean, as in XTREME's Tatoeba script, unless they are left out. Texts of
a model that was trained with language embeddings get the embedding of their language.
`encode_in_batches` encodes sequences for all feature-based tasks, and refuses states that are not
finite.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from isoglot.evaluation.tokenize_texts import tokenize_texts
from isoglot.models.finite import check_states, num_zero_vectors
from isoglot.types import LongArray, MaskRule, Rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from isoglot.models.encoder import Encoder, States

    Note = Callable[[str], None]

_MAX_BATCH_TOKENS = 8192
_CPU_TOKENS_PER_THREAD = 512
"""With 4,096 BERT base takes twice the time for a token: states leave the processor's cache."""
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
    language: str | Sequence[str] | None = None,
    note: Note | None = None,
) -> torch.Tensor:
    """(layers, sentences, D) mean-pooled states on the CPU; long sentences are truncated.

    Args:
        encoder: the model.
        tokenizer: its tokenizer.
        sentences: at least one.
        skip_special: leave special tokens out of the mean.
        first_token: take the state of the first token instead.
        layers: those to pool, 0 for the embeddings; none: all.
        language: the code of all sentences, or of each, for the model's language embeddings.
        note: called with a sentence about truncated texts, zero vectors and unknown languages.
    """
    what = f"texts in {language}" if isinstance(language, str) else "texts"
    encoded = tokenize_texts(tokenizer, sentences, encoder.max_positions, what=what, note=note)
    languages = language_ids(encoder, language, len(encoded), note)
    special = torch.tensor(sorted(set(tokenizer.all_special_ids)))
    pooled: torch.Tensor | None = None
    for indices, rows, states in encode_in_batches(
        encoder, encoded, tokenizer.pad_token_id, languages=languages
    ):
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
    zeros = num_zero_vectors(pooled[-1])
    if zeros and note is not None:
        note(
            f"{zeros:,} of {len(sentences):,} texts have a zero vector (no token of their own), "
            "which is near to nothing: they count as errors."
        )
    return pooled


def language_ids(
    encoder: Encoder, language: str | Sequence[str] | None, number: int, note: Note | None = None
) -> list[int] | None:
    """The row of each text's language embedding, -1 for none; none if the model has no such rows.

    `note` is called with the languages that the model has no embedding of.
    """
    if encoder.languages is None or language is None:
        return None
    codes = [language] * number if isinstance(language, str) else list(language)
    rows = {code: encoder.language_id(code) for code in dict.fromkeys(codes)}
    unknown = [code for code, row in rows.items() if row < 0]
    if unknown and note is not None:
        note(f"the model has no language embedding of {', '.join(unknown)}: these texts get none.")
    return [rows[code] for code in codes]


def layer_groups(encoder: Encoder, num_sentences: int) -> list[range]:
    """Groups of layers whose sentence vectors fit into memory; each group is one more pass."""
    num_layers = int(encoder.model.config.num_hidden_layers) + 1
    size = max(1, _MAX_VECTOR_NUMBERS // (num_sentences * encoder.hidden_size))
    return [range(start, min(start + size, num_layers)) for start in range(0, num_layers, size)]


@torch.no_grad()
def encode_in_batches(
    encoder: Encoder,
    encoded: Sequence[list[int]],
    pad: int,
    *,
    layers: bool = True,
    languages: Sequence[int | list[int]] | None = None,
    max_tokens: int | None = None,
) -> Iterator[tuple[LongArray, Rows, States]]:
    """Encode sequences of ids, shortest first, in batches of at most `max_tokens` (none: 8,192).

    `languages` are rows of the encoder's language embeddings: one for each sequence, or one for
    each of its tokens. Yields the indices of the sequences of a batch, its rows (on the CPU) and
    their states.

    Raises:
        ModelError: a state is NaN or infinite; the message has the number of the sentence.
    """
    encoder.eval()
    device = next(encoder.parameters()).device
    order = np.argsort([len(ids) for ids in encoded], kind="stable")
    start = 0
    while start < len(order):
        number = 1
        while start + number < len(order):
            longest = len(encoded[order[start + number]])
            if (number + 1) * longest > (max_tokens or _MAX_BATCH_TOKENS):
                break
            number += 1
        indices = order[start : start + number]
        own = None if languages is None else [languages[i] for i in indices]
        rows = pad_rows([encoded[i] for i in indices], pad, own)
        states = encoder(rows.to(device), layers=layers)
        check_states(states.layers or (states.hidden,), rows.sequences >= 0, indices.tolist())
        yield indices, rows, states
        start += number


def cpu_batch_tokens() -> int:
    """Tokens of a batch with which a CPU is fastest."""
    return _CPU_TOKENS_PER_THREAD * torch.get_num_threads()


def pad_rows(
    sequences: list[list[int]], pad: int, languages: Sequence[int | list[int]] | None = None
) -> Rows:
    """One sequence per row, padded to the longest; without `languages`, tokens have none."""
    longest = max(len(ids) for ids in sequences)
    ids = torch.full((len(sequences), longest), pad)
    owner = torch.full_like(ids, -1)
    for row, sequence in enumerate(sequences):
        ids[row, : len(sequence)] = torch.tensor(sequence)
        owner[row, : len(sequence)] = 0
    of_tokens = torch.full_like(ids, -1)
    for row, codes in enumerate(languages or ()):
        of_tokens[row, : len(sequences[row])] = torch.tensor(codes)
    zeros = torch.zeros_like(ids)
    return Rows(
        ids=ids,
        positions=torch.where(owner >= 0, torch.arange(longest), 0),
        languages=of_tokens,
        sentences=zeros,
        roles=zeros,
        rules=zeros + int(MaskRule.FULL),
        sequences=owner,
    )
