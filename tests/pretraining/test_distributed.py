"""Settings of the processes of a run, and what they refuse."""

from dataclasses import replace
from typing import Any

import pytest

from isoglot.errors import RecipeError
from isoglot.pretraining.distributed import DistributedConfig
from isoglot.recipe import load_recipe


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
    ("name", "value"), [("shard_processes", 0), ("timeout_minutes", 0), ("timeout_minutes", 1e9)]
)
def test_numbers_out_of_range_are_refused(name: str, value: Any) -> None:
    with pytest.raises(RecipeError, match=name):
        DistributedConfig(strategy="hsdp", **{name: value})
