"""What retrieval among many sentences costs: `isoglot.evaluation.retrieval`, both ways, on CPU.

    python -m benchmarks.nearest [--number 100000] [--dimensions 768] [--neighbors 1]

Makes two sets of that many random vectors, the second a noisy copy of the first in another order,
and finds each vector's neighbors in the other set. Prints the seconds, the most memory that the
process held before and with the search (the difference is what the search itself needs), the share
of vectors whose nearest is their copy, and whether a sample of vectors has the neighbors that
brute force finds in double precision. Fails if it has not.
"""

from __future__ import annotations

import argparse
import time

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.memory import peak_bytes
from isoglot.evaluation.retrieval import Neighbors, nearest_neighbors

NOISE = 1.0
"""Its standard deviation, beside 1 of the vectors: cosines to their copies are around 0.7."""
TOLERANCE = 1e-5
"""Cosines may differ by so much: those of `nearest` are sums in single precision."""


def made_up(number: int, dimensions: int) -> tuple[Tensor, Tensor, Tensor]:
    """Two sets of vectors, and the place of each first one's copy in the second set."""
    random = torch.Generator().manual_seed(0)
    first = torch.randn(number, dimensions, generator=random)
    order = torch.randperm(number, generator=random)
    second = first[order]
    for block in second.split(1024):  # in place: noise for all at once would be a third set
        block.add_(torch.randn(block.shape, generator=random), alpha=NOISE)
    return first, second, order.argsort()


def agrees(found: Neighbors, queries: Tensor, candidates: Tensor, sample: Tensor) -> bool:
    """Do the sampled queries have the neighbors of brute force, in double precision?

    Where two candidates are as near as rounding can tell, either may come first.
    """
    chosen = F.normalize(queries[sample].double(), dim=-1)
    cosines = torch.cat(
        [chosen @ F.normalize(part.double(), dim=-1).T for part in candidates.split(8192)], dim=1
    )
    k = found.indices.shape[1]
    best = cosines.topk(k, dim=1).values
    said = cosines.gather(1, found.indices[sample])
    reported = found.cosines[sample].double()
    return bool(
        (best - said).abs().max() <= TOLERANCE and (best - reported).abs().max() <= TOLERANCE
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure a search for nearest neighbors.")
    parser.add_argument("--number", type=int, default=100_000, help="vectors of each set")
    parser.add_argument("--dimensions", type=int, default=768)
    parser.add_argument("--neighbors", type=int, default=1, help="of each vector")
    parser.add_argument("--sample", type=int, default=256, help="vectors to compare")
    given = parser.parse_args()
    first, second, copies = made_up(given.number, given.dimensions)
    before = peak_bytes()
    started = time.perf_counter()
    there, back = nearest_neighbors(first, second, k=given.neighbors)
    seconds = time.perf_counter() - started
    after = peak_bytes()
    print(
        f"{given.number:,} x {given.number:,} vectors of {given.dimensions}, "
        f"{given.neighbors} neighbors both ways, {torch.get_num_threads()} threads"
    )
    print(f"seconds             {seconds:.1f}")
    print(f"peak memory         {before / 1e9:.2f} GB before, {after / 1e9:.2f} GB with the search")
    right = (there.indices[:, 0] == copies).double().mean().item()
    print(f"nearest is the copy {100 * right:.1f} %")
    sample = torch.randperm(given.number, generator=torch.Generator().manual_seed(1))
    sample = sample[: given.sample]
    same = agrees(there, first, second, sample) and agrees(back, second, first, sample)
    print(f"brute force         {'the same' if same else 'DIFFERENT'} on {len(sample)} vectors")
    if not same:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
