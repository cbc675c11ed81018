"""Narrow norms: nothing changes in float32, and little is lost where products are bf16 anyway."""

from __future__ import annotations

import pytest
import torch

from tests.models.there_and_back import relative, states_and_gradients
from tests.models.tiny import ARCHITECTURES, tiny_encoder
from tests.models.worked_rows import mixed_rows


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_without_mixed_precision_they_are_the_same_norms(architecture):
    wide = states_and_gradients(tiny_encoder(architecture, norms="wide"))
    narrow = states_and_gradients(tiny_encoder(architecture, norms="narrow"))
    assert all(map(torch.equal, wide, narrow))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_with_it_they_lose_little_more_than_the_products(architecture):
    exact = states_and_gradients(tiny_encoder(architecture, norms="wide"))
    wide = states_and_gradients(tiny_encoder(architecture, norms="wide"), bf16=True)
    narrow = states_and_gradients(tiny_encoder(architecture, norms="narrow"), bf16=True)
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
