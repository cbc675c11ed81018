"""The links between the words of sentence pairs, in blocks of pairs.

    words --WordTokens--> tokens --sorted by length--> rows --LayerStates--> states of all tokens
    states --gathered by pair, sorted by size--> token_links --words of the tokens--> links

A block is encoded in batches of sequences of similar length, whichever pair they are of. All states
of the block stay on the device, where links are computed for many pairs at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from isoglot.alignment.batched_links import token_links
from isoglot.alignment.layer_states import LayerStates
from isoglot.alignment.word_tokens import SentenceTokens, WordTokens
from isoglot.errors import ModelError
from isoglot.evaluation.embed import language_ids
from isoglot.evaluation.tokenize_texts import special_tokens
from isoglot.models.cpu_memory import keep_freed_memory
from isoglot.models.finite import is_finite
from isoglot.models.length_batches import (
    IdArrays,
    batches_by_length,
    cpu_batch_tokens,
    padded_rows,
)
from isoglot.types import LongArray

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from isoglot.alignment.config import AlignConfig
    from isoglot.models.encoder import Encoder

Link = tuple[int, int]
Words = tuple[list[str], list[str]]
"""The words of a sentence and of its translation."""

_GPU_BATCH_TOKENS = 65_536
"""Tokens that are encoded at a time on a GPU, padding included."""
_BATCH_NUMBERS = {"cpu": 1 << 22, "cuda": 1 << 27}
"""Numbers of states and similarities of the pairs that are linked at a time."""


@dataclass(frozen=True, slots=True)
class Block:
    """The tokens of some pairs, ready to be encoded."""

    sides: SentenceTokens
    """First and second sentence of each pair in turn."""
    num_cut: int
    """Pairs of which a side is cut."""

    def __len__(self) -> int:
        return len(self.sides.lengths) // 2


class WordAligner:
    """Links words with one model."""

    def __init__(
        self,
        encoder: Encoder,
        tokenizer: Any,
        config: AlignConfig,
        *,
        languages: tuple[str, str] | None = None,
        note: Callable[[str], None] | None = None,
    ) -> None:
        """`languages` are those of the two sides, for the model's language embeddings."""
        self._settings = config.features
        self._pad = tokenizer.pad_token_id
        self._start, self._end = special_tokens(tokenizer)
        self._joint = self._settings.is_joint
        sides = 2 if self._joint else 1
        most = (encoder.max_positions - len(self._start) - sides * len(self._end)) // sides
        self._tokens = WordTokens(tokenizer, most)
        self.layer = config.chosen_layer(int(encoder.model.config.num_hidden_layers))
        self._states = LayerStates(encoder, self.layer, config.encode_type)
        self._languages = language_ids(encoder, languages, 2, note) or [-1, -1]
        kind = self._states.device.type
        if kind == "cpu":
            keep_freed_memory()
        self._batch_tokens = _GPU_BATCH_TOKENS if kind == "cuda" else cpu_batch_tokens()
        self._batch_numbers = _BATCH_NUMBERS.get(kind, _BATCH_NUMBERS["cpu"])

    def prepare(self, pairs: Sequence[Words]) -> Block:
        """The tokens of some pairs; may run while another block is on the device."""
        sides = self._tokens.encode([side for pair in pairs for side in pair])
        cut = np.array(sides.is_cut, bool).reshape(-1, 2).any(axis=1)
        return Block(sides, int(cut.sum()))

    @torch.inference_mode()
    def links(self, block: Block) -> list[list[Link]]:
        """The links between the words of each pair, ordered."""
        lengths = block.sides.lengths.reshape(-1, 2)
        found: list[list[Link]] = [[] for _ in lengths]
        pairs = np.flatnonzero(lengths.all(axis=1))
        if not len(pairs):
            return found
        sequences, places = self._sequences(block.sides, pairs)
        states = self._encode(sequences)
        num_words = int(block.sides.words.max()) + 1
        first = np.cumsum(block.sides.lengths) - block.sides.lengths
        inputs = _PairTokens(
            torch.as_tensor(places).to(states.device),
            torch.as_tensor(first.reshape(-1, 2)[pairs]).to(states.device),
            torch.as_tensor(lengths[pairs]).to(states.device),
            torch.as_tensor(block.sides.words).to(states.device),
            states,
        )
        keys = [
            self._word_links(inputs, batch, num_words) for batch in self._batches(lengths[pairs])
        ]
        # one number for each link of words: pair, first word, second word
        of_pair, both = np.divmod(torch.cat(keys).unique().cpu().numpy(), num_words * num_words)
        first_words, second_words = (side.tolist() for side in np.divmod(both, num_words))
        ends = np.searchsorted(of_pair, np.arange(len(pairs)), side="right").tolist()
        for pair, start, end in zip(pairs.tolist(), [0, *ends], ends, strict=False):
            found[pair] = list(zip(first_words[start:end], second_words[start:end], strict=True))
        return found

    @torch.inference_mode()
    def word_cosines(self, pair: Words) -> Tensor:
        """(m, n) cosines between the words of one pair, those of their two nearest tokens.

        A word without a token, or beyond the model's positions, has -1.
        """
        sides = self._tokens.encode(pair)
        found = torch.full((len(pair[0]), len(pair[1])), -1.0)
        if not sides.lengths.all():
            return found
        sequences, places = self._sequences(sides, np.zeros(1, np.int64))
        states = F.normalize(self._encode(sequences).float(), dim=-1).cpu()
        lengths = sides.lengths.tolist()
        first, second = (
            states[start : start + length]
            for start, length in zip(places[0].tolist(), lengths, strict=True)
        )
        rows, columns = torch.as_tensor(sides.words).split(lengths)
        cells = rows[:, None] * len(pair[1]) + columns
        found.view(-1).scatter_reduce_(0, cells.flatten(), (first @ second.T).flatten(), "amax")
        return found

    def _sequences(self, sides: SentenceTokens, pairs: LongArray) -> tuple[_Sequences, LongArray]:
        """What is encoded, and the place (pairs, 2) of each side's first token in it."""
        begin, end = np.array(self._start, np.int64), np.array(self._end, np.int64)
        starts = np.cumsum(sides.lengths) - sides.lengths
        parts: list[LongArray] = []
        languages: list[LongArray] = []
        lengths: list[int] = []
        places = np.empty((len(pairs), 2), np.int64)
        at = 0
        for number, pair in enumerate(pairs.tolist()):
            size = 0
            for side in (0, 1):
                start, length = starts[2 * pair + side], sides.lengths[2 * pair + side]
                before = begin if side == 0 or not self._joint else begin[:0]
                parts += [before, sides.ids[start : start + length], end]
                own = len(before) + int(length) + len(end)
                languages.append(np.full(own, self._languages[side]))
                places[number, side] = at + len(before)
                at, size = at + own, size + own
                if not self._joint or side == 1:
                    lengths.append(size)
                    size = 0
        num_tokens = np.array(lengths, np.int64)
        arrays = IdArrays(np.concatenate(parts), num_tokens, np.cumsum(num_tokens) - num_tokens)
        return _Sequences(arrays, np.concatenate(languages)), places

    def _encode(self, sequences: _Sequences) -> Tensor:
        """(tokens, D) states in the order of the sequences."""
        arrays = sequences.arrays
        states: Tensor | None = None
        device = self._states.device
        for chosen in batches_by_length(arrays.lengths, self._batch_tokens):
            tokens = arrays.tokens_of(chosen)
            rows = padded_rows(
                arrays.ids[tokens], arrays.lengths[chosen], self._pad, sequences.languages[tokens]
            )
            real = (rows.sequences >= 0).to(device)
            found = self._states(rows.to(device))[real]
            if states is None:
                states = found.new_empty(len(arrays.ids), found.shape[-1])
            states[torch.as_tensor(tokens).to(device)] = found
        assert states is not None, "there is at least one pair"
        if not is_finite(states):
            raise ModelError(
                "States of the model are not finite (NaN or infinity): its weights are too large, "
                "or training diverged. Use an earlier checkpoint."
            )
        return states

    def _batches(self, lengths: LongArray) -> Iterator[LongArray]:
        """Pairs of similar sizes, as many as fit."""
        order = np.lexsort((lengths[:, 1], lengths[:, 0]))
        width = 64  # of states beside similarities: the order of magnitude is enough
        start = 0
        while start < len(order):
            longest = np.maximum.accumulate(lengths[order[start : start + 4096]])
            numbers = np.arange(1, len(longest) + 1) * (
                longest.prod(axis=1) + width * longest.sum(axis=1)
            )
            number = max(1, int(np.searchsorted(numbers, self._batch_numbers, side="right")))
            yield order[start : start + number]
            start += number

    def _word_links(self, inputs: _PairTokens, chosen: LongArray, num_words: int) -> Tensor:
        """Numbers of the links between words of some pairs; a link may occur twice."""
        pairs = torch.as_tensor(chosen).to(inputs.states.device)
        lengths = inputs.lengths[pairs]
        longest = lengths.amax(dim=0).tolist()
        sides = [
            inputs.states[
                _range_from(inputs.places[pairs, side], longest[side], len(inputs.states))
            ]
            for side in (0, 1)
        ]
        links = token_links(sides[0], sides[1], lengths, self._settings)
        pair, i, j = links.nonzero(as_tuple=True)
        first, second = (
            inputs.words[inputs.first[pairs[pair], side] + token]
            for side, token in enumerate((i, j))
        )
        return (pairs[pair] * num_words + first) * num_words + second


@dataclass(frozen=True, slots=True)
class _Sequences:
    """Tokens that are encoded together, one sequence after the other."""

    arrays: IdArrays
    languages: LongArray
    """Row of each token's language embedding."""


@dataclass(frozen=True, slots=True)
class _PairTokens:
    """The tokens of pairs on the device."""

    places: Tensor
    """(pairs, 2) place of a side's first token among the states."""
    first: Tensor
    """(pairs, 2) place of a side's first token among the words."""
    lengths: Tensor
    """(pairs, 2) tokens."""
    words: Tensor
    """(tokens,) the word of each token."""
    states: Tensor
    """(tokens and special tokens, D)."""


def _range_from(first: Tensor, number: int, end: int) -> Tensor:
    """(N, number) indices from each first one on, all below `end`."""
    places = first[:, None] + torch.arange(number, device=first.device)
    return places.clamp_(max=end - 1)
