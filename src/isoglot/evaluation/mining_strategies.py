"""Which pairs are mined from the neighbors of both sides, by ratio margin.

Every sentence proposes its neighbor with the best margin (Artetxe and Schwenk 2019, section 3.2):

    forward        each sentence of the first side with its proposal
    backward       each sentence of the second side with its proposal
    intersection   pairs in which both sentences propose each other
    max            proposals of both sides, the best first, each sentence at most once
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from isoglot.evaluation.retrieval import best_neighbors

if TYPE_CHECKING:
    from isoglot.evaluation.retrieval import Neighbors

Strategy = Literal["max", "intersection", "forward", "backward"]


@dataclass(frozen=True, slots=True)
class ProposedPairs:
    """Pairs, the best margin first; equal margins in the order of the indices."""

    first: npt.NDArray[np.int64]
    second: npt.NDArray[np.int64]
    margins: npt.NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.margins)


def propose_pairs(forward: Neighbors, backward: Neighbors, strategy: Strategy) -> ProposedPairs:
    """Pairs with a margin above 0, best first.

    Args:
        forward: the neighbors of each first sentence among the second.
        backward: the neighbors of each second sentence among the first.
        strategy: who proposes, see above.
    """
    targets, target_margins = _proposals(forward, backward)
    sources, source_margins = _proposals(backward, forward)
    ahead = (np.arange(len(targets)), targets, target_margins)
    back = (sources, np.arange(len(sources)), source_margins)
    match strategy:
        case "forward":
            return _ranked(*ahead)
        case "backward":
            return _ranked(*back)
        case "intersection":
            mutual = sources[targets] == np.arange(len(targets))
            return _ranked(*(part[mutual] for part in ahead))
        case "max":
            both = _ranked(*(np.concatenate(parts) for parts in zip(ahead, back, strict=True)))
            return _each_once(both, len(targets), len(sources))


def _proposals(own: Neighbors, other: Neighbors) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """The neighbor with the best margin of each sentence, and that margin."""
    indices, margins = best_neighbors(own, other, margin=True)
    return indices.numpy(), margins.numpy()


def _ranked(
    first: npt.NDArray[Any], second: npt.NDArray[Any], margins: npt.NDArray[Any]
) -> ProposedPairs:
    order = np.lexsort((second, first, -margins))
    order = order[margins[order] > 0]
    return ProposedPairs(first[order], second[order], margins[order])


def _each_once(ranked: ProposedPairs, num_first: int, num_second: int) -> ProposedPairs:
    """The pairs whose sentences no better pair has."""
    used_first, used_second = bytearray(num_first), bytearray(num_second)
    kept = np.zeros(len(ranked), bool)
    for n, (i, j) in enumerate(zip(ranked.first.tolist(), ranked.second.tolist(), strict=True)):
        if not (used_first[i] or used_second[j]):
            kept[n] = used_first[i] = used_second[j] = True
    return ProposedPairs(ranked.first[kept], ranked.second[kept], ranked.margins[kept])
