"""What looking up pair counts costs: against millions of stored pairs, beside a step of MLM.

    python benchmarks/pair_lookup.py [--pairs 50000000] [--vocabulary 60000] [--size base]

Makes a table of that many pairs in memory (on a GPU if there is one), takes a batch of 32 rows of
512 tokens with 15 % masked, and measures medians in milliseconds:

    look-up        the counts of all masked tokens with their 2 + 2 neighbors
    by rows        the same by bisecting inside the row of the smaller id: what an index would give
    regression     the whole loss and its gradient with respect to the states
    step           a step of MLM alone with a new model of a size: encode, head, gradient, update

About a third of the pairs asked for are in the table. The step is left out with `--size none`.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from isoglot.corpus.cooccurrence.pair_table import PairTable
from isoglot.models.config import ModelConfig
from isoglot.models.encoder import Encoder
from isoglot.objectives.cooccurrence import Cooccurrence, CooccurrenceRegression, PairLookup
from isoglot.objectives.neighbors import TokenLayout
from isoglot.types import Rows, Vocabulary

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS, LENGTH, RATE, WINDOW = 32, 512, 0.15, 2


def made_up(pairs: int, size: int) -> PairTable:
    """So many pairs, evenly over all that there can be."""
    rng = np.random.default_rng(0)
    # sums of random gaps are sorted already; half of the places have the smaller id first
    places = np.cumsum(rng.exponential(size=int(2.2 * pairs)))
    keys = (places * (size**2 / places[-1])).astype(np.int64)
    keys = keys[(np.diff(keys, prepend=-1) > 0) & (keys // size <= keys % size) & (keys < size**2)]
    keys = keys[np.linspace(0, len(keys) - 1, pairs).astype(np.int64)]
    logs = rng.gamma(2, 2, len(keys)).astype(np.float32)
    return PairTable(keys=keys, log_counts=logs, vocabulary_size=size, language_constants={})


def ids_of(table: PairTable, device: torch.device) -> Tensor:
    """A batch in which every second token stands before one that it is stored with."""
    rng = np.random.default_rng(1)
    keys = table.keys[rng.integers(0, len(table.keys), ROWS * LENGTH // 2)]
    both = np.stack([keys // table.vocabulary_size, keys % table.vocabulary_size], axis=1)
    return torch.from_numpy(both.flatten()).to(device)


def milliseconds(work: Callable[[], object], device: torch.device, *, times: int = 20) -> float:
    """The median time of some work."""
    found = []
    for number in range(times + 3):
        if device.type == "cuda":
            torch.cuda.synchronize()
        begun = time.perf_counter()
        work()
        if device.type == "cuda":
            torch.cuda.synchronize()
        if number >= 3 or times == 1:
            found.append(1000 * (time.perf_counter() - begun))
    return statistics.median(found)


class ByRows:
    """Bisection inside the row of the smaller id, all pairs at once: the way not taken."""

    def __init__(self, table: PairTable, device: torch.device) -> None:
        first = table.keys // table.vocabulary_size
        starts = np.searchsorted(first, np.arange(table.vocabulary_size + 1))
        self.starts = torch.from_numpy(starts).to(device)
        others = (table.keys % table.vocabulary_size).astype(np.int32)
        self.others = torch.from_numpy(np.append(others, 0)).to(device)
        self.logs = torch.from_numpy(np.append(table.log_counts, 0)).to(device)
        self.rounds = int(np.diff(starts).max()).bit_length()

    def __call__(self, first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
        """As `PairLookup`."""
        row, other = torch.minimum(first, second), torch.maximum(first, second)
        low, end = self.starts[row], self.starts[row + 1]
        high = end
        for _ in range(self.rounds):
            middle = (low + high) // 2
            below = (self.others[middle] < other) & (middle < high)
            low, high = torch.where(below, middle + 1, low), torch.where(below, high, middle)
        seen = (low < end) & (self.others[low] == other)
        return torch.where(seen, self.logs[low], 0.0), seen


def mlm_step(size: str, vocabulary: int, ids: Tensor, targets: Tensor) -> Callable[[], object]:
    """A step of MLM of a new model on the batch."""
    settings = ModelConfig(size=size, max_positions=LENGTH, dropout=0.1)  # type: ignore[arg-type]
    encoder = Encoder.from_scratch(settings, vocabulary, 1).to(ids.device)
    optimizer = torch.optim.AdamW([w for w in encoder.parameters() if w.requires_grad], fused=True)
    grid = ids.view(ROWS, LENGTH)
    zeros = torch.zeros_like(grid)
    places = torch.arange(LENGTH, device=ids.device).expand(ROWS, -1)
    rows = Rows(
        ids=grid,
        positions=places,
        languages=zeros,
        sentences=zeros,
        roles=zeros,
        rules=zeros,
        sequences=zeros,
    )
    on_gpu = ids.device.type == "cuda"
    if on_gpu:
        encoder.compile()

    def step() -> None:
        with torch.autocast(ids.device.type, torch.bfloat16, enabled=on_gpu):
            states = encoder(rows)
            weights = torch.ones(len(targets), device=ids.device)
            losses = encoder.target_losses(states, targets, ids[targets], weights).losses
        losses.mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--pairs", type=int, default=50_000_000)
    parser.add_argument("--vocabulary", type=int, default=60_000)
    parser.add_argument("--size", default="base", help="tiny, small, base, ... or none")
    given = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    table = made_up(given.pairs, given.vocabulary)
    lookup, by_rows = PairLookup(table).to(device), ByRows(table, device)
    ids = ids_of(table, device)
    generator = torch.Generator().manual_seed(0)
    number = int(RATE * ROWS * LENGTH)
    targets = torch.randperm(ROWS * LENGTH, generator=generator)[:number].to(device)
    steps = torch.tensor([-2, -1, 1, 2], device=device)
    near = (targets[:, None] + steps).clamp(0, ROWS * LENGTH - 1)
    asked = ids[targets][:, None], ids[near]
    logs, seen = lookup(*asked)
    same, also = by_rows(*asked)
    assert torch.equal(logs, same)
    assert torch.equal(seen, also)
    share = f"{seen.float().mean():.0%} seen"
    print(f"{device}: {len(table.keys):,} pairs, {near.numel():,} asked, {share}")
    found = milliseconds(lambda: lookup(*asked), device)
    print(f"look-up     {found:9.2f} ms")
    print(f"by rows     {milliseconds(lambda: by_rows(*asked), device):9.2f} ms")
    encoder = Encoder.from_scratch(
        ModelConfig(size="tiny", hidden_size=768, num_heads=12, num_layers=1), 100, 1
    )
    vocabulary = Vocabulary(
        size=given.vocabulary,
        cls=0,
        sep=2,
        pad=1,
        mask=3,
        special=(),
        word_starts=np.ones(given.vocabulary, np.bool_),
    )
    regression = CooccurrenceRegression(Cooccurrence(), table, vocabulary, encoder).to(device)
    states = torch.randn(ROWS * LENGTH, 768, device=device, requires_grad=True)
    flat = torch.arange(ROWS * LENGTH, device=device)
    layout = TokenLayout(sentences=flat // LENGTH, positions=flat % LENGTH)

    def regress() -> None:
        everywhere = torch.ones_like(ids, dtype=torch.bool)
        regression.regress(states, targets, ids, layout, everywhere).total.backward()
        states.grad = None

    print(f"regression  {milliseconds(regress, device):9.2f} ms")
    if given.size != "none":
        step = mlm_step(given.size, given.vocabulary, ids, targets)
        times = 20 if device.type == "cuda" else 1
        took = milliseconds(step, device, times=times)
        print(f"step        {took:9.2f} ms ({given.size}); look-up is {found / took:.2%} of it")


if __name__ == "__main__":
    main()
