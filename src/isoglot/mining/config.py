"""Settings of bitext mining."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from isoglot.evaluation.mining_strategies import Strategy
from isoglot.evaluation.settings import EncodeType
from isoglot.ranges import Range, check_choices, check_ranges

Index = Literal["auto", "exact", "faiss"]
VectorType = Literal["float32", "float16"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MineConfig:
    """Which pairs are mined, and how their neighbors are searched."""

    strategy: Strategy = "max"
    """Who proposes pairs: forward, backward, intersection or max (both, each sentence once)."""
    num_neighbors: Annotated[int, Range(1, 1000)] = 4
    """Nearest neighbors in the mean of a ratio margin, and candidates of each sentence."""
    threshold: Annotated[float, Range(-1e6, 1e6)] = 1.0
    """Least ratio margin of a pair that is kept."""
    top: Annotated[int | None, Range(1, 10**12)] = None
    """Most pairs that are kept, the best first; none: all above the threshold."""
    index: Index = "auto"
    """Search: exact, FAISS's inverted lists (faiss), or exact up to a million sentences (auto)."""
    num_clusters: Annotated[int | None, Range(1, 10**7)] = None
    """Inverted lists of FAISS; none: four times the square root of the number of sentences."""
    num_probes: Annotated[int, Range(1, 10**7)] = 32
    """Inverted lists that FAISS searches for a sentence: more find more neighbors, slower."""
    vector_type: VectorType = "float32"
    """Numbers of the vectors on disk: float16 takes half of the space, cosines are off by 1e-4."""
    encode_type: EncodeType = "float32"
    """Numbers of the encoder's products: bfloat16 is meant for GPUs, cosines are less exact."""
    language_embeddings: bool = True
    """Add the language embeddings of a model that was trained with them on all tokens."""

    def __post_init__(self) -> None:
        check_choices(self)
        check_ranges(self)
