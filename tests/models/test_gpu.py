"""Attention as it runs in training on a GPU: fused, with a backward pass, compiled once."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from isoglot.models.attention import FLEX_BLOCK_TOKENS, fastest_implementation
from isoglot.models.layers import draw_seeds, hashed_dropouts
from isoglot.types import MaskRule
from tests.models.tiny import (
    ARCHITECTURES,
    mixed_rows,
    pack,
    random_tokens,
    relative,
    replace,
    states_and_gradients,
    tiny_encoder,
)

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an accelerator"),
    # the compiler's advice on precision, and its own use of what it deprecates
    pytest.mark.filterwarnings("ignore"),
]


def passed(architecture, attention, *, bf16=False):
    return states_and_gradients(tiny_encoder(architecture, attention=attention).cuda(), bf16=bf16)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_flex_is_sdpa(architecture):
    flex, sdpa = passed(architecture, "flex"), passed(architecture, "sdpa")
    for ours, reference in zip(flex, sdpa, strict=True):
        assert relative(ours, reference) < 1e-4


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_flex_loses_no_more_to_bf16_than_sdpa(architecture):
    exact = passed(architecture, "sdpa")
    flex, sdpa = (passed(architecture, attention, bf16=True) for attention in ("flex", "sdpa"))
    for ours, theirs, reference in zip(flex, sdpa, exact, strict=True):
        assert relative(ours, reference) < 1.5 * relative(theirs, reference)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_neighbors_change_not_one_bit(architecture):
    encoder = tiny_encoder(architecture).cuda()
    rows = mixed_rows()[1].to("cuda")
    others = rows.sequences != 1
    ids = torch.where(others, (rows.ids * 7 + 3) % 101, rows.ids)
    with torch.no_grad():
        before, after = encoder(rows).hidden, encoder(replace(rows, ids=ids)).hidden
    assert torch.equal(before[~others], after[~others])
    assert not torch.equal(before[others], after[others])


@pytest.mark.parametrize("whole", [False, True], ids=["masks-and-flex", "base-model-too"])
@pytest.mark.parametrize("architecture", ["xlm-r", "modernbert"])
def test_other_rows_of_one_shape_compile_nothing_anew(architecture, whole):
    torch.compiler.reset()
    encoder = tiny_encoder(architecture).cuda()
    plain = tiny_encoder(architecture, attention="sdpa").cuda()
    if whole:
        encoder.compile()
    encoder(mixed_rows(0)[1].to("cuda")).hidden.sum().backward()
    with torch._dynamo.config.patch(error_on_recompile=True):
        for seed in (1, 2):
            rows = mixed_rows(seed)[1].to("cuda")
            hidden = encoder(rows).hidden
            hidden.sum().backward()
            real = rows.sequences >= 0
            assert relative(hidden[real], plain(rows).hidden[real]) < 1e-4


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_losses_at_target_positions_are_those_of_a_cpu(architecture):
    """The vocabulary is odd on purpose: there the word matrix gets rows that mean no word."""
    found = []
    for device in ("cpu", "cuda"):
        encoder = tiny_encoder(architecture, attention="sdpa").to(device)
        rows = mixed_rows()[1].to(device)
        positions = torch.arange(0, 60, 2, device=device)
        targets = (positions * 7 + 3) % 101
        weights = torch.ones(len(positions), device=device)
        losses = encoder.target_losses(encoder(rows), positions, targets, weights).losses
        losses.sum().backward()
        gradients = [w.grad.flatten() for w in encoder.parameters() if w.grad is not None]
        logits = encoder.logits_at(encoder(rows), positions).detach()
        found.append((losses.detach().cpu(), torch.cat(gradients).cpu(), logits.cpu()))
    for ours, reference in zip(found[1], found[0], strict=True):
        assert relative(ours, reference) < 1e-4


@pytest.mark.parametrize(
    "settings",
    [
        {"attention": "cudnn"},
        {"norm_dtype": "bf16"},
        {"fuse_qkv": True},
        {"attention": "cudnn", "norm_dtype": "bf16", "fuse_qkv": True},
    ],
    ids=str,
)
@pytest.mark.parametrize("architecture", ["xlm-r", "eurobert"])
def test_faster_ways_lose_little_to_bf16_when_compiled(architecture, settings):
    torch.compiler.reset()
    exact = passed(architecture, "sdpa")
    found = []
    usual = {"norm_dtype": "float32", "fuse_qkv": False, "attention": "sdpa"}
    for chosen in (usual, usual | settings):
        encoder = tiny_encoder(architecture, **chosen).cuda()
        encoder.compile()
        found.append(states_and_gradients(encoder, bf16=True))
    for theirs, ours, reference in zip(*found, exact, strict=True):
        assert relative(ours, reference) < 2 * relative(theirs, reference)


@pytest.mark.parametrize("compiled", [False, True])
def test_whole_rows_lose_no_more_to_bf16_without_a_mask(compiled):
    torch.compiler.reset()
    rng = np.random.default_rng(0)
    rows = pack([[random_tokens(rng, MaskRule.FULL, 64)] for _ in range(2)], 64)
    found = []
    for attention, exact in (("sdpa", True), ("sdpa", False), ("cudnn", False)):
        rows.unmasked = attention == "cudnn"
        encoder = tiny_encoder("xlm-r", attention=attention).cuda()
        if compiled and not exact:
            encoder.compile()
        found.append(states_and_gradients(encoder, rows, bf16=not exact))
    for reference, mask, none in zip(*found, strict=True):
        assert relative(none, reference) < 1.5 * relative(mask, reference)


def test_the_fastest_way_is_chosen_by_what_is_asked_for():
    config = tiny_encoder("xlm-r").model.config
    rows = mixed_rows()[1].to("cuda")
    exact = "flex" if rows.ids.shape[1] >= FLEX_BLOCK_TOKENS else "sdpa"
    assert fastest_implementation(rows, config, torch.float32) == exact
    hopper = torch.cuda.get_device_capability() >= (9, 0)
    assert fastest_implementation(rows, config, torch.bfloat16) == ("cudnn" if hopper else exact)
    torch.use_deterministic_algorithms(mode=True)
    try:
        assert fastest_implementation(rows, config, torch.bfloat16) == exact
    finally:
        torch.use_deterministic_algorithms(mode=False)


def test_a_compiled_encoder_drops_what_it_would_drop_uncompiled():
    torch.compiler.reset()
    found = []
    for compiled in (False, True):
        encoder = tiny_encoder("xlm-r", attention="sdpa").cuda().train()
        if compiled:
            encoder.compile()
        torch.manual_seed(0)
        draw_seeds(hashed_dropouts(encoder.model.base_model), torch.device("cuda"))
        torch.manual_seed(0)  # a compiled one draws them by itself
        found.append(states_and_gradients(encoder))
    for ours, reference in zip(found[1], found[0], strict=True):
        assert relative(ours, reference) < 1e-4


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_deterministic_algorithms_give_the_same_bits_and_nearly_those_of_an_eager_encoder(
    architecture,
):
    torch.compiler.reset()
    reference = passed(architecture, "sdpa")
    torch.use_deterministic_algorithms(mode=True, warn_only=True)
    try:
        encoder = tiny_encoder(architecture, attention="flex").cuda()
        encoder.compile()
        found = []
        for _ in range(2):
            encoder.zero_grad()
            found.append(states_and_gradients(encoder))
    finally:
        torch.use_deterministic_algorithms(mode=False)
    for once, again, plain in zip(*found, reference, strict=True):
        assert torch.equal(once, again)
        assert relative(once, plain) < 1e-4
