"""The estimate of memory against what a real step holds, counted tensor by tensor."""

from __future__ import annotations

import weakref
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from typing_extensions import override

from isoglot.errors import IsoglotError
from isoglot.models.config import ModelConfig
from isoglot.pretraining.build import build_train_module
from isoglot.pretraining.config import PretrainConfig, objectives_of
from isoglot.pretraining.estimates.memory_estimate import (
    MemoryEstimate,
    _some_batches,
    estimate_memory,
    passes_of,
)
from isoglot.pretraining.memory_config import MemoryConfig
from isoglot.pretraining.memory_saving import save_memory
from isoglot.pretraining.optimizers.optimizer import make_optimizer
from tests.pretraining import driver, translating

SHAPES = {
    "wide": ModelConfig(size="tiny", num_layers=2, hidden_size=256, num_heads=4, dropout=0.1),
    "deep": ModelConfig(size="tiny", num_layers=8, hidden_size=64, num_heads=2, dropout=0.1),
    "bert": ModelConfig(size="mbert", num_layers=4, hidden_size=128, num_heads=4, dropout=0.0),
}


class LiveBytes(TorchDispatchMode):
    """Bytes of all tensors that exist, by their memory, and the most there were."""

    def __init__(self) -> None:
        super().__init__()
        self.live, self.peak = 0, 0
        self._known: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()

    @override
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        for one in tree_leaves(found):
            if isinstance(one, torch.Tensor):
                self.add(one)
        return found

    def add(self, tensor: torch.Tensor) -> None:
        memory = tensor.untyped_storage()
        if memory in self._known:
            return
        size = memory.nbytes()
        self._known[memory] = size
        self.live += size
        self.peak = max(self.peak, self.live)
        weakref.finalize(memory, self._remove, size)

    def _remove(self, size: int) -> None:
        self.live -= size


def config_of(model: ModelConfig, memory: MemoryConfig) -> PretrainConfig:
    plain = driver.config(model=replace(model, max_positions=96))
    stage = replace(plain.stages[0], steps=2)
    batch = replace(plain.batch, rows=16, micro_rows=8)
    return replace(plain, stages=(stage,), batch=batch, memory=memory)


def measured(config: PretrainConfig, corpus: Any) -> tuple[dict[str, int], int]:
    """Bytes of weights, gradients and moments after two steps, and the peak of the second."""
    objectives = {name: one.prepare(corpus) for name, one in objectives_of(config).items()}
    module = build_train_module(config.model, objectives, corpus, row_length=96)
    save_memory(module, config.memory, mixed_precision="bf16")
    module.train()
    optimizer = make_optimizer(module.parameters(), config.optimizer, config.memory)
    batches = _some_batches(config, corpus, objectives, 0, passes_of(config, "cpu"))[:2]
    counter = LiveBytes()
    for step in range(2):
        if step == 1:
            for tensor in (*module.parameters(), *module.buffers()):
                counter.add(tensor)
            for state in optimizer.state.values():
                for value in state.values():
                    counter.add(value)
        optimizer.zero_grad(set_to_none=True)
        with counter:
            for batch in batches:
                sums = module(batch)
                sum(one.total for one in sums.values()).backward()
        held = {
            "weights": sum(one.nbytes for one in module.parameters()),
            "gradients": sum(
                one.grad.nbytes for one in module.parameters() if one.grad is not None
            ),
        }
        optimizer.step()
    states = optimizer.state.values()
    held["moments"] = sum(v.nbytes for one in states for k, v in one.items() if k != "step")
    return held, counter.peak


@pytest.mark.parametrize(
    ("shape", "recompute"),
    [
        ("deep", False),
        ("deep", True),
        *(
            pytest.param(shape, recompute, marks=pytest.mark.slow)
            for shape in ("wide", "bert")
            for recompute in (False, True)
        ),
    ],
)
def test_estimate_is_what_a_step_holds(shape: str, recompute: bool, corpus: Any) -> None:
    moments: Any = "int8" if shape == "wide" else "float32"
    blocks: Any = "blocks" if recompute else "none"
    memory = MemoryConfig(moments=moments, activation_checkpointing=blocks)
    config = config_of(SHAPES[shape], memory)
    held, peak = measured(config, corpus)
    found = estimate_memory(config, corpus, device="cpu")
    for name, value in held.items():
        assert getattr(found, name) == value, name
    assert found.peak == pytest.approx(peak, rel=0.1)


def test_low_bit_states_are_counted(corpus: Any) -> None:
    memory = MemoryConfig(weights="bf16", moments="int8", activation_checkpointing="blocks")
    config = replace(config_of(SHAPES["wide"], memory), precision="bf16")
    objectives = {name: one.prepare(corpus) for name, one in objectives_of(config).items()}
    module = build_train_module(config.model, objectives, corpus, row_length=96)
    save_memory(module, memory, mixed_precision="bf16")
    found = estimate_memory(config, corpus, device="cpu")
    assert found.weights == sum(one.nbytes for one in module.parameters())
    plain = estimate_memory(replace(config, memory=MemoryConfig()), corpus, device="cpu")
    assert found.moments < 0.3 * plain.moments
    assert found.activations < plain.activations


def parts(found: MemoryEstimate) -> tuple[int, int, int]:
    return found.weights, found.gradients, found.moments


def test_processes_share(corpus: Any) -> None:
    config = config_of(SHAPES["wide"], MemoryConfig())
    config = replace(config, batch=replace(config.batch, rows=32))
    one = estimate_memory(config, corpus, device="cpu")
    ddp = estimate_memory(config, corpus, processes=4, device="cpu")
    assert parts(ddp) == parts(one)
    assert ddp.exchange == one.gradients  # DDP's buckets
    sharded = replace(config, distributed=replace(config.distributed, strategy="fsdp"))
    fsdp = estimate_memory(sharded, corpus, processes=4, device="cpu")
    for own, whole in zip(parts(fsdp), parts(one), strict=True):
        assert whole / 4 <= own < 1.02 * whole / 4
    assert one.host_first == ddp.host_first == 0
    groups = replace(config.distributed, strategy="hsdp", shard_processes=2)
    hsdp = estimate_memory(replace(config, distributed=groups), corpus, processes=4, device="cpu")
    assert fsdp.weights < hsdp.weights < one.weights
    with pytest.raises(IsoglotError, match="multiple of 3"):
        estimate_memory(config, corpus, processes=3)


def test_momentum_encoders_and_offloaded_moments_are_counted(corpus: Any) -> None:
    contrast = driver.contrast()
    found = estimate_memory(contrast, corpus, device="cpu")
    assert found.stage == 1
    assert found.momentum_encoders > 0.9 * found.weights
    sharded = replace(contrast.distributed, strategy="fsdp")
    split = estimate_memory(
        replace(contrast, distributed=sharded), corpus, processes=2, device="cpu"
    )
    objectives = {name: one.prepare(corpus) for name, one in objectives_of(contrast).items()}
    module = build_train_module(contrast.model, objectives, corpus, row_length=96)
    built = (*module.parameters(), *module.buffers())
    assert split.host_first == sum(tensor.nbytes for tensor in built)
    assert "first process" in split.rows()[-1][1]
    host = replace(contrast, memory=MemoryConfig(offload_optimizer=True))
    offloaded = estimate_memory(host, corpus, device="cpu")
    assert offloaded.moments == 0
    assert offloaded.host == 12 * offloaded.gradients // 4
    assert ("host memory", offloaded.rows()[-1][1]) == offloaded.rows()[-1]


@pytest.mark.slow
def test_encoder_decoders(corpus: Any) -> None:
    config = translating.config()
    found = estimate_memory(config, corpus)
    again = replace(config, memory=MemoryConfig(activation_checkpointing="blocks"))
    assert estimate_memory(again, corpus).activations < 0.7 * found.activations


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_large_models_need_no_memory(corpus: Any) -> None:
    """XLM-R XXL on one GPU: 10.7 billion weights in bf16, their gradients and 8-bit moments."""
    memory = MemoryConfig(weights="bf16", moments="int8", activation_checkpointing="blocks")
    config = replace(config_of(ModelConfig(size="xxl"), memory), precision="auto")
    found = estimate_memory(config, corpus)
    body = 48 * (12 * 4096**2 + 13 * 4096)
    assert found.num_parameters == pytest.approx(body, rel=0.01)  # the vocabulary is small here
    assert found.weights == pytest.approx(2 * body, rel=0.01)
    assert found.moments == pytest.approx(2 * body * (1 + 4 / 256), rel=0.01)
    assert found.peak < 80 * 2**30
