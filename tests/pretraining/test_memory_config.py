"""Settings of memory that do not go together, and the fingerprints of recipes."""

from __future__ import annotations

import pytest

from isoglot.errors import IsoglotError
from isoglot.pretraining.config import PretrainConfig
from isoglot.recipe import load_recipe


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (["memory.weights=bf16", "precision=float32"], "mixed precision"),
        (["memory.moments=bf16", "optimizer.betas=[0.9,0.999]"], "second moment"),
        (["memory.moments=int8", "optimizer.name=lamb"], "AdamW"),
        (["memory.offload_optimizer=true", "optimizer.name=lamb"], "AdamW"),
        (["memory.offload_optimizer=true", "memory.moments=int8"], "float32 on the host"),
        (["memory.offload_optimizer=true", "distributed.strategy=fsdp"], "shards the moments"),
        (["memory.weights=bf16", "distributed.strategy=fsdp"], "one GPU"),
    ],
)
def test_refused_together(settings: list[str], said: str) -> None:
    with pytest.raises(IsoglotError, match=said) as refused:
        load_recipe("xlm", settings)
    assert "memory." in str(refused.value)


@pytest.mark.parametrize(
    "settings",
    [
        ["memory.moments=bf16", "optimizer.betas=[0.9,0.99]"],
        ["memory.moments=int8", "distributed.strategy=fsdp"],
        ["memory.weights=bf16", "memory.offload_optimizer=true"],
        ["memory.activation_checkpointing=blocks", "optimizer.name=lamb"],
    ],
)
def test_allowed_together(settings: list[str]) -> None:
    load_recipe("xlm", settings)


def fingerprint(*settings: str) -> str:
    found: PretrainConfig = load_recipe("tiny", list(settings))
    return found.fingerprint()


def test_fingerprint_has_only_what_changes_numbers() -> None:
    default = fingerprint()
    assert fingerprint("memory.activation_checkpointing=blocks") == default
    assert fingerprint("memory.offload_optimizer=true") == default
    others = [
        fingerprint(*settings)
        for settings in (
            ["memory.weights=bf16"],
            ["memory.moments=bf16"],
            ["memory.moments=int8"],
            ["memory.weights=bf16", "memory.offload_optimizer=true"],
        )
    ]
    assert len({default, *others}) == 5
