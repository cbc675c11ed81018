"""Exact search for the nearest vectors in both directions, in tiles, on a CPU or a GPU.

Every product of a block of first vectors with a tile of second ones serves both directions. The `k`
best of each sentence are merged from tile to tile; only sentences whose best new cosine beats their
k-th are looked at, a few percent after the first blocks. Memory is bounded by the size of a tile.
The state is saved every minute, so that a search of hours continues after an interruption.
"""

from __future__ import annotations

import io
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from isoglot.atomic import write_bytes
from isoglot.evaluation.retrieval import Neighbors

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import numpy.typing as npt

    Count = Callable[[int], None]

_BLOCK = {"cpu": 512, "cuda": 8192}
"""First vectors in a product."""
_TILE = {"cpu": 1024, "cuda": 65_536}
"""Second vectors in a product: 2 MiB of cosines on a CPU, in its cache; 2 GiB on a GPU."""
SAVE_SECONDS = 60.0
"""Seconds between two savings of the state."""
_RESIDENT_SHARE = 0.4
"""Share of a GPU's free memory that the second vectors may take; more are sent tile by tile."""


@dataclass(slots=True)
class NearestSoFar:
    """The nearest vectors of each sentence among those seen, and where they are."""

    cosines: Tensor
    """(N, k), the best first; minus infinity where fewer were seen."""
    indices: Tensor
    """(N, k)."""

    @classmethod
    def empty(cls, number: int, k: int, device: torch.device | str = "cpu") -> NearestSoFar:
        """Nothing seen yet."""
        cosines = torch.full((number, k), -torch.inf, device=device)
        return cls(cosines, torch.zeros((number, k), dtype=torch.int64, device=device))

    def update(self, start: int, similar: Tensor, offset: int) -> None:
        """Merge cosines (n, m) of the sentences from `start` on with the vectors from `offset` on.

        Either may be a transposed view.
        """
        end = start + len(similar)
        k = self.cosines.shape[1]
        improved = similar.amax(dim=1) > self.cosines[start:end, -1]
        chosen = improved.nonzero()[:, 0]
        if not len(chosen):
            return
        # most rows improve in the first tiles: without a copy then
        rows = similar if len(chosen) == len(similar) else similar.index_select(0, chosen)
        cosines, indices = rows.topk(min(k, rows.shape[1]), dim=1)
        own = chosen + start
        cosines = torch.cat([self.cosines[own], cosines], dim=1)
        indices = torch.cat([self.indices[own], indices + offset], dim=1)
        self.cosines[own], places = cosines.topk(k, dim=1)
        self.indices[own] = indices.gather(1, places)

    def neighbors(self) -> Neighbors:
        """On the CPU."""
        return Neighbors(self.cosines.cpu(), self.indices.cpu())


@dataclass(slots=True)
class SearchState:
    """A search that may be incomplete: what was found, and how far it is."""

    forward: NearestSoFar
    backward: NearestSoFar
    done: int = 0
    """Sentences that were searched, as the search counts them."""

    def save(self, file: Path, key: str) -> None:
        """Write the state atomically."""
        arrays = {
            f"{name}_{part}": getattr(getattr(self, name), part).cpu().numpy()
            for name in ("forward", "backward")
            for part in ("cosines", "indices")
        }
        buffer = io.BytesIO()
        np.savez(buffer, key=np.array(key), done=np.array(self.done), **arrays)
        write_bytes(file, buffer.getbuffer())

    @classmethod
    def load(cls, file: Path, key: str, device: torch.device | str = "cpu") -> SearchState | None:
        """The state of the same search; none if there is none, or if the file is damaged."""
        try:
            with np.load(file, allow_pickle=False) as found:
                if str(found["key"]) != key:
                    return None
                forward, backward = (
                    NearestSoFar(
                        torch.from_numpy(found[f"{name}_cosines"]).to(device),
                        torch.from_numpy(found[f"{name}_indices"]).to(device),
                    )
                    for name in ("forward", "backward")
                )
                return cls(forward, backward, int(found["done"]))
        except Exception:  # numpy and zipfile raise many kinds; it is searched again
            return None


class Saver:
    """Saves a state when the last saving is a minute ago."""

    def __init__(self, file: Path | None, key: str) -> None:
        self.file, self._key = file, key
        self._last = time.monotonic()

    def load(self, device: torch.device | str = "cpu") -> SearchState | None:
        """The saved state, if any."""
        return None if self.file is None else SearchState.load(self.file, self._key, device)

    def __call__(self, state: SearchState) -> None:
        """Save a state if it is time."""
        if self.file is not None and time.monotonic() - self._last >= SAVE_SECONDS:
            state.save(self.file, self._key)
            self._last = time.monotonic()


@torch.no_grad()
def search_exact(
    first: npt.NDArray[Any],
    second: npt.NDArray[Any],
    k: int,
    *,
    saver: Saver | None = None,
    progress: Count | None = None,
) -> tuple[Neighbors, Neighbors]:
    """Neighbors of each first vector among the second, and of each second among the first.

    Args:
        first: (N, D) unit vectors, float32 or float16, in memory or memory-mapped.
        second: (M, D).
        k: neighbors of each vector, or all that there are.
        saver: keeps the state; none: nothing is saved.
        progress: called with the number of first vectors that are done.
    """
    device = "cuda" if torch.cuda.is_available() else "cpu"
    saver = saver or Saver(None, "")
    state = saver.load(device) or SearchState(
        NearestSoFar.empty(len(first), min(k, len(second)), device),
        NearestSoFar.empty(len(second), min(k, len(first)), device),
    )
    tiles = _tiles(second, device)
    # one buffer for all products: new memory for each would cost as much as half of them
    buffer = torch.empty(_BLOCK[device] * _TILE[device], device=device)
    for start in range(state.done, len(first), _BLOCK[device]):
        block = _load(first[start : start + _BLOCK[device]], device)
        for begin in range(0, len(second), _TILE[device]):
            tile = tiles(begin)
            similar = buffer[: len(block) * len(tile)].view(len(block), len(tile))
            torch.mm(block, tile.T, out=similar)
            state.forward.update(start, similar, begin)
            state.backward.update(begin, similar.T, start)
        state.done = start + len(block)
        saver(state)
        if progress is not None:
            progress(state.done)
    return state.forward.neighbors(), state.backward.neighbors()


def _tiles(second: npt.NDArray[Any], device: str) -> Callable[[int], Tensor]:
    """The tile that begins at an index; on a GPU all are loaded once if they fit."""
    size = _TILE[device]
    if device == "cuda":
        free, _ = torch.cuda.mem_get_info()
        if second.size * 4 < _RESIDENT_SHARE * free:
            parts = [_load(second[n : n + size], device) for n in range(0, len(second), size)]
            return lambda begin: parts[begin // size]
    return lambda begin: _load(second[begin : begin + size], device)


def _load(vectors: npt.NDArray[Any], device: str) -> Tensor:
    # torch does not take arrays that must not be written
    kept = vectors if vectors.flags.writeable else vectors.copy()
    return torch.from_numpy(kept).to(device).float()
