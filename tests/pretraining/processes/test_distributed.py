"""Settings of the processes of a run, and what they refuse."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate import Accelerator
from torch import nn

from isoglot.corpus import Corpus
from isoglot.errors import RecipeError
from isoglot.pretraining.processes.distributed import (
    DistributedConfig,
    check_processes,
    share_module,
)
from isoglot.recipe import load_recipe
from tests.pretraining.groups import Group
from tests.pretraining.launching import Forked


def test_the_strategy_does_not_decide_the_numbers_of_a_run() -> None:
    recipe = load_recipe("tiny")
    sharded = replace(recipe, distributed=DistributedConfig(strategy="fsdp", timeout_minutes=5))
    assert recipe.distributed.strategy == "ddp"
    assert sharded.fingerprint() == recipe.fingerprint()


def test_processes_of_a_group_are_for_hsdp() -> None:
    assert DistributedConfig(strategy="hsdp", shard_processes=8).shard_processes == 8
    with pytest.raises(RecipeError, match="strategy: hsdp"):
        DistributedConfig(strategy="fsdp", shard_processes=8)


@pytest.mark.parametrize(
    ("name", "value"), [("shard_processes", 1), ("timeout_minutes", 0), ("timeout_minutes", 1e9)]
)
def test_numbers_out_of_range_are_refused(name: str, value: Any) -> None:
    with pytest.raises(RecipeError, match=name):
        DistributedConfig(strategy="hsdp", **{name: value})


def test_groups_of_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    def parts(world: int, strategy: Any = "hsdp", **settings: Any) -> int:
        return DistributedConfig(strategy=strategy, **settings).num_parts(world)

    assert [parts(8, "ddp"), parts(8, "fsdp"), parts(1, "fsdp"), parts(1)] == [1, 8, 1, 1]
    assert parts(8, shard_processes=4) == 4
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    assert parts(8) == 2
    with pytest.raises(RecipeError, match="8 processes do not divide into groups of 3"):
        parts(8, shard_processes=3)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "1")
    with pytest.raises(RecipeError, match="processes of a node, and this one has one"):
        parts(8)


def test_one_process_is_told_that_sharding_does_nothing() -> None:
    note = DistributedConfig(strategy="fsdp").note(1)
    assert note is not None
    assert "fsdp does nothing with one process" in note
    assert DistributedConfig(strategy="fsdp").note(2) is None
    assert DistributedConfig().note(1) is None


def test_rows_at_a_time_are_not_tried_on_parts_of_a_model() -> None:
    recipe = load_recipe("tiny", ["batch.micro_rows=auto", "distributed.strategy=fsdp"])
    check_processes(recipe, 1)
    check_processes(replace(recipe, distributed=DistributedConfig()), 2)
    with pytest.raises(RecipeError, match=r"Set batch\.micro_rows to a number"):
        check_processes(recipe, 2)


def held_by_two(corpus: Corpus, out: Path, *options: str) -> list[dict[str, Any]]:
    program = "tests.pretraining.parts"
    Forked(corpus.folder, out, "fsdp", *options, processes=2, program=program).finish()
    return [json.loads(out.with_suffix(f".{rank}.json").read_text()) for rank in range(2)]


def test_two_processes_hold_half_of_the_model_each(corpus, tmp_path) -> None:
    """Weights, gradients and moments; checks of single functions are in `parts.py`."""
    held = held_by_two(corpus, tmp_path / "held")
    for kind, of_whole in (("weights", "all"), ("gradients", "trained"), ("moments", "trained")):
        shares = [one[kind] for one in held]
        whole = held[0]["all"] if of_whole == "all" else sum(one["trained"] for one in held)
        assert sum(shares) == whole, kind
        assert max(shares) < 0.52 * whole, kind
    assert held[0]["entries"] == held[1]["entries"] > 0, "a queue is the same on every process"


@pytest.mark.slow
def test_layers_are_compiled_one_by_one(corpus, tmp_path) -> None:
    plain, compiled = (
        held_by_two(corpus, tmp_path / name, name)[0]["losses"] for name in ("plain", "compiled")
    )
    assert compiled == pytest.approx(plain, rel=1e-9)


def test_the_first_step_of_three_processes_rounds_as_any_other(tmp_path) -> None:
    """DDP would arrange its buckets anew after it: a resumed run would differ from then on."""
    group = Group(take_one_step_twice, tmp_path, processes=3)
    assert group.end() == [0, 0, 0], [group.said(rank) for rank in range(3)]


def take_one_step_twice(accelerator: Accelerator) -> None:
    torch.manual_seed(0)
    module: Any = nn.Sequential(*(nn.Linear(33, 33) for _ in range(5)))
    wrapped = share_module(module, DistributedConfig(), accelerator)
    assert all(weight.grad is None for weight in module.parameters())
    rows = torch.randn(64, 33, generator=torch.Generator().manual_seed(accelerator.process_index))
    found = []
    for _ in range(2):
        module.zero_grad()
        wrapped(rows).square().sum().backward()
        found.append(torch.cat([weight.grad.flatten() for weight in module.parameters()]))
    assert found[0].count_nonzero() > 5000
    assert torch.equal(*found)
