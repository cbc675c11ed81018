"""Output biases of new words, so that a grown vocabulary keeps the predictions of the old one.

    text --tokens masked--> logits --share of probability of each new word--> biases of the LM head

The output embedding of a new word is the mean of its subwords', so its logit is about theirs, and
its probability about that of each of them, where it should be that of all of them together. With
2,500 new words among 12,500 tokens, the new words had 48 % of the probability of masked tokens
and were 6.5 % of the tokens: languages that have none of these words lost 6 to 10 % in bits per
character by the growth alone (LOGBOOK, 2026-11-19).

The bias of each new word is therefore set so that the mean probability of the word over masked
tokens is its share of the tokens. There the gradient of the MLM loss at that bias is zero. Weights
and biases of old tokens stay as they are, so the order of their probabilities does, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from isoglot.models.length_batches import IdArrays, batches_by_length, cpu_batch_tokens, padded_rows
from isoglot.models.transplant.used_tokens import count_tokens, read_sentences

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from torch import Tensor

    from isoglot.models.encoder import Encoder
    from isoglot.models.transplant.tokens import TokenizerTokens
    from isoglot.types import FloatArray, LongArray

MAX_TARGETS = 4096
"""Masked tokens of all files: the probability of every new word is kept for each of them."""
_MASKING_RATE = 0.15
FITTED_TOKENS = round(MAX_TARGETS / _MASKING_RATE)
"""About as many tokens are encoded."""
_ROUNDS = 20
_TOLERANCE = 0.01
"""Relative difference of the new words' probability and share at which the biases are done."""
_TARGETS_PER_CHUNK = 256


class BiasChange(NamedTuple):
    """What was changed."""

    probability: float
    """Of all new words together at a masked token, before."""
    share: float
    """Of all new words together among the tokens."""
    mean: float
    """Mean change of a bias."""

    def sentence(self) -> str:
        """What the report says."""
        verb = "lowered" if self.mean < 0 else "raised"
        return (
            f"The new words had {100 * self.probability:.1f} % of the probability of a masked "
            f"token, and are {100 * self.share:.1f} % of the tokens: their output biases were "
            f"{verb} by {abs(self.mean):.1f} on average, so that both are equal."
        )


@torch.no_grad()
def fit_new_biases(
    encoder: Encoder, tokens: TokenizerTokens, first_new: int, files: Sequence[Path], seed: int = 0
) -> BiasChange | None:
    """Set the output biases of the tokens from `first_new` on; none: the LM head has no biases.

    Args:
        encoder: the grown model, on a CPU; it is changed.
        tokens: its tokenizer.
        first_new: id of the first new word; all ids from it on are new words.
        files: text, a sentence a line; each file counts as much as every other.
        seed: another one masks other tokens.
    """
    bias = getattr(encoder.model.get_output_embeddings(), "bias", None)
    if bias is None or not files:
        return None
    counts = np.stack([count_tokens(tokens, [file]) for file in files])
    shares = shares_of(counts, first_new)
    old, new, weights = [], [], []
    for number, file in enumerate(files):
        draw = np.random.default_rng((seed, number))
        ids = _masked_sentences(tokens, file, MAX_TARGETS // len(files), draw)
        found = _log_probabilities(encoder, tokens, ids, first_new)
        old.append(found[0])
        new.append(found[1])
        weights.append(torch.full_like(found[0], 1 / len(found[0]) / len(files)))
    shift, before = solve_shift(
        torch.cat(old), torch.cat(new), torch.cat(weights), torch.from_numpy(shares)
    )
    bias[first_new:] += shift.to(bias.dtype)
    return BiasChange(before, float(shares.sum()), float(shift.mean()))


def shares_of(counts: LongArray, first_new: int) -> FloatArray:
    """The share of each new word among the tokens: the mean over files, (F, V) counts.

    A word that no file has gets that of half an occurrence, all such words 1 % at most.
    """
    new = counts.shape[1] - first_new
    shares: FloatArray = (counts[:, first_new:] / counts.sum(axis=1, keepdims=True)).mean(axis=0)
    at_least: FloatArray = np.maximum(shares, min(0.5 / counts.sum(), 0.01 / new))
    return at_least


def solve_shift(old: Tensor, new: Tensor, weights: Tensor, shares: Tensor) -> tuple[Tensor, float]:
    """Numbers to add to the logits of new words, so that each has its share of the probability.

    Each round multiplies the odds of every new word by its share over its mean probability
    (iterative scaling).

    Args:
        old: (N,) log of the sum of the exponentials of the logits of all old tokens.
        new: (N, W) logits of the new words.
        weights: (N,) weights of the masked tokens; their sum is 1.
        shares: (W,) the shares.

    Returns:
        The numbers, and the probability of all new words before.
    """
    shift = torch.zeros_like(shares)
    before = 0.0
    for number in range(_ROUNDS):
        probabilities = torch.zeros_like(shares)
        for rows in torch.arange(len(old)).split(_TARGETS_PER_CHUNK):
            logits = new[rows].double() + shift
            total = torch.logaddexp(old[rows].double(), logits.logsumexp(dim=1))
            probabilities += weights[rows].double() @ (logits - total[:, None]).exp()
        if number == 0:
            before = float(probabilities.sum())
        change = (shares / probabilities.clamp_min(1e-30)).log()
        if float((shares * change.abs()).sum() / shares.sum()) < _TOLERANCE:
            break
        shift += change
    return shift, before


def _masked_sentences(
    tokens: TokenizerTokens, file: Path, targets: int, draw: np.random.Generator
) -> list[list[int]]:
    """Sentences of a file, drawn at random, with about as many masked tokens in all."""
    number = max(8, targets // 3)  # 15 % of 20 tokens
    chosen: list[str] = []
    for place, sentence in enumerate(read_sentences(file)):
        if len(chosen) < number:
            chosen.append(sentence)
        elif (slot := int(draw.integers(place + 1))) < number:
            chosen[slot] = sentence
    draw.shuffle(chosen)
    mask = tokens.vocabulary.mask
    masked, left = [], max(1, targets)
    for ids in tokens.encode(chosen):
        if left and ids:
            draws = draw.random(len(ids))
            limit = max(_MASKING_RATE, draws.min())  # one token at least
            hidden = set(np.flatnonzero(draws <= limit)[:left].tolist())
            left -= len(hidden)
            masked.append([mask if n in hidden else one for n, one in enumerate(ids)])
    return masked


def _log_probabilities(
    encoder: Encoder, tokens: TokenizerTokens, sentences: list[list[int]], first_new: int
) -> tuple[Tensor, Tensor]:
    """For each masked token: the log of the old tokens' sum of exponentials, the new logits."""
    vocabulary = tokens.vocabulary
    limit = encoder.max_positions - 2
    ids = IdArrays.of([[vocabulary.cls, *one[:limit], vocabulary.sep] for one in sentences])
    old, new = [], []
    for chosen in batches_by_length(ids.lengths, cpu_batch_tokens()):
        rows = padded_rows(ids.ids[ids.tokens_of(chosen)], ids.lengths[chosen], vocabulary.pad)
        states = encoder(rows)
        places = (rows.ids == vocabulary.mask).flatten().nonzero()[:, 0]
        for some in places.split(_TARGETS_PER_CHUNK):
            logits = encoder.logits_at(states, some).float()
            old.append(logits[:, :first_new].logsumexp(dim=1))
            new.append(logits[:, first_new:].clone())
    return torch.cat(old), torch.cat(new)
