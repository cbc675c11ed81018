"""Word alignment from the states of every layer of an encoder (MetaXLM, section 4.4).

Words are split into tokens, tokens are linked by one of five aligners, and two words are linked if
two of their tokens are. XLM-Align's aligners encode a sentence pair as one sequence, SimAlign's and
awesome-align's encode each sentence alone. Every aligner reads the vectors of m and n tokens, gives
an (m, n) matrix of links, and keeps the links that both directions choose. `isoglot.alignment` has
the same aligners for many pairs at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor

from isoglot.evaluation.embed import encode_in_batches, language_ids
from isoglot.evaluation.tokenize_texts import special_tokens, tokenize_words

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from isoglot.evaluation.data import ScoringJob
    from isoglot.evaluation.settings import FeatureConfig
    from isoglot.models.encoder import Encoder
    from isoglot.results import Score
    from isoglot.tasks.examples import AlignedPair

Link = tuple[int, int]
_PAIRS_PER_BLOCK = 64
ITERMAX_DISCOUNT = 0.9
_ITERMAX_ROUNDS = 2
ITERMAX_MIN_TOKENS = 3
"""Shorter sentences have no second round."""


def score_alignment(job: ScoringJob) -> list[Score]:
    """Error rate, precision and recall of the links at every layer."""
    found: list[Score] = []
    examples = job.examples()
    by_layer = align_words(
        job.encoder, job.tokenizer, examples, job.settings, languages=job.languages, note=job.tell
    )
    for layer, links in enumerate(by_layer):
        found += job.scores(job.values(examples, links), layer=layer)
    return found


def align_words(
    encoder: Encoder,
    tokenizer: Any,
    pairs: Sequence[AlignedPair],
    settings: FeatureConfig,
    *,
    languages: tuple[str, str] | None = None,
    note: Callable[[str], None] | None = None,
) -> list[list[set[Link]]]:
    """For each layer, for each pair, the links between its words.

    `languages` are those of the two sides, for the model's language embeddings; `note` is called
    with a sentence about pairs that are cut.
    """
    rows = language_ids(encoder, languages, 2, note)
    by_layer: list[list[set[Link]]] = []
    num_cut = 0
    for start in range(0, len(pairs), _PAIRS_PER_BLOCK):
        sides, cut = _tokenize_pairs(
            encoder, tokenizer, pairs[start : start + _PAIRS_PER_BLOCK], settings
        )
        num_cut += cut
        for layer, links in enumerate(_align_block(encoder, tokenizer, sides, settings, rows)):
            if layer == len(by_layer):
                by_layer.append([])
            by_layer[layer] += links
    if num_cut and note is not None:
        note(
            f"{num_cut:,} of {len(pairs):,} pairs are longer than the model's "
            f"{encoder.max_positions} positions: they are cut there, and words beyond have no link."
        )
    return by_layer


@dataclass(frozen=True, slots=True)
class _Tokens:
    """The tokens of one sentence."""

    ids: list[int]
    words: list[int]
    """The index of each token's word."""

    def first(self, number: int) -> _Tokens:
        """The first tokens."""
        return _Tokens(self.ids[:number], self.words[:number])


def _tokenize_pairs(
    encoder: Encoder, tokenizer: Any, pairs: Sequence[AlignedPair], settings: FeatureConfig
) -> tuple[list[tuple[_Tokens, _Tokens]], int]:
    """The tokens of each pair's two sides, and the number of pairs that are cut."""
    start, end = special_tokens(tokenizer)
    number = 2 if settings.is_joint else 1
    max_tokens = (encoder.max_positions - len(start) - number * len(end)) // number
    whole = [
        (_tokenize(tokenizer, pair.first), _tokenize(tokenizer, pair.second)) for pair in pairs
    ]
    num_cut = sum(any(len(side.ids) > max_tokens for side in sides) for sides in whole)
    cut = [(first.first(max_tokens), second.first(max_tokens)) for first, second in whole]
    return cut, num_cut


def _align_block(
    encoder: Encoder,
    tokenizer: Any,
    sides: Sequence[tuple[_Tokens, _Tokens]],
    settings: FeatureConfig,
    languages: Sequence[int] | None,
) -> list[list[set[Link]]]:
    states = _token_states(encoder, tokenizer, sides, languages, jointly=settings.is_joint)
    num_layers = len(states[0][0])
    return [
        [
            _word_links(first, second, one[layer], other[layer], settings)
            for (first, second), (one, other) in zip(sides, states, strict=True)
        ]
        for layer in range(num_layers)
    ]


def _tokenize(tokenizer: Any, words: Sequence[str]) -> _Tokens:
    tokens = tokenize_words(tokenizer, words)
    ids = [token for of_word in tokens for token in of_word]
    return _Tokens(ids, [number for number, of_word in enumerate(tokens) for _ in of_word])


def _token_states(
    encoder: Encoder,
    tokenizer: Any,
    sides: Sequence[tuple[_Tokens, _Tokens]],
    languages: Sequence[int] | None,
    *,
    jointly: bool,
) -> list[tuple[Tensor, Tensor]]:
    """For each pair, the states (layers + 1, tokens, D) of its two sides."""
    start, end = special_tokens(tokenizer)
    if jointly:
        encoded = [start + first.ids + end + second.ids + end for first, second in sides]
    else:
        encoded = [start + side.ids + end for pair in sides for side in pair]
    of_tokens: list[int | list[int]] | None = None
    if languages is not None and jointly:
        # as in TLM: the first sentence with its special tokens, then the second with its own
        lengths = [len(start) + len(first.ids) + len(end) for first, _ in sides]
        of_tokens = [
            [languages[0]] * length + [languages[1]] * (len(ids) - length)
            for ids, length in zip(encoded, lengths, strict=True)
        ]
    elif languages is not None:
        of_tokens = [*languages] * len(sides)
    states = _sequence_states(encoder, encoded, tokenizer.pad_token_id, of_tokens)
    firsts, seconds = (states, states) if jointly else (states[::2], states[1::2])
    split = []
    for (first, second), one, other in zip(sides, firsts, seconds, strict=True):
        begin, middle = len(start), len(start) + len(first.ids)
        again = middle + len(end) if jointly else begin
        split.append((one[:, begin:middle], other[:, again : again + len(second.ids)]))
    return split


def _sequence_states(
    encoder: Encoder,
    encoded: list[list[int]],
    pad: int,
    languages: Sequence[int | list[int]] | None,
) -> list[Tensor]:
    found: dict[int, Tensor] = {}
    for indices, _, states in encode_in_batches(encoder, encoded, pad, languages=languages):
        assert states.layers is not None
        # one copy from the GPU for all rows and layers
        stacked = torch.stack([layer.float() for layer in states.layers]).cpu()
        for row, index in enumerate(indices.tolist()):
            found[index] = stacked[:, row, : len(encoded[index])]
    return [found[index] for index in range(len(encoded))]


def _word_links(
    first: _Tokens, second: _Tokens, one: Tensor, other: Tensor, settings: FeatureConfig
) -> set[Link]:
    if not first.ids or not second.ids:
        return set()
    links = alignment_matrix(one, other, settings).nonzero().tolist()
    return {(first.words[i], second.words[j]) for i, j in links}


def alignment_matrix(first: Tensor, second: Tensor, settings: FeatureConfig) -> Tensor:
    """(m, n) booleans: the links of the aligner in the settings."""
    match settings.aligner:
        case "transport":
            return mutual_argmax(*sinkhorn(first @ second.T, settings.sinkhorn_iterations))
        case "entropic":
            scaled = _cosines(first, second) / settings.regularization
            return mutual_argmax(*log_sinkhorn(scaled, settings.sinkhorn_iterations))
        case "argmax":
            return mutual_argmax(*[_cosines(first, second)] * 2)
        case "itermax":
            return itermax((_cosines(first, second) + 1) / 2)
        case "softmax":
            return mutual_softmax(first @ second.T, settings.softmax_threshold)


def mutual_argmax(forward: Tensor, backward: Tensor) -> Tensor:
    """Links (i, j) where j is the best of row i of `forward` and i of column j of `backward`."""
    rows = torch.zeros_like(forward, dtype=torch.bool)
    columns = torch.zeros_like(rows)
    rows.scatter_(1, forward.argmax(dim=1, keepdim=True), value=True)
    columns.scatter_(0, backward.argmax(dim=0, keepdim=True), value=True)
    return rows & columns


def mutual_softmax(similar: Tensor, threshold: float) -> Tensor:
    """awesome-align's softmax (Dou and Neubig 2021): links that are likely in both directions.

    The probability of a link is the softmax of the dot products, over the second sentence's tokens
    and over the first's; both must be above the threshold.
    """
    return (similar.softmax(dim=1) > threshold) & (similar.softmax(dim=0) > threshold)


def sinkhorn(similar: Tensor, iterations: int) -> tuple[Tensor, Tensor]:
    """XLM-Align's aligner as released: Sinkhorn iterations on the dot products.

    Returns the plan after the last normalization of its rows, and of its columns.
    """
    plan = columns = similar
    for _ in range(iterations):
        columns = plan / plan.sum(dim=0, keepdim=True)
        plan = columns / columns.sum(dim=1, keepdim=True)
    return plan, columns


def log_sinkhorn(scaled: Tensor, iterations: int) -> tuple[Tensor, Tensor]:
    """Sinkhorn on exp(similarity / regularization), as in XLM-Align's paper, in the log domain."""
    plan = columns = scaled
    for _ in range(iterations):
        columns = plan - plan.logsumexp(dim=0, keepdim=True)
        plan = columns - columns.logsumexp(dim=1, keepdim=True)
    return plan, columns


def itermax(similar: Tensor) -> Tensor:
    """SimAlign's itermax (Jalili Sabet et al. 2020): mutual links, then links of tokens left.

    In the second round a pair counts in full if neither token has a link, with a discount if one
    has, and not at all if both have.
    """
    links = mutual_argmax(similar, similar)
    if min(similar.shape) < ITERMAX_MIN_TOKENS:
        return links
    for _ in range(_ITERMAX_ROUNDS - 1):
        first = links.any(dim=1, keepdim=True).float()
        second = links.any(dim=0, keepdim=True).float()
        if bool(first.all()) or bool(second.all()):
            break
        linked = first + second
        weights = torch.where(linked == 0, 1.0, torch.where(linked == 1, ITERMAX_DISCOUNT, 0.0))
        weighted = similar * weights
        links = links | (mutual_argmax(weighted, weighted) & (weights > 0))
    return links


def _cosines(first: Tensor, second: Tensor) -> Tensor:
    return F.normalize(first, dim=-1) @ F.normalize(second, dim=-1).T
