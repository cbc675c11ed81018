"""New vocabulary-sized tensors from the source's: copies, weighted means, random or zero rows.

The word embeddings, an output matrix of its own and the LM head's bias all follow the same
`Matches`. A row that is made from a single source row is that row, bit for bit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F

if TYPE_CHECKING:
    from torch import Tensor

    from isoglot.models.transplant.matching import Matches


def transplanted_rows(table: Tensor, matches: Matches, generator: torch.Generator) -> Tensor:
    """A tensor with a row for each target id, from one (V, ...) with a row for each source id."""
    flat = table.reshape(len(table), -1)
    numbers = np.diff(matches.offsets)
    rows = flat.new_zeros(len(numbers), flat.shape[1])
    single, several = numbers == 1, numbers > 1
    rows[torch.from_numpy(single)] = flat[
        torch.from_numpy(matches.sources[matches.offsets[:-1][single]])
    ]
    if several.any():
        rows[torch.from_numpy(several)] = _means(flat, matches, several)
    drawn = torch.tensor([kind == "random" for kind in matches.kinds])
    rows[drawn] = random_like(flat, int(drawn.sum()), generator)
    return rows.reshape(len(numbers), *table.shape[1:])


def random_like(table: Tensor, number: int, generator: torch.Generator) -> Tensor:
    """New rows, drawn with the mean and the standard deviation of all numbers of a table."""
    drawn = torch.randn(number, table.shape[1], generator=generator, dtype=table.dtype)
    return drawn * table.std() + table.mean()


def _means(flat: Tensor, matches: Matches, several: np.ndarray) -> Tensor:
    entries = np.repeat(several, np.diff(matches.offsets))
    numbers = np.diff(matches.offsets)[several]
    return F.embedding_bag(
        torch.from_numpy(matches.sources[entries]),
        flat,
        torch.from_numpy(np.cumsum(numbers) - numbers),
        mode="sum",
        per_sample_weights=torch.from_numpy(matches.weights[entries]).to(flat.dtype),
    )
