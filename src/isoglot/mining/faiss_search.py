"""Approximate search with FAISS for more sentences than an exact search can compare.

Each side gets an index of inverted lists (IVF): k-means puts its vectors into clusters, and a query
is compared with the vectors of the `num_probes` nearest clusters. Neighbors in other clusters are
missed. FAISS with GPU support uses all GPUs.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from isoglot.errors import IsoglotError
from isoglot.mining.search import NearestSoFar, Saver, SearchState

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from isoglot.evaluation.retrieval import Neighbors

    Count = Callable[[int], None]

_CHUNK = 65_536
"""Vectors that are added or searched at a time."""
_TRAINING_VECTORS = 64
"""Vectors of each cluster that k-means reads; FAISS asks for 39 at least."""


def import_faiss() -> Any:
    """The module, or an error that says how to install it."""
    try:
        import faiss
    except ImportError as error:
        raise IsoglotError(
            "More than a million sentences, and --index faiss, need FAISS: pip install "
            "'isoglot[mine]' (or a build of FAISS with GPU support). --index exact needs none."
        ) from error
    return faiss


def search_faiss(
    first: npt.NDArray[Any],
    second: npt.NDArray[Any],
    k: int,
    *,
    num_clusters: int | None = None,
    num_probes: int = 32,
    saver: Saver | None = None,
    progress: Count | None = None,
) -> tuple[Neighbors, Neighbors]:
    """As `search_exact`, without some neighbors that are not near enough to a cluster's center.

    Args:
        first: (N, D) unit vectors, float32 or float16.
        second: (M, D).
        k: neighbors of each vector.
        num_clusters: clusters of each side; none: 4 √N.
        num_probes: clusters that are searched.
        saver: keeps the state; none: nothing is saved.
        progress: called with the number of vectors that are done, of N + M.
    """
    saver = saver or Saver(None, "")
    state = saver.load() or SearchState(
        NearestSoFar.empty(len(first), min(k, len(second))),
        NearestSoFar.empty(len(second), min(k, len(first))),
    )
    for queries, vectors, found, before in (
        (first, second, state.forward, 0),
        (second, first, state.backward, len(first)),
    ):
        if state.done >= before + len(queries):
            continue
        index = _index(vectors, num_clusters, num_probes)
        for start in range(state.done - before, len(queries), _CHUNK):
            rows = slice(start, start + _CHUNK)
            chunk = np.asarray(queries[rows], np.float32)
            cosines, indices = index.search(chunk, found.cosines.shape[1])
            found.cosines[rows], found.indices[rows] = _filled(cosines, indices)
            state.done = before + start + len(chunk)
            saver(state)
            if progress is not None:
                progress(state.done)
    return state.forward.neighbors(), state.backward.neighbors()


def _index(vectors: npt.NDArray[Any], num_clusters: int | None, num_probes: int) -> Any:
    """An index of inverted lists that holds the vectors, in the type that they have on disk."""
    faiss = import_faiss()
    number, width = vectors.shape
    # k-means needs a vector for each center
    clusters = min(num_clusters or round(4 * math.sqrt(number)), number)
    storage = "SQfp16" if vectors.dtype == np.float16 else "Flat"
    index = faiss.index_factory(width, f"IVF{clusters},{storage}", faiss.METRIC_INNER_PRODUCT)
    index.cp.min_points_per_centroid = 1  # no warning about small files
    index.nprobe = min(num_probes, clusters)
    if hasattr(faiss, "index_cpu_to_all_gpus") and faiss.get_num_gpus() > 0:
        options = faiss.GpuMultipleClonerOptions()
        options.shard = True
        index = faiss.index_cpu_to_all_gpus(index, options)
    step = max(1, number // (_TRAINING_VECTORS * clusters))
    index.train(np.asarray(vectors[::step], np.float32))
    for start in range(0, number, _CHUNK):
        index.add(np.asarray(vectors[start : start + _CHUNK], np.float32))
    return index


def _filled(
    cosines: npt.NDArray[Any], indices: npt.NDArray[Any]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Neighbors without gaps: where too few were found, the last one again; of none, cosine 0."""
    missing = indices < 0
    if missing.any():
        cosines, indices = cosines.copy(), indices.copy()
        cosines[missing[:, 0], 0], indices[missing[:, 0], 0] = 0.0, 0
        for column in range(1, indices.shape[1]):
            gap = missing[:, column]
            cosines[gap, column] = cosines[gap, column - 1]
            indices[gap, column] = indices[gap, column - 1]
    return torch.from_numpy(cosines), torch.from_numpy(indices)
