"""Only the embeddings of words that the training data has are trained; others get no gradient.

A multilingual model has up to 250,000 word embeddings, most of its weights, and a training set a
few thousand different tokens. Gradients, clipping and Adam's moments of the other rows are zeros,
whose computation takes much of a step on a CPU. `TrainedRows` gives the model a table of the
occurring rows during training and writes it back; all other rows do what AdamW does with a gradient
of zero from the first step on: they shrink by the weight decay alone.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import TracebackType

    from isoglot.finetuning.head import Window


def token_ids(windows: Iterable[Window], pad: int) -> Tensor:
    """The token ids of windows, each once, ascending; with the padding."""
    arrays = [sequence["input_ids"] for window in windows for sequence in window.sequences]
    found = np.unique(np.concatenate([np.array([pad]), *arrays]))
    return torch.from_numpy(found.astype(np.int64))


class TrainedRows:
    """Within: the model's table of word embeddings has the given rows only."""

    def __init__(self, model: Any, ids: Tensor) -> None:
        """`ids` are those of all tokens that the model gets, ascending."""
        self._table = model.get_input_embeddings()
        self._ids = ids.to(self._table.weight.device)
        self._whole: nn.Parameter = self._table.weight
        self._padding: int | None = self._table.padding_idx
        self._rows = nn.Parameter(self._whole.detach()[self._ids].clone())
        self._places = torch.full((len(self._whole),), -1, device=self._ids.device)
        self._places[self._ids] = torch.arange(len(ids), device=self._ids.device)
        self._decay = 1.0
        self._hook: Any = None

    @staticmethod
    def are_possible(model: Any) -> bool:
        """Whether the table is a plain one, is trained, and no other module uses its weights."""
        table = model.get_input_embeddings()
        if not isinstance(table, nn.Embedding) or type(table).forward is not nn.Embedding.forward:
            return False
        weights = [weight for _, weight in model.named_parameters(remove_duplicate=False)]
        is_plain = table.max_norm is None and not table.sparse and table.weight.requires_grad
        return is_plain and sum(weight is table.weight for weight in weights) == 1

    def __enter__(self) -> Self:
        self._attach()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._detach()

    @contextmanager
    def whole(self) -> Iterator[None]:
        """Within: the model has all rows, the trained ones as they are now."""
        self._detach()
        try:
            yield
        finally:
            self._attach()

    def follow(self, optimizer: torch.optim.Optimizer) -> None:
        """Apply the weight decay of an AdamW optimizer to the other rows, too."""

        def decay(stepped: torch.optim.Optimizer, *_: object) -> None:
            for group in stepped.param_groups:
                if any(weight is self._rows for weight in group["params"]):
                    self._decay *= 1 - float(group["lr"]) * group["weight_decay"]

        optimizer.register_step_post_hook(decay)

    def _attach(self) -> None:
        table = self._table
        table.weight = self._rows
        if self._padding is not None:
            table.padding_idx = int(self._places[self._padding])
        self._hook = table.register_forward_pre_hook(lambda _, given: (self._places[given[0]],))

    def _detach(self) -> None:
        self._hook.remove()
        with torch.no_grad():
            if self._decay != 1.0:
                self._whole.mul_(self._decay)
                self._decay = 1.0
            self._whole[self._ids] = self._rows
        self._table.weight, self._table.padding_idx = self._whole, self._padding
