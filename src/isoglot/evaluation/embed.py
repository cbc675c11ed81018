"""Sentence vectors of an encoder without training: the mean of the states of each layer.

Special tokens count in the mean, as in XTREME's Tatoeba script, unless they are left out. Texts of
a model that was trained with language embeddings get the embedding of their language. On a GPU, a
thread tokenizes the next texts meanwhile, and vectors are copied back once for a chunk of texts.

`encode_in_batches` encodes sequences for all feature-based tasks, and refuses states that are not
finite.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from isoglot.evaluation.tokenize_texts import tokenize_chunks
from isoglot.models.cpu_memory import keep_freed_memory
from isoglot.models.finite import check_states, is_finite, num_zero_vectors, refuse_states
from isoglot.models.length_batches import (
    IdArrays,
    batches_by_length,
    cpu_batch_tokens,
    padded_rows,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from torch import Tensor

    from isoglot.evaluation.settings import EncodeType
    from isoglot.models.encoder import Encoder, States
    from isoglot.types import LongArray, Rows

    Note = Callable[[str], None]

_GPU_BATCH_TOKENS = 8192
"""Tokens of a batch on a GPU where a caller wants every state."""
GPU_VECTOR_TOKENS = 32_768
"""Tokens of a batch on a GPU where states are pooled at once."""
_GPU_CHUNK = 16_384
"""Texts that are tokenized and sorted by length at a time on a GPU."""
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
    encode_type: EncodeType = "float32",
    note: Note | None = None,
) -> Tensor:
    """(layers, sentences, D) mean-pooled states on the CPU; long sentences are truncated.

    Args:
        encoder: the model.
        tokenizer: its tokenizer.
        sentences: at least one.
        skip_special: leave special tokens out of the mean.
        first_token: take the state of the first token instead.
        layers: those to pool, 0 for the embeddings; none: all.
        language: the code of all sentences, or of each, for the model's language embeddings.
        encode_type: type of the encoder's matrix products; vectors are float32.
        note: called with a sentence about truncated texts, zero vectors and unknown languages.
    """
    what = f"texts in {language}" if isinstance(language, str) else "texts"
    languages = language_ids(encoder, language, len(sentences), note)
    pooling = StatePooling(
        encoder,
        tokenizer,
        skip_special=skip_special,
        first_token=first_token,
        layers=layers,
        encode_type=encode_type,
    )
    vectors: Tensor | None = None
    for start, encoded in tokenize_chunks(
        tokenizer,
        sentences,
        encoder.max_positions,
        pooling.chunk_size(len(sentences)),
        what=what,
        note=note,
    ):
        end = start + len(encoded)
        found = pooling(encoded, None if languages is None else languages[start:end], start)
        if vectors is None:
            vectors = torch.empty(len(found), len(sentences), found.shape[-1])
        vectors[:, start:end] = found
    assert vectors is not None, "there is at least one sentence"
    zeros = num_zero_vectors(vectors[-1])
    if zeros and note is not None:
        note(
            f"{zeros:,} of {len(sentences):,} texts have a zero vector (no token of their own), "
            "which is near to nothing: they count as errors."
        )
    return vectors


class StatePooling:
    """Token ids to the pooled states of some layers."""

    def __init__(
        self,
        encoder: Encoder,
        tokenizer: Any,
        *,
        skip_special: bool = False,
        first_token: bool = False,
        layers: Sequence[int] | None = None,
        encode_type: EncodeType = "float32",
    ) -> None:
        """The arguments are those of `embed`."""
        self._encoder, self._pad, self._first_token = encoder, tokenizer.pad_token_id, first_token
        special = torch.tensor(sorted(set(tokenizer.all_special_ids)))
        self._special = special if skip_special else None
        num_layers = int(encoder.model.config.num_hidden_layers)
        # the last layer's states need no other layer's memory
        self._last = layers is not None and all(n in (-1, num_layers) for n in layers)
        self._layers, self._encode_type = layers, encode_type
        self._device = next(encoder.parameters()).device

    def chunk_size(self, number: int) -> int:
        """Texts to tokenize and to sort by length at a time, of this number of texts."""
        return _GPU_CHUNK if self._device.type == "cuda" else number

    @torch.no_grad()
    def __call__(
        self,
        encoded: list[list[int]],
        languages: list[int] | None = None,
        start: int = 0,
        progress: Callable[[int], None] | None = None,
    ) -> Tensor:
        """(layers, sentences, D) pooled states on the CPU.

        Args:
            encoded: token ids of each sentence.
            languages: row of the encoder's language embeddings of each sentence.
            start: index of the first sentence among all, for messages.
            progress: called with the number of sentences that are done.

        Raises:
            ModelError: a state is NaN or infinite; the message has the number of the sentence.
        """
        pooled: Tensor | None = None
        done = 0
        is_half = self._encode_type == "bfloat16"
        kind = self._device.type
        with torch.autocast(kind, dtype=torch.bfloat16, enabled=is_half):
            for indices, rows, states in encode_in_batches(
                self._encoder,
                encoded,
                self._pad,
                layers=not self._last,
                languages=languages,
                max_tokens=GPU_VECTOR_TOKENS if kind == "cuda" else None,
                check=False,
            ):
                weights = self._weights(rows).to(self._device, non_blocking=True)
                chosen = self._chosen(states)
                if pooled is None:
                    size = len(chosen), len(encoded), chosen[0].shape[-1]
                    pooled = torch.empty(size, device=self._device)
                places = torch.from_numpy(indices).to(self._device, non_blocking=True)
                with torch.autocast(kind, enabled=False):
                    for of_layer, layer in zip(pooled, chosen, strict=True):
                        means = torch.bmm(weights[:, None], layer.float())[:, 0]
                        of_layer.index_copy_(0, places, means)
                done += len(indices)
                if progress is not None:
                    progress(done)
        assert pooled is not None, "there is at least one sentence"
        pooled = pooled.cpu()
        if not is_finite(pooled):
            finite = pooled.isfinite().all(dim=-1).all(dim=0)
            refuse_states(start + int((~finite).nonzero()[0]))
        return pooled

    def _weights(self, rows: Rows) -> Tensor:
        """(B, L) weight of each token in the mean."""
        counted = rows.sequences >= 0
        if self._special is not None:
            counted &= ~torch.isin(rows.ids, self._special)
        if self._first_token:
            counted[:, 1:] = False
        return counted.float() / counted.sum(dim=1, keepdim=True).clamp(min=1)

    def _chosen(self, states: States) -> list[Tensor]:
        if self._last:
            assert self._layers is not None
            return [states.hidden] * len(self._layers)
        assert states.layers is not None
        return [states.layers[n] for n in self._layers or range(len(states.layers))]


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
    check: bool = True,
) -> Iterator[tuple[LongArray, Rows, States]]:
    """Encode sequences of ids, shortest first, in batches of at most `max_tokens`.

    Args:
        encoder: the model.
        encoded: the sequences.
        pad: the id of the padding.
        layers: keep the states of every layer.
        languages: rows of the encoder's language embeddings: one for each sequence, or one for each
            of its tokens.
        max_tokens: tokens of a batch with padding; none: 512 a thread on a CPU, 8,192 on a GPU.
        check: refuse states that are not finite; the caller does it otherwise.

    Yields:
        The indices of the sequences of a batch, its rows (on the CPU) and their states.

    Raises:
        ModelError: a state is NaN or infinite; the message has the number of the sentence.
    """
    encoder.eval()
    device = next(encoder.parameters()).device
    if device.type == "cpu":
        keep_freed_memory()
        max_tokens = max_tokens or cpu_batch_tokens()
    sequences = IdArrays.of(encoded)
    all_languages = None if languages is None else _of_tokens(languages, sequences.lengths)
    for indices in batches_by_length(sequences.lengths, max_tokens or _GPU_BATCH_TOKENS):
        tokens = sequences.tokens_of(indices)
        own = None if all_languages is None else all_languages[tokens]
        rows = padded_rows(sequences.ids[tokens], sequences.lengths[indices], pad, own)
        states = encoder(rows.to(device), layers=layers)
        if check:
            check_states(states.layers or (states.hidden,), rows.sequences >= 0, indices.tolist())
        yield indices, rows, states


def _of_tokens(languages: Sequence[int | list[int]], lengths: LongArray) -> LongArray:
    """The language of each token of all sequences."""
    if all(isinstance(one, int) for one in languages):
        return np.repeat(np.array(languages, np.int64), lengths)
    whole = (
        [one] * n if isinstance(one, int) else one
        for one, n in zip(languages, lengths, strict=True)
    )
    return np.fromiter(chain.from_iterable(whole), np.int64, int(lengths.sum()))


def pad_rows(sequences: Sequence[list[int]], pad: int) -> Rows:
    """One sequence per row, padded to the longest."""
    arrays = IdArrays.of(sequences)
    return padded_rows(arrays.ids, arrays.lengths, pad)
