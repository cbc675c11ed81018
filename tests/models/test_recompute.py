"""Activation checkpointing: the same gradient, with less kept for the backward pass."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from isoglot.errors import ModelError
from isoglot.models import attention
from isoglot.models.layers import draw_seeds
from isoglot.models.recompute import RecomputedLayer, checkpoint_activations
from tests.models.tiny import ARCHITECTURES, mixed_rows, tiny_encoder

BLOCKS = [name for name in ARCHITECTURES if name != "albert"]


def gradient(
    architecture: str,
    *,
    recompute: bool,
    seeds: bool = False,
    layers: bool = False,
    backend: Any = None,
) -> tuple[Tensor, int]:
    """The gradient of all weights with dropout, and the bytes kept for the backward pass."""
    encoder = tiny_encoder(architecture, fuse_qkv=True).train()
    if recompute:
        assert checkpoint_activations(encoder.model.base_model) == 3
    if backend is not None:
        torch.compiler.reset()
        encoder.model.base_model.compile(backend=backend, fullgraph=True)
    torch.manual_seed(3)
    if seeds:
        draw_seeds(encoder._dropouts, torch.device("cpu"))
    weights, kept = {one.data_ptr() for one in encoder.parameters()}, {}

    def keep(tensor: Tensor) -> Tensor:
        if tensor.data_ptr() not in weights:
            kept[tensor.data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        states = encoder(mixed_rows()[1], layers=layers)
    loss = (states.hidden * torch.linspace(-1, 1, 32)).sum()
    for number, state in enumerate(states.layers or ()):
        loss = loss + number * state.square().sum()
    loss.backward()
    found = [weight.grad.flatten() for weight in encoder.parameters() if weight.grad is not None]
    return torch.cat(found), sum(kept.values())


@pytest.mark.parametrize("layers", [False, True])
@pytest.mark.parametrize("architecture", BLOCKS)
def test_gradient_is_the_same(architecture: str, layers: bool) -> None:
    whole, much = gradient(architecture, recompute=False, layers=layers)
    again, little = gradient(architecture, recompute=True, layers=layers)
    assert torch.equal(whole, again)
    assert little < 0.5 * much


def test_hashed_dropout_has_the_same_mask_again() -> None:
    whole, _ = gradient("xlm-r", recompute=False, seeds=True)
    again, _ = gradient("xlm-r", recompute=True, seeds=True)
    assert torch.equal(whole, again)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("architecture", "seeds"), [("xlm-r", True), ("modernbert", False)])
def test_compiled_gradient_is_the_same(architecture: str, seeds: bool) -> None:
    backend = "aot_eager_decomp_partition"
    whole, much = gradient(architecture, recompute=False, seeds=seeds, backend=backend)
    again, little = gradient(architecture, recompute=True, seeds=seeds, backend=backend)
    torch.testing.assert_close(again, whole, rtol=1e-4, atol=1e-5)
    assert little < 0.6 * much


def test_evaluation_and_copies() -> None:
    encoder = tiny_encoder("xlm-r")
    with torch.no_grad():
        before = encoder(mixed_rows()[1]).hidden
    names = list(encoder.state_dict())
    checkpoint_activations(encoder.model.base_model)
    checkpoint_activations(encoder.model.base_model)  # nothing more happens
    assert list(encoder.state_dict()) == names
    with torch.no_grad():
        assert torch.equal(encoder(mixed_rows()[1]).hidden, before)
    other = copy.deepcopy(encoder)
    with torch.no_grad():
        for weight in other.parameters():
            weight.zero_()
        assert torch.equal(encoder(mixed_rows()[1]).hidden, before)
        assert not torch.equal(other(mixed_rows()[1]).hidden, before)
    layers = [one for one in other.modules() if isinstance(one, RecomputedLayer)]
    assert type(layers[0]).__name__ == "RecomputedXLMRobertaLayer"


def test_the_second_pass_has_the_kernels_of_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str | None] = []
    real = functional.scaled_dot_product_attention

    def recorded(*args: Any, **kwargs: Any) -> Tensor:
        seen.append(attention._active.get())
        return real(*args, **kwargs)

    monkeypatch.setattr(functional, "scaled_dot_product_attention", recorded)
    gradient("xlm-r", recompute=True)
    assert seen == ["sdpa"] * 6
    assert attention._active.get() is None


def test_albert_is_refused() -> None:
    with pytest.raises(ModelError, match="activation_checkpointing: a albert model"):
        checkpoint_activations(tiny_encoder("albert").model.base_model)
