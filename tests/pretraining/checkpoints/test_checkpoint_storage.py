"""Checkpoints of several processes: written by some, read by others, sharded in any way."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
import torch.distributed as dist
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from typing_extensions import override

from isoglot.pretraining.checkpoints import checkpoint_storage
from isoglot.pretraining.checkpoints.checkpoint import Checkpoint
from isoglot.pretraining.checkpoints.checkpoint_saver import save
from isoglot.pretraining.memory_config import MemoryConfig
from isoglot.pretraining.optimizers.low_bit import LowBitAdamW
from isoglot.pretraining.optimizers.optimizer import OptimizerConfig, make_optimizer
from tests.pretraining.checkpoints.test_checkpoint import state
from tests.pretraining.groups import Group

if TYPE_CHECKING:
    from accelerate import Accelerator

DTYPES = (
    torch.float64,
    torch.float32,
    torch.bfloat16,
    torch.float16,
    torch.float8_e4m3fn,
    torch.int64,
    torch.uint8,
    torch.bool,
)
SHAPES = ((), (0, 3), (1,), (5,), (9,), (3, 4), (4, 3), (16, 2), (7, 2, 3), (2, 5))
PROCESSES = 4


@dataclass(frozen=True)
class Case:
    """Tensors, and how many processes hold them, how, when they are saved and when loaded."""

    seed: int
    tensors: tuple[tuple[torch.dtype, tuple[int, ...]], ...]
    saved: tuple[str, tuple[str, ...]]
    loaded: tuple[str, tuple[str, ...]]
    """The processes (`1` to `4`, or `2x2`), and for each tensor: whole, rows or columns."""
    share_bytes: int
    file_bytes: int


def cases(number: int, seed: int) -> list[Case]:
    chance, found = random.Random(seed), []
    for one in range(number):
        trained = (torch.float32, chance.choice(SHAPES[2:]))
        others = (
            (chance.choice(DTYPES), chance.choice(SHAPES)) for _ in range(chance.randint(0, 5))
        )
        tensors = (trained, *others)
        saved, loaded = (some_way(chance, len(tensors)) for _ in range(2))
        sizes = chance.choice((1, 40, 10**6)), chance.choice((1, 100, 10**9))
        found.append(Case(one, tensors, saved, loaded, *sizes))
    return found


def some_way(chance: random.Random, number: int) -> tuple[str, tuple[str, ...]]:
    ways = chance.choices(("whole", "rows", "rows", "columns"), k=number)
    return chance.choice(("1", "2", "3", "4", "2x2")), tuple(ways)


def full(case: Case) -> list[Tensor]:
    generator = torch.Generator().manual_seed(case.seed)
    return [
        torch.randint(0, 2 if dtype is torch.bool else 100, shape, generator=generator).to(dtype)
        for dtype, shape in case.tensors
    ]


def held(tensor: Tensor, mesh: DeviceMesh, way: str) -> Tensor:
    dim = {"whole": 2, "rows": 0, "columns": 1}[way]
    if tensor.ndim <= dim or way == "whole":
        return tensor.clone()
    replicated = [Replicate()] * (mesh.ndim - 1)
    return distribute_tensor(tensor, mesh, [*replicated, Shard(dim)], src_data_rank=None)


class Held(nn.Module):
    """A module with given tensors, and an optimizer with state of the shapes of its weights."""

    def __init__(self, tensors: list[Tensor]) -> None:
        super().__init__()
        for number, tensor in enumerate(tensors):
            if tensor.is_floating_point() and tensor.ndim:
                self.register_parameter(f"w{number}", nn.Parameter(tensor))
            else:
                self.register_buffer(f"b{number}", tensor)

    def optimizer(self, mesh: DeviceMesh, ways: tuple[str, ...]) -> torch.optim.Optimizer:
        optimizer = torch.optim.SGD(self.parameters(), lr=0.1)
        for name, weight in self.named_parameters():
            number = int(name[1:])
            generator = torch.Generator().manual_seed(number)
            moments = torch.randn(weight.shape, generator=generator)
            optimizer.state[weight]["exp_avg"] = held(moments, mesh, ways[number])
            scale = torch.randn(weight.shape[0], 11, generator=generator)
            way = "whole" if ways[number] == "columns" else ways[number]
            optimizer.state[weight]["scale"] = held(scale, mesh, way)
            optimizer.state[weight]["step"] = torch.tensor(float(number))
            optimizer.state[weight]["kind"] = number
        return optimizer


def same(one: Tensor, two: Tensor) -> bool:
    if isinstance(one, DTensor) or isinstance(two, DTensor):
        assert isinstance(one, DTensor)
        assert isinstance(two, DTensor)
        assert one.placements == two.placements
        one, two = one.to_local(), two.to_local()
    if one.shape != two.shape or one.dtype != two.dtype:
        return False
    return not one.numel() or torch.equal(
        one.detach().flatten().view(torch.uint8), two.detach().flatten().view(torch.uint8)
    )


def save_and_load(accelerator: Accelerator, folder: Path, all_cases: list[Case]) -> None:
    rank = accelerator.process_index
    meshes = {str(n): DeviceMesh("cpu", list(range(n))) for n in range(1, PROCESSES + 1)}
    meshes["2x2"] = DeviceMesh("cpu", [[0, 1], [2, 3]])
    groups = {name: dist.new_group(one.mesh.flatten().tolist()) for name, one in meshes.items()}
    for case in all_cases:
        sizes = {"SHARE_BYTES": case.share_bytes, "MAX_FILE_BYTES": case.file_bytes}
        vars(checkpoint_storage).update(sizes)
        place = folder / str(case.seed)
        processes, ways = case.saved
        mesh = meshes[processes]
        if rank < mesh.size():
            tensors = [held(t, mesh, w) for t, w in zip(full(case), ways, strict=True)]
            module = Held(tensors)
            optimizer = module.optimizer(mesh, ways)
            save(place, state(), module, optimizer, keep=1, group=groups[processes])
        accelerator.wait_for_everyone()
        processes, ways = case.loaded
        mesh = meshes[processes]
        if rank < mesh.size():
            expected = [held(t, mesh, w) for t, w in zip(full(case), ways, strict=True)]
            wanted = Held(expected)
            own = Held(
                [held(torch.zeros_like(t), mesh, w) for t, w in zip(full(case), ways, strict=True)]
            )
            moments = wanted.optimizer(mesh, ways)
            empty = torch.optim.SGD(own.parameters())
            (newest,) = place.glob("step-*")
            Checkpoint(newest, groups[processes]).restore(own, empty)
            for name, tensor in wanted.state_dict().items():
                assert same(own.state_dict()[name], tensor), (case, name)
            for weight, other in zip(wanted.parameters(), own.parameters(), strict=True):
                assert moments.state[weight].keys() == empty.state[other].keys(), case
                for key, value in moments.state[weight].items():
                    found = empty.state[other][key]
                    if key == "kind":
                        assert found == value
                    else:
                        assert same(found, value), (case, key)
        accelerator.wait_for_everyone()


@pytest.mark.slow
def test_any_number_of_processes_reads_what_any_other_has_written(tmp_path):
    group = Group(save_and_load, tmp_path, tmp_path, cases(30, seed=1), processes=PROCESSES)
    assert group.end(100) == [0] * PROCESSES, "".join(map(group.said, range(PROCESSES)))


def test_one_process_reads_and_writes_all_types_and_shapes(tmp_path):
    tensors = [
        torch.randint(0, 2, shape).to(dtype)
        for dtype in (*DTYPES, torch.float8_e5m2, torch.int8, torch.int16, torch.int32)
        for shape in SHAPES
    ]
    module = Held(tensors)
    optimizer = make_optimizer(module.parameters(), OptimizerConfig())
    place = save(tmp_path, state(), module, optimizer, keep=1)
    found = Checkpoint(place).read()
    assert list(found) == list(module.state_dict())
    assert all(same(found[name], tensor) for name, tensor in module.state_dict().items())
    plain = load_file(place / "weights.safetensors")
    assert {name for name, one in found.items() if one.numel()} == plain.keys()


class Layers(nn.Module):
    """Layers with rows that do not divide evenly, tied embeddings, a queue."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.embedding = nn.Embedding(131, 64)
        self.layers = nn.ModuleList(nn.Linear(64, 64) for _ in range(2))
        self.head = nn.Linear(64, 131)
        self.head.weight = self.embedding.weight
        self.register_buffer("queue", torch.randn(5, 3))

    @override
    def forward(self, ids: Tensor) -> Tensor:
        states = self.embedding(ids)
        for layer in self.layers:
            states = torch.tanh(layer(states))
        logits: Tensor = self.head(states)
        return logits.logsumexp(-1).sum() - logits[:, 0].sum()


def trained(name: str, mesh: DeviceMesh | None, seed: int, steps: int = 0) -> Any:
    from torch.distributed.fsdp import fully_shard

    module = Layers(seed)
    if mesh is not None:
        for layer in module.layers:
            fully_shard(layer, mesh=mesh)
        fully_shard(module, mesh=mesh)
    memory = MemoryConfig(moments="int8") if name == "int8" else None
    config = OptimizerConfig(name="lamb" if name == "lamb" else "adamw", learning_rate=0.01)
    optimizer = make_optimizer(module.parameters(), config, memory)
    for step in range(steps):
        update(module, optimizer, step)
    return module, optimizer


def update(module: nn.Module, optimizer: torch.optim.Optimizer, step: int) -> None:
    optimizer.zero_grad()
    module(torch.arange(step, step + 20)).backward()
    optimizer.step()


def hand_over(accelerator: Accelerator, folder: Path, name: str) -> None:
    """Four processes with FSDP, two groups of two with HSDP, four with DDP."""
    world = dist.new_group(backend="gloo")
    first = DeviceMesh("cpu", list(range(4)))
    second = DeviceMesh("cpu", [[0, 1], [2, 3]], mesh_dim_names=("replicate", "shard"))
    # LAMB of pytorch_optimizer takes no step of DTensors
    module, optimizer = trained(name, None if name == "lamb" else first, seed=0, steps=3)
    place = save(folder, state(3), module, optimizer, keep=9, group=world)
    for total, mesh in ((4, second), (5, None), (6, first)):
        module, optimizer = trained(name, mesh, seed=1)
        Checkpoint(place, world).restore(module, optimizer)
        place = save(folder, state(total), module, optimizer, keep=9, group=world)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["adamw", "lamb", "int8"])
def test_every_strategy_hands_over_to_every_other(tmp_path, name):
    """After DTensors of FSDP and HSDP and plain ones, one process goes on as if it had been one."""
    folder = tmp_path / "run"
    group = Group(hand_over, tmp_path, folder, name, processes=PROCESSES)
    assert group.end(100) == [0] * PROCESSES, "".join(map(group.said, range(PROCESSES)))
    places = sorted(folder.glob("step-*"))
    assert len(places) == 4
    contents = [
        [Checkpoint(place).read(kind) for kind in ("weights", "optimizer")] for place in places
    ]
    for content in contents[1:]:
        for one, other in zip(contents[0], content, strict=True):
            assert one.keys() == other.keys()
            assert all(same(one[key], other[key]) for key in one)
    assert "head.weight" not in contents[0][0]  # stored once
    sharded, replicated = (len(list(places[n].glob("weights-*"))) for n in (0, 2))
    assert sharded == replicated == PROCESSES
    module, optimizer = trained(name, None, seed=1)
    Checkpoint(places[-1]).restore(module, optimizer)
    alone, of_alone = trained(name, None, seed=0, steps=3)
    for step in (3, 4):
        update(module, optimizer, step)
        update(alone, of_alone, step)
    for key, value in alone.state_dict().items():
        torch.testing.assert_close(module.state_dict()[key], value, rtol=1e-3, atol=1e-4)
    if name == "int8":
        assert isinstance(optimizer, LowBitAdamW)
        weight = module.embedding.weight
        assert optimizer.state[weight]["exp_avg_codes"].dtype is torch.uint8
        assert optimizer.state[weight]["exp_avg_scale"].shape == (131, 1)
    if name == "lamb":
        assert [group["step"] for group in optimizer.param_groups] == [5, 5]


def share(accelerator: Accelerator, folder: Path) -> None:
    checkpoint_storage.SHARE_BYTES = 1000
    module, optimizer = trained("adamw", None, seed=0, steps=1)
    save(folder, state(), module, optimizer, keep=1, group=dist.new_group(backend="gloo"))


@pytest.mark.slow
def test_what_all_processes_hold_is_divided_among_them(tmp_path):
    folder = tmp_path / "run"
    group = Group(share, tmp_path, folder, processes=2)
    assert group.end() == [0, 0], group.said(0) + group.said(1)
    (place,) = folder.glob("step-*")
    sizes = {path.name: path.stat().st_size for path in place.glob("*.safetensors")}
    assert len(sizes) == 4
    for kind in ("weights", "optimizer"):
        one, two = (sizes[f"{kind}-0000{n}-of-00002.safetensors"] for n in (1, 2))
        assert math.isclose(one, two, rel_tol=0.1)
    alone, _ = trained("adamw", None, seed=0, steps=1)
    module, optimizer = trained("adamw", None, seed=1)
    Checkpoint(place).restore(module, optimizer)
    for key, value in alone.state_dict().items():
        assert torch.equal(module.state_dict()[key], value)
