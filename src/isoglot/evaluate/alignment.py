"""Word alignment from an encoder's states, every layer (MetaXLM, section 4.4; XLM-Align).

Sentences are split into pieces word by word; pieces are linked (`linking`), and two words are
linked where a piece of one is with a piece of the other. XLM-Align encodes a sentence and its
translation as one sequence, SimAlign each alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from isoglot.evaluate.cells import scores, taken
from isoglot.evaluate.embed import in_batches
from isoglot.evaluate.linking import link
from isoglot.evaluate.pieces import specials, word_pieces

if TYPE_CHECKING:
    from collections.abc import Sequence, Set

    from torch import Tensor

    from isoglot.evaluate.settings import FeatureSettings
    from isoglot.models import Encoder
    from isoglot.results import Score
    from isoglot.tasks import Part, Task
    from isoglot.tasks.examples import WordAligned

Link = tuple[int, int]
_PAIRS_AT_A_TIME = 64


def score_alignment(
    encoder: Encoder,
    tokenizer: Any,
    task: Task[WordAligned, Set[Link]],
    parts: Sequence[Part],
    settings: FeatureSettings,
) -> list[Score]:
    """Error rate, precision and recall of the links at every layer."""
    found: list[Score] = []
    for part in parts:
        examples = taken(task.read(part), settings.most)
        for layer, links in enumerate(align(encoder, tokenizer, examples, settings)):
            values = task.score(examples, links, part.language)
            found += scores(
                task, part.language, values, count=len(examples), settings=settings, layer=layer
            )
    return found


def align(
    encoder: Encoder, tokenizer: Any, pairs: Sequence[WordAligned], settings: FeatureSettings
) -> list[list[set[Link]]]:
    """For each layer, for each pair, the links between its words."""
    by_layer: list[list[set[Link]]] = []
    for start in range(0, len(pairs), _PAIRS_AT_A_TIME):
        block = pairs[start : start + _PAIRS_AT_A_TIME]
        for layer, links in enumerate(_align_block(encoder, tokenizer, block, settings)):
            if layer == len(by_layer):
                by_layer.append([])
            by_layer[layer] += links
    return by_layer


@dataclass(frozen=True, slots=True)
class _Pieces:
    """The pieces of one sentence."""

    ids: list[int]
    words: list[int]
    """The word of each piece."""


def _align_block(
    encoder: Encoder, tokenizer: Any, pairs: Sequence[WordAligned], settings: FeatureSettings
) -> list[list[set[Link]]]:
    together = settings.reads_together
    start, end = specials(tokenizer)
    number = 2 if together else 1
    most = (encoder.max_positions - len(start) - number * len(end)) // number
    sides = [
        (_cut(tokenizer, pair.first, most), _cut(tokenizer, pair.second, most)) for pair in pairs
    ]
    states = _states(encoder, tokenizer, sides, together=together)
    depth = len(states[0][0])
    return [
        [
            _word_links(first, second, one[layer], other[layer], settings)
            for (first, second), (one, other) in zip(sides, states, strict=True)
        ]
        for layer in range(depth)
    ]


def _cut(tokenizer: Any, words: Sequence[str], most: int) -> _Pieces:
    pieces = word_pieces(tokenizer, words)
    ids = [piece for of_word in pieces for piece in of_word]
    owners = [number for number, of_word in enumerate(pieces) for _ in of_word]
    return _Pieces(ids[:most], owners[:most])


def _states(
    encoder: Encoder, tokenizer: Any, sides: Sequence[tuple[_Pieces, _Pieces]], *, together: bool
) -> list[tuple[Tensor, Tensor]]:
    """For each pair, the states (layers + 1, pieces, D) of its two sides."""
    start, end = specials(tokenizer)
    if together:
        encoded = [start + first.ids + end + second.ids + end for first, second in sides]
    else:
        encoded = [start + side.ids + end for pair in sides for side in pair]
    found: list[Tensor | None] = [None] * len(encoded)
    for chosen, rows, states in in_batches(encoder, encoded, tokenizer.pad_token_id):
        assert states.layers is not None
        del rows
        for row, index in enumerate(chosen):
            length = len(encoded[index])
            found[index] = _stacked(states.layers, row, length)
    whole = [state for state in found if state is not None]
    begin = len(start)
    if not together:
        pieces = [side.ids for pair in sides for side in pair]
        alone = [
            state[:, begin : begin + len(ids)] for state, ids in zip(whole, pieces, strict=True)
        ]
        return list(zip(alone[::2], alone[1::2], strict=True))
    split = []
    for (first, second), state in zip(sides, whole, strict=True):
        middle = begin + len(first.ids)
        again = middle + len(end)
        split.append((state[:, begin:middle], state[:, again : again + len(second.ids)]))
    return split


def _stacked(layers: Sequence[Tensor], row: int, length: int) -> Tensor:
    return torch.stack([layer[row, :length].float().cpu() for layer in layers])


def _word_links(
    first: _Pieces, second: _Pieces, one: Tensor, other: Tensor, settings: FeatureSettings
) -> set[Link]:
    if not first.ids or not second.ids:
        return set()
    links = link(one, other, settings).nonzero().tolist()
    return {(first.words[i], second.words[j]) for i, j in links}
