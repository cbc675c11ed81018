"""What tests of entity prediction and object entailment share: a vocabulary, states, a result."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from isoglot.objectives.base import ForwardResult
from isoglot.types import Vocabulary

MASK = 4
VOCABULARY = Vocabulary(
    size=60, cls=0, sep=2, pad=1, mask=MASK, special=(0, 1, 2, 3, 4), word_starts=np.ones(60, bool)
)
WIDTH = 6


def encoder_of(width: int = WIDTH) -> Any:
    config = SimpleNamespace(num_hidden_layers=2, initializer_range=0.5)
    return SimpleNamespace(hidden_size=width, model=SimpleNamespace(config=config))


def corpus_of(relations: int = 3) -> Any:
    table = {"relation": np.arange(relations)}
    return SimpleNamespace(knowledge=SimpleNamespace(relations=table, folder="store"))


def encoded(
    name: str, states: torch.Tensor, sites: Any, labels: Any, losses: Any = None
) -> ForwardResult:
    batch: Any = SimpleNamespace(
        markers={name: {n: torch.tensor(v) for n, v in sites.items()}} if sites else {},
        labels={name: {n: torch.tensor(v) for n, v in labels.items()}},
        rows=SimpleNamespace(sequences=torch.arange(2).repeat(2, 2).sort().values),
    )
    losses = torch.zeros(0, dtype=torch.float64) if losses is None else losses
    return ForwardResult(
        batch=batch, name=name, hidden_states=states, target_losses=losses, correct=losses
    )


def states_of_rows() -> torch.Tensor:
    torch.manual_seed(1)
    return torch.randn(2, 4, WIDTH, dtype=torch.float64, requires_grad=True)
