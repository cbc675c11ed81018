"""Links between the tokens of translations by their states, for many pairs at a time.

Two tokens of a pair are linked if each is the most similar one to the other in that pair: the
intersection of both directions (SimAlign's `argmax`). Pairs are padded to one of a few widths, and
how many have which width is the shape of a label. So nothing waits for a number from the device.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from isoglot.types import LongArray

NUM_TOKENS, PRIORITY = "number of tokens", "priority"
"""Labels: of a pair, the tokens of both sides; of a first token, a random number."""
_WIDTH = "width"
"""The label `width 32` has a number for each pair that is padded to 32 tokens."""
_MIN_WIDTH = 16


@dataclass(slots=True, kw_only=True)
class Tokens:
    """Tokens as queries, keys or candidates."""

    vectors: Tensor
    """(..., n, D) states of length 1."""
    ids: Tensor
    """(..., n) in the vocabulary."""
    is_token: Tensor | None = None
    """(..., n) false for padding; none: all are tokens."""

    def at(self, places: Tensor, is_token: Tensor | None = None) -> Tokens:
        """Those of n tokens at some places, of any shape."""
        return Tokens(vectors=self.vectors[places], ids=self.ids[places], is_token=is_token)


@dataclass(slots=True, kw_only=True)
class Pairs:
    """P pairs of similar lengths, padded to W tokens."""

    numbers: Tensor
    """(P,) which pairs of the micro-batch."""
    places: Tensor
    """(P, 2, W) where a token is among all tokens of its side; padding repeats the last one."""
    is_token: Tensor
    """(P, 2, W) false for padding."""


@dataclass(slots=True, kw_only=True)
class Links:
    """Possible links, of any shape S, an entry for each first token."""

    places: tuple[Tensor, Tensor]
    """(S) where both tokens are, among all of their side."""
    pairs: Tensor
    """(S) the number of the pair."""
    aligned: Tensor
    """(S) whether they are linked."""


@torch.no_grad()
def align(sides: tuple[Tokens, Tokens], pairs: Pairs, min_similarity: float) -> Links:
    """(P, W) for each first token the second one that is most similar to it: a link if mutual."""
    first, second = both_sides(sides, pairs)
    similar = first.vectors @ second.vectors.mT
    is_token = pairs.is_token[:, 0, :, None] & pairs.is_token[:, 1, None, :]
    similar = similar.masked_fill(~is_token, float("-inf"))
    highest, partners = similar.max(dim=2)
    own = torch.arange(similar.shape[1], device=similar.device)
    mutual = similar.argmax(dim=1).gather(1, partners) == own
    return Links(
        places=(pairs.places[:, 0], pairs.places[:, 1].gather(1, partners)),
        pairs=pairs.numbers[:, None].expand_as(partners),
        aligned=mutual & pairs.is_token[:, 0] & (highest >= min_similarity),
    )


def choose(found: list[Links], priority: Tensor, most: int) -> Links:
    """(most,) entries of which as many as possible are links: those of the highest priority."""
    firsts, seconds = (torch.cat([one.places[side].flatten() for one in found]) for side in (0, 1))
    aligned = torch.cat([one.aligned.flatten() for one in found])
    # a fixed number, so that the host need not know how many links there are
    order, chosen = torch.where(aligned, priority[firsts], -1).topk(most)
    return Links(
        places=(firsts[chosen], seconds[chosen]),
        pairs=torch.cat([one.pairs.flatten() for one in found])[chosen],
        aligned=order >= 0,
    )


def both_sides(sides: tuple[Tokens, Tokens], pairs: Pairs) -> tuple[Tokens, Tokens]:
    """(P, W) the tokens of both sides, padded."""
    first, second = (
        side.at(pairs.places[:, number], pairs.is_token[:, number])
        for number, side in enumerate(sides)
    )
    return first, second


def width_label(num_first: int, num_second: int) -> dict[str, LongArray]:
    """The label of a pair with so many tokens: a power of two that holds both sides."""
    width = max(_MIN_WIDTH, 1 << (max(num_first, num_second) - 1).bit_length())
    return {f"{_WIDTH} {width}": np.zeros(1, np.int64)}


def padded_pairs(labels: Mapping[str, Tensor]) -> Iterator[Pairs]:
    """The pairs of a micro-batch, those of one width together."""
    counts = labels[NUM_TOKENS].view(-1, 2)
    starts = counts.cumsum(dim=0) - counts
    widths = sorted(int(name.removeprefix(_WIDTH)) for name in labels if name.startswith(_WIDTH))
    # ordered by their longer side, pairs of one width are neighbors
    order = counts.amax(dim=1).argsort(stable=True)
    sizes = [len(labels[f"{_WIDTH} {width}"]) for width in widths]
    for width, numbers in zip(widths, order.split(sizes), strict=True):
        at, own = torch.arange(width, device=counts.device), counts[numbers][..., None]
        yield Pairs(
            numbers=numbers,
            places=starts[numbers][..., None] + at.minimum(own - 1),
            is_token=at < own,
        )
