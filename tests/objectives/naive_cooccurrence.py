"""The regression on co-occurrence a pair at a time: Eq. 3 and Eq. 6 of MLM-GC, in float64."""

import math

import numpy as np
import torch

from isoglot.corpus.cooccurrence.pair_table import PairTable
from isoglot.objectives import ForwardResult


def transformed(encoder, state):
    """XLM-R's LM head before the product with the output embeddings, from its weights."""
    head = encoder.model.lm_head
    hidden = head.dense.weight @ state + head.dense.bias
    hidden = hidden * 0.5 * (1 + torch.erf(hidden / math.sqrt(2)))
    hidden = (hidden - hidden.mean()) / torch.sqrt(hidden.var(unbiased=False) + 1e-5)
    return hidden * head.layer_norm.weight + head.layer_norm.bias


def naive_term(settings, encoder, pair, x):
    """f(X) · (H_t · H_k / √d - log X)² of one pair of states, Eq. 3; or Eq. 6."""
    trust, error = naive_error(settings, encoder, pair, x)
    return trust * error**2


def naive_error(settings, encoder, pair, x):
    """f(X), and H_t · H_k / √d - log X."""
    mine, other = pair
    if settings.neighbor_vectors == "output_embeddings" and settings.lm_head_transform:
        mine = transformed(encoder, mine)
    dot = mine @ other
    if settings.scale:
        dot = dot / math.sqrt(len(mine))
    wanted = math.log(x + 1) if settings.log_plus_one else math.log(x)
    return min(1.0, (x / settings.x_max) ** settings.alpha), dot - wanted


def count_of(counts, first, second):
    return counts.get((min(first, second), max(first, second)), 0.0)


def naive_loss(settings, batch, states, encoder, counts, vocabulary):
    """Eq. 3 or Eq. 6, a pair at a time; and the sums and counts of both metrics."""
    metrics = {"seen": [0.0, 0.0], "error": [0.0, 0.0]}
    output = encoder.model.get_output_embeddings().weight
    rows = batch.rows
    length, total = rows.ids.shape[1], states.new_zeros(())
    flat = {name: tensor.flatten().tolist() for name, tensor in rows.tensors().items()}
    ids = list(flat["ids"])
    for start, stop in batch.target_slices.values():
        for place, target in zip(
            batch.target_positions[start:stop].tolist(),
            batch.targets[start:stop].tolist(),
            strict=True,
        ):
            ids[place] = target
    states = states.flatten(0, 1)
    read = {"all": (True, False), "masked": (True,), "shown": (False,)}[settings.neighbors]
    for host in settings.target_objectives:
        start, stop = batch.target_slices[host]
        for t in batch.target_positions[start:stop].tolist():
            terms, number = states.new_zeros(()), 0
            for k in range(t - settings.pairs.window, t + settings.pairs.window + 1):
                same = 0 <= k < len(ids) and k != t and k // length == t // length
                same = same and all(flat[n][k] == flat[n][t] for n in ("sequences", "sentences"))
                if not same or ids[k] in vocabulary.special:
                    continue
                if (flat["ids"][k] == vocabulary.mask) not in read:
                    continue
                number += 1
                metrics["seen"][1] += 1
                x = count_of(counts, ids[t], ids[k])
                hidden = settings.neighbor_vectors == "hidden_states"
                other = states[k] if hidden else output[ids[k]]
                if x:
                    trust, error = naive_error(settings, encoder, (states[t], other), x)
                    terms = terms + trust * error**2
                    metrics["seen"][0] += 1
                    metrics["error"][0] += trust * abs(float(error.detach()))
                    metrics["error"][1] += trust
            divisor = {"neighbors": max(number, 1), "window": 2 * settings.pairs.window, "none": 1}
            total = total + terms / divisor[settings.normalize_by]
    return total, metrics


def table_of(counts, size, kind=np.float32):
    keys = np.array([first * size + second for first, second in sorted(counts)], np.int64)
    values = np.log(np.array([counts[pair] for pair in sorted(counts)], np.float64))
    return PairTable(
        keys=keys, log_counts=values.astype(kind), vocabulary_size=size, language_constants={}
    )


def result_of(batch, states, decoder_states=None):
    empty = states.sum() * torch.zeros(0, dtype=states.dtype)
    return ForwardResult(
        batch=batch,
        name="gc",
        hidden_states=states,
        target_losses=empty,
        correct=empty,
        decoder_states=decoder_states,
    )
