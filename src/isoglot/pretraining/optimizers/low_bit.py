"""AdamW with bf16 weights, or with bf16 or 8-bit moments; the update is torchao's.

8-bit moments are blocks of codes with a scale each (Dettmers et al., 2022, section 2). A block lies
inside one row of a weight, so that the moments of a weight are the same however FSDP splits its
rows. The state is made of plain tensors, or of DTensors of them for the weights of FSDP:

    step, exp_avg, exp_avg_sq                                      float32 or bf16
    step, exp_avg_codes, exp_avg_scale, exp_avg_sq_codes, ...      int8

Vectors (biases, norms) and small or narrow matrices keep float32 moments.

bf16 weights are rounded stochastically. The random bits of a step come from the run's seed and the
number of the step: all processes round alike, and a resumed run rounds as it would have.

A large weight is updated in parts of whole rows: the update's temporary tensors, about 24 bytes a
value, are those of one part. For the embeddings of XLM-R XXL (1.0 B values) they would be 24 GB.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor, Shard
from typing_extensions import override

from isoglot.batching.counter_rng import key_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from isoglot.pretraining.memory_config import MemoryConfig
    from isoglot.pretraining.optimizers.optimizer import OptimizerConfig

MIN_QUANTIZED = 4096
"""Weights with fewer values keep float32 moments, as in bitsandbytes."""
BLOCK_SIZE, MIN_BLOCK_SIZE = 256, 32
"""Values that share a scale: as many as divide a row, at most and at least."""
MOMENTS = ("exp_avg", "exp_avg_sq")
PART_VALUES = 2**26
"""Values of a weight that are updated at a time, at most, unless one row has more."""


class PlainStateOptimizer(torch.optim.Optimizer):
    """An optimizer whose state is restored with the types and devices that it was saved with.

    torch's own casts moments to the type of their weight when a state is loaded.
    """

    @override
    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        saved = state_dict["param_groups"]
        pairs = list(zip(self.param_groups, saved, strict=True))
        for group, content in pairs:
            weights = zip(group["params"], content["params"], strict=True)
            for weight, number in weights:
                if number in state_dict["state"]:
                    found = state_dict["state"][number]
                    self.state[weight] = {
                        key: self.restored(weight, key, value) for key, value in found.items()
                    }
            group.update({key: value for key, value in content.items() if key != "params"})

    def restored(self, weight: Tensor, key: str, value: Any) -> Any:
        """A value of a weight's state, where the optimizer needs it."""
        if not torch.is_tensor(value) or key == "step":
            return value
        return value.to(weight.device)


class LowBitAdamW(PlainStateOptimizer):
    """AdamW for bf16 weights, bf16 moments or 8-bit moments."""

    def __init__(
        self,
        groups: list[dict[str, Any]],
        config: OptimizerConfig,
        memory: MemoryConfig,
        *,
        seed: int,
    ) -> None:
        """Make an optimizer of groups of weights, each with its own weight decay.

        Args:
            groups: dictionaries with `params` and `weight_decay`.
            config: learning rate, betas, eps.
            memory: types of weights and moments.
            seed: of stochastic rounding.

        Raises:
            RecipeError: torchao is not installed.
        """
        _torchao()
        super().__init__(
            groups, {"lr": config.learning_rate, "betas": config.betas, "eps": config.eps}
        )
        self.memory, self.seed = memory, seed

    @override
    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        assert closure is None
        for number, (group, weight) in enumerate(self._with_gradients()):
            state = self.state[weight]
            if not state:
                state.update(self._new_state(weight))
            state["step"] += 1
            self._update(group, weight, state, number)
        return None

    def _with_gradients(self) -> Iterator[tuple[dict[str, Any], Tensor]]:
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is not None:
                    yield group, weight

    def _update(
        self, group: dict[str, Any], weight: Tensor, state: dict[str, Tensor], number: int
    ) -> None:
        local = _local(weight.detach())
        assert weight.grad is not None
        gradient = _local(weight.grad)
        rounds = local.dtype is torch.bfloat16
        rest = (
            None,
            torch.tensor(group["lr"], dtype=torch.float32),
            *group["betas"],
            group["weight_decay"],
            group["eps"],
            True,
            rounds,
        )
        seeds = int(state["step"]), number, _shard_number(weight)
        for part, rows in enumerate(row_parts(local.shape)):
            moments = [_moment(state, name, rows, signed=name == "exp_avg") for name in MOMENTS]
            arguments = (local[rows], gradient[rows], state["step"], *moments, *rest)
            if not rounds:
                _update_function(local)(*arguments)
                continue
            with torch.random.fork_rng([local.device] if local.is_cuda else []):
                of_part = (part,) if part else ()
                torch.manual_seed(key_of(self.seed, "rounding", *seeds, *of_part) >> 1)
                _update_function(local)(*arguments)

    def _new_state(self, weight: Tensor) -> dict[str, Tensor]:
        state = {"step": torch.tensor(0.0)}
        local, kind = _local(weight.detach()), moment_type(weight.shape, self.memory)
        for name in MOMENTS:
            if kind == "int8":
                block, width = block_size(weight.shape), math.prod(weight.shape[1:])
                codes = torch.zeros_like(local, dtype=torch.uint8)
                scale = torch.zeros(len(local), width // block, device=local.device)
                state[f"{name}_codes"] = _like(weight, codes)
                state[f"{name}_scale"] = _like(weight, scale)
            else:
                dtype = torch.bfloat16 if kind == "bf16" else torch.float32
                state[name] = _like(weight, torch.zeros_like(local, dtype=dtype))
        return state


def row_parts(shape: torch.Size) -> Iterator[slice]:
    """The rows of a weight in parts of `PART_VALUES` at most, all but the last of one size."""
    if not shape:
        yield slice(None)  # a number by itself
        return
    most = max(1, PART_VALUES // max(1, math.prod(shape[1:])))
    parts = -(-shape[0] // most)
    size = -(-shape[0] // max(1, parts)) or 1
    for start in range(0, shape[0], size):
        yield slice(start, start + size)


def part_values(shape: torch.Size) -> int:
    """Values of a weight that are updated at a time."""
    rows = next(row_parts(shape), slice(0, 0))
    return shape.numel() if rows.stop is None else rows.stop * math.prod(shape[1:])


def moment_type(shape: torch.Size, memory: MemoryConfig) -> str:
    """The type of the moments of a weight: float32, bf16 or int8."""
    if len(shape) < 2:
        return "float32"
    if memory.moments != "int8":
        return memory.moments
    large = shape.numel() >= MIN_QUANTIZED and block_size(shape) >= MIN_BLOCK_SIZE
    return "int8" if large else "float32"


def block_size(shape: torch.Size) -> int:
    """Values that share a scale: the largest power of two up to `BLOCK_SIZE` in a row."""
    return math.gcd(BLOCK_SIZE, math.prod(shape[1:]))


def moment_bytes(shape: torch.Size, memory: MemoryConfig) -> int:
    """Bytes of both moments of a weight."""
    kind, number = moment_type(shape, memory), shape.numel()
    if kind == "int8":
        return 2 * (number + 4 * (number // block_size(shape)))
    return 2 * number * (2 if kind == "bf16" else 4)


def _moment(state: Mapping[str, Tensor], name: str, rows: slice, *, signed: bool) -> Tensor:
    """Rows of a moment as torchao reads and writes it; 8-bit ones share the state's memory."""
    if name in state:
        return _local(state[name])[rows]
    codes, scale = _local(state[f"{name}_codes"])[rows], _local(state[f"{name}_scale"])[rows]
    found: Tensor = _torchao().OptimState8bit(
        codes, scale.view(-1), _code_values(signed, codes.device), signed, dtype=torch.float32
    )
    return found


@functools.cache
def _code_values(signed: bool, device: torch.device) -> Tensor:  # noqa: FBT001
    state: Any = _torchao().OptimState8bit.zeros((BLOCK_SIZE,), signed, BLOCK_SIZE, device)
    values: Tensor = state.qmap
    return values


def _local(tensor: Tensor) -> Tensor:
    """This process's rows of a weight of FSDP; any other tensor as it is."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def _like(weight: Tensor, rows: Tensor) -> Tensor:
    """Rows of a state, split over processes as those of its weight are."""
    if not isinstance(weight, DTensor):
        return rows
    shape = torch.Size((weight.shape[0], *rows.shape[1:]))
    stride = torch.empty(shape, device="meta").stride()
    return DTensor.from_local(
        rows, weight.device_mesh, weight.placements, run_check=False, shape=shape, stride=stride
    )


def _shard_number(weight: Tensor) -> int:
    """Which part of a weight this process has: replicas of a part have the same number."""
    if not isinstance(weight, DTensor):
        return 0
    place: list[int] = list(weight.device_mesh.get_coordinate() or [])
    number = 0
    for size, at, placement in zip(
        weight.device_mesh.shape, place, weight.placements, strict=False
    ):
        if isinstance(placement, Shard):
            number = number * size + at
    return number


def _update_function(weight: Tensor) -> Callable[..., None]:
    """The update of one weight by torchao, compiled on a GPU."""
    update: Callable[..., None] = _torchao().single_param_adam
    return _compiled(update) if weight.is_cuda else update


@functools.cache
def _compiled(function: Callable[..., None]) -> Callable[..., None]:
    compiled = torch.compile(function, fullgraph=True, dynamic=False)

    def call(*arguments: Any) -> None:
        # weights have few shapes, so that compiling ends
        with torch._dynamo.utils.disable_cache_limit():  # noqa: SLF001
            compiled(*arguments)

    return call


@functools.cache
def _torchao() -> Any:
    """The module `torchao.optim.adam`."""
    from torchao.optim import adam

    return adam
