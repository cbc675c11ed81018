"""The states of one layer of an encoder, computed without the layers above it.

The pass ends where that layer's states are handed to the next one. For a model whose layers are not
a list (ALBERT runs one layer many times), all layers are computed. Which of the two gives the right
states is tried once, on a short row.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from isoglot.evaluation.embed import pad_rows

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from isoglot.evaluation.settings import EncodeType
    from isoglot.models.encoder import Encoder, States
    from isoglot.types import Rows

_SAME = 1e-5


class _ReachedError(Exception):
    """Raised where the wanted states are known."""

    def __init__(self, states: Tensor) -> None:
        self.states = states


class LayerStates:
    """Rows to the states of one layer."""

    def __init__(self, encoder: Encoder, layer: int, encode_type: EncodeType = "float32") -> None:
        """`layer` is 0 for the embeddings."""
        self._encoder, self._layer, self._encode_type = encoder.eval(), layer, encode_type
        self.device = next(encoder.parameters()).device
        self._next = self._find_next_layer()

    @torch.no_grad()
    def __call__(self, rows: Rows) -> Tensor:
        """(B, L, D) states of rows on the device."""
        with self._autocast():
            if self._next is None:
                return self._with_all_layers(rows)
            return self._stopped(rows, self._next)

    def _autocast(self) -> AbstractContextManager[Any]:
        if self._encode_type == "float32":
            return nullcontext()
        return torch.autocast(self.device.type, dtype=torch.bfloat16)

    def _with_all_layers(self, rows: Rows) -> Tensor:
        states: States = self._encoder(rows, layers=True)
        assert states.layers is not None
        return states.layers[self._layer]

    def _stopped(self, rows: Rows, module: nn.Module) -> Tensor:
        """The states that the module gets."""

        def stop(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            raise _ReachedError(args[0] if args else kwargs["hidden_states"])

        handle = module.register_forward_pre_hook(stop, with_kwargs=True)
        try:
            self._encoder(rows)
        except _ReachedError as reached:
            return reached.states
        finally:
            handle.remove()
        raise AssertionError("the next layer was not reached")

    @torch.no_grad()
    def _find_next_layer(self) -> nn.Module | None:
        """The layer above the wanted one; none if all layers are to be computed."""
        config = self._encoder.model.config
        number = int(config.num_hidden_layers)
        if self._layer >= number:
            return None
        rows = pad_rows([[1, 2, 3], [2]], 0).to(self.device)
        real = rows.sequences >= 0
        wanted = self._with_all_layers(rows)[real]
        for module in self._encoder.model.modules():
            if isinstance(module, nn.ModuleList) and len(module) == number:
                try:
                    found = self._stopped(rows, module[self._layer])
                except (AssertionError, KeyError):
                    continue
                if found.shape == (*rows.ids.shape, wanted.shape[-1]) and torch.allclose(
                    found[real], wanted, atol=_SAME, rtol=_SAME
                ):
                    return module[self._layer]
        return None
