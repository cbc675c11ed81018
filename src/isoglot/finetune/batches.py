"""The order of training: shuffled anew in each epoch, couples kept together.

Pieces that must share a batch (code-switching) come as couples; the others are coupled at random in
each epoch, so that every batch of even size is filled with couples and none is torn.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from torch.utils.data import Sampler
from typing_extensions import override

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Batches(Sampler[list[int]]):
    """Lists of indices, one a batch; each pass over them is another epoch."""

    def __init__(
        self, number: int, batch_size: int, *, seed: int, couples: Sequence[tuple[int, int]] = ()
    ) -> None:
        assert not couples or batch_size % 2 == 0, "a couple would be torn"
        coupled = {index for couple in couples for index in couple}
        self.number, self.batch_size, self.seed = number, batch_size, seed
        self.couples = np.array(couples, np.int64).reshape(-1, 2)
        self.singles = np.array([i for i in range(number) if i not in coupled], np.int64)
        self.epoch = 0

    def __len__(self) -> int:
        return math.ceil(self.number / self.batch_size)

    @override
    def __iter__(self) -> Iterator[list[int]]:
        order = self._order(np.random.default_rng((self.seed, self.epoch)))
        self.epoch += 1
        for begin in range(0, self.number, self.batch_size):
            yield order[begin : begin + self.batch_size].tolist()

    def _order(self, rng: np.random.Generator) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        singles = rng.permutation(self.singles)
        even = len(singles) // 2 * 2
        couples = np.concatenate([self.couples, singles[:even].reshape(-1, 2)])
        return np.concatenate([rng.permutation(couples).reshape(-1), singles[even:]])
