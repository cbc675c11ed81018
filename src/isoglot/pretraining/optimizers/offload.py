"""AdamW with its moments in the host's memory, where it updates the weights (ZeRO-Offload).

    GPU gradient --copied while the one before it is updated--> host: moments, float32 weights
    GPU weight <--copied-- updated weight

The GPU keeps weights and gradients; the host 12 bytes a weight: two moments and the weights in
float32. Behind bf16 weights, the float32 ones are part of the state that checkpoints hold
(`master`); otherwise they are copies.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.optim.adamw import adamw
from typing_extensions import override

from isoglot.pretraining.optimizers.low_bit import MOMENTS, PlainStateOptimizer

if TYPE_CHECKING:
    from collections.abc import Callable

    from isoglot.pretraining.optimizers.optimizer import OptimizerConfig

MASTER = "master"
_HOST = torch.device("cpu")


class OffloadedAdamW(PlainStateOptimizer):
    """AdamW on the host, for weights of any device."""

    def __init__(self, groups: list[dict[str, Any]], config: OptimizerConfig) -> None:
        """Make an optimizer of groups of weights (`params`, `weight_decay`)."""
        super().__init__(
            groups, {"lr": config.learning_rate, "betas": config.betas, "eps": config.eps}
        )
        self._copies: dict[Tensor, Tensor] = {}
        """The weights on the host, in float32."""

    @override
    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        assert closure is None
        todo = [
            (group, weight)
            for group in self.param_groups
            for weight in group["params"]
            if weight.grad is not None
        ]
        if not todo:
            return None
        gradients = _GradientQueue([weight for _, weight in todo])
        for number, (group, weight) in enumerate(todo):
            gradient = gradients.get(number)
            own, state = self._host_weight(weight), self.state[weight]
            for name in MOMENTS:
                if name not in state:
                    state[name] = torch.zeros_like(own)
            step = state.setdefault("step", torch.tensor(0.0))
            adamw(
                [own],
                [gradient],
                [state["exp_avg"]],
                [state["exp_avg_sq"]],
                [],
                [step],
                fused=True,
                amsgrad=False,
                beta1=group["betas"][0],
                beta2=group["betas"][1],
                lr=group["lr"],
                weight_decay=group["weight_decay"],
                eps=group["eps"],
                maximize=False,
            )
            gradients.send(weight, own)
        gradients.finish()
        return None

    @override
    def restored(self, weight: Tensor, key: str, value: Any) -> Any:
        return value.to(_HOST) if torch.is_tensor(value) else value

    def _host_weight(self, weight: Tensor) -> Tensor:
        """The float32 weight on the host; one that is not what the model has is copied anew."""
        if weight in self._copies:
            return self._copies[weight]
        current = weight.detach().to(_HOST)
        found: Tensor | None = self.state[weight].get(MASTER)
        # a model's weights may have been set since the state was saved
        if found is None or not torch.equal(found.to(weight.dtype), current):
            found = current.to(torch.float32, copy=True)
        if weight.is_cuda:
            found = found.pin_memory()
        self._copies[weight] = found
        if weight.dtype is not torch.float32:
            self.state[weight][MASTER] = found
        return found


class _GradientQueue:
    """Gradients on their way to the host, one ahead of the update."""

    def __init__(self, weights: list[Tensor]) -> None:
        self._weights = weights
        self._cuda = weights[0].is_cuda
        self._stream = torch.cuda.Stream(weights[0].device) if self._cuda else None
        self._sent: dict[int, tuple[Tensor, torch.cuda.Event | None]] = {}
        if self._stream is not None:
            self._stream.wait_stream(torch.cuda.current_stream())
        self._launch(0)

    def get(self, number: int) -> Tensor:
        """A gradient in float32; the next one is then on its way."""
        self._launch(number + 1)
        gradient, event = self._sent.pop(number)
        if event is not None:
            event.synchronize()
        return gradient.float()

    def send(self, weight: Tensor, own: Tensor) -> None:
        """Copy an updated weight back."""
        with self._on_stream():
            weight.copy_(own.to(weight.dtype), non_blocking=True)

    def finish(self) -> None:
        """Let the next forward pass wait for the weights."""
        if self._stream is not None:
            self._stream.synchronize()

    def _launch(self, number: int) -> None:
        if number >= len(self._weights):
            return
        gradient, event = self._weights[number].grad, None
        assert gradient is not None
        if self._stream is not None:
            with self._on_stream():
                host = torch.empty(gradient.shape, dtype=gradient.dtype, pin_memory=True)
                gradient = host.copy_(gradient, non_blocking=True)
                event = self._stream.record_event()
        self._sent[number] = (gradient, event)

    def _on_stream(self) -> Any:
        return nullcontext() if self._stream is None else torch.cuda.stream(self._stream)
