"""Narrow norms: nothing changes in float32, and little is lost where products are bf16 anyway."""

from __future__ import annotations

import pytest
import torch

from tests.models.tiny import ARCHITECTURES, tiny_encoder
from tests.models.worked_rows import mixed_rows


def states_and_gradients(architecture, norms, *, autocast):
    encoder = tiny_encoder(architecture, norms=norms)
    _, rows = mixed_rows()
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
        hidden = encoder(rows).hidden
    assert hidden.dtype == torch.float32
    hidden = hidden[rows.sequences >= 0]
    (hidden * torch.linspace(-1, 1, hidden.shape[1])).sum().backward()
    found = [weight.grad.flatten() for weight in encoder.parameters() if weight.grad is not None]
    return hidden.detach().flatten(), torch.cat(found)


def relative(left, right):
    return ((left - right).norm() / right.norm()).item()


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_without_mixed_precision_they_are_the_same_norms(architecture):
    wide = states_and_gradients(architecture, "wide", autocast=False)
    narrow = states_and_gradients(architecture, "narrow", autocast=False)
    assert all(map(torch.equal, wide, narrow))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_with_it_they_lose_little_more_than_the_products(architecture):
    exact = states_and_gradients(architecture, "wide", autocast=False)
    wide = states_and_gradients(architecture, "wide", autocast=True)
    narrow = states_and_gradients(architecture, "narrow", autocast=True)
    for ours, theirs, reference in zip(narrow, wide, exact, strict=True):
        assert relative(ours, reference) < 3 * relative(theirs, reference)


def test_what_a_layer_reads_is_bf16():
    encoder = tiny_encoder("xlm-r", norms="narrow")
    read = []
    encoder.model.base_model.encoder.layer[1].register_forward_pre_hook(
        lambda _, inputs: read.append(inputs[0].dtype)
    )
    with torch.autocast("cpu", dtype=torch.bfloat16):
        encoder(mixed_rows()[1])
    assert read == [torch.bfloat16]
