"""Dropout by hashing: the share it is told to drop, no pattern, the same mask there and back."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from isoglot.models import hashed_dropout as hashing
from isoglot.models.config import ModelConfig
from isoglot.models.encoder import Encoder
from isoglot.models.hashed_dropout import (
    HashedDropout,
    _mixed,
    draw_seeds,
    hash_dropouts,
    hashed_dropout,
)
from tests.models.there_and_back import relative, states_and_gradients
from tests.models.tiny import OnGPU, replace, tiny_encoder
from tests.models.worked_rows import mixed_rows

SHAPE = (512, 768)


def seeds(number):
    torch.manual_seed(number)
    return torch.randint(0, 2**31 - 1, (2,), dtype=torch.int32)


def dropped(number, p=0.1):
    return hashed_dropout(torch.ones(SHAPE), p, seeds(number)) == 0


def test_the_arithmetic_is_that_of_32_bits():
    """Against Python's own integers."""
    first, second = seeds(0).tolist()
    found = _mixed(torch.tensor([0, 1, 77, 2**31 - 1], dtype=torch.int32), seeds(0)).tolist()
    for place, ours in zip([0, 1, 77, 2**31 - 1], found, strict=True):
        bits = (place ^ first) * 0x7FEB352D % 2**32
        bits = ((bits ^ bits >> 16) + second) * 0x846CA68B % 2**32
        bits = (bits ^ bits >> 15) * 0x9E3779B1 % 2**32
        assert ours % 2**32 == bits ^ bits >> 16


@pytest.mark.parametrize("p", [0.02, 0.1, 0.5])
def test_what_is_left_is_scaled_and_the_share_is_right(p):
    ones = torch.ones(SHAPE, requires_grad=True)
    kept = hashed_dropout(ones, p, seeds(1))
    assert kept.unique().tolist() == [0, pytest.approx(1 / (1 - p))]
    error = (p * (1 - p) / ones.numel()) ** 0.5
    assert (kept == 0).float().mean().item() == pytest.approx(p, abs=4 * error)
    kept.sum().backward()
    assert ones.grad is not None
    assert torch.equal(ones.grad, kept.detach())


def test_masks_have_no_pattern():
    """Rows, columns, neighbours and other seeds: as far from each other as chance makes them."""
    mask = dropped(2).float()
    for dim, others in ((0, SHAPE[0]), (1, SHAPE[1])):
        spread = mask.mean(dim=dim).std().item()
        assert spread == pytest.approx((0.09 / others) ** 0.5, rel=0.12)
    flat, error = mask.flatten(), (0.01 * 0.99 / mask.numel()) ** 0.5
    for shift in (1, 2, 3, 16, 256, 768, 1024, 65_536):
        both = (flat * flat.roll(shift)).mean().item()
        assert both == pytest.approx(0.01, abs=5 * error)
    for other in range(3, 13):
        assert (mask * dropped(other)).mean().item() == pytest.approx(0.01, abs=5 * error)


def test_no_mask_is_another_one_rearranged():
    """As it would be with the first seed alone: the masks of seeds that differ in some bits."""
    bits = 0x15555
    places = torch.arange(SHAPE[0] * SHAPE[1])[: 2**18]
    one = seeds(3)
    other = torch.stack([one[0] ^ bits, seeds(4)[1]])
    masks = [hashed_dropout(torch.ones(2**18), 0.1, given) == 0 for given in (one, other)]
    same = masks[0] == masks[1][places ^ bits]
    assert same.float().mean().item() == pytest.approx(0.82, abs=0.01)


def test_a_model_gets_it_everywhere_and_without_seeds_drops_as_ever():
    encoder = tiny_encoder("xlm-r")
    kinds = [type(module) for module in encoder.model.base_model.modules()]
    assert nn.Dropout not in kinds
    assert HashedDropout in kinds
    usual = nn.Sequential(nn.Dropout(0.3))
    hash_dropouts(ours := nn.Sequential(nn.Dropout(0.3)))
    found = []
    for layers in (usual, ours):
        torch.manual_seed(0)
        found.append(layers(torch.ones(50)))
    assert torch.equal(*found)


def test_every_layer_and_every_pass_has_seeds_of_its_own():
    layers = hash_dropouts(nn.Sequential(*(nn.Dropout(0.3) for _ in range(5))))
    drawn = []
    for number in (0, 0, 1):
        torch.manual_seed(number)
        draw_seeds(layers, torch.device("cpu"))
        drawn.append(
            [tuple(layer.seeds.tolist()[:2]) for layer in layers if layer.seeds is not None]
        )
    assert drawn[0] == drawn[1]
    assert len({*drawn[0], *drawn[2]}) == 10


def passed(encoder, number):
    """What comes out of a pass with the seeds of this number, and the gradients."""
    torch.manual_seed(number)
    draw_seeds(hash_dropouts(encoder.model.base_model), torch.device("cpu"))
    encoder.zero_grad()
    return states_and_gradients(encoder)


def test_traced_it_drops_the_same_and_new_seeds_trace_nothing_anew():
    plain, traced = (tiny_encoder("xlm-r", attention="sdpa").train() for _ in range(2))
    traced.compile(backend="aot_eager")
    found = [passed(traced, 0)]
    with torch._dynamo.config.patch(error_on_recompile=True):
        found += [passed(traced, number) for number in (1, 0)]
    for number, ours in zip((0, 1, 0), found, strict=True):
        for one, other in zip(ours, passed(plain, number), strict=True):
            assert relative(one, other) < 1e-5
    assert relative(found[0][0], found[1][0]) > 0.1


@pytest.mark.parametrize(
    ("compiled", "training", "on_gpu"),
    [(True, True, True), (False, True, True), (True, False, True), (True, True, False)],
)
def test_seeds_are_drawn_for_compiled_training_on_a_gpu_alone(compiled, training, on_gpu):
    """New ones for every pass; everywhere else torch's own dropout is the faster one."""
    encoder = tiny_encoder("xlm-r", attention="sdpa").train(training)
    encoder._compiled = compiled
    rows = mixed_rows()[1]
    if on_gpu:
        rows = replace(rows, ids=rows.ids.as_subclass(OnGPU))
    drawn = []
    for _ in range(2):
        encoder(rows)
        drawn += [layer.seeds for layer in encoder._dropouts]
    if compiled and training and on_gpu:
        different = {tuple(seeds.tolist()) for seeds in drawn if seeds is not None}
        assert len(different) == 2 * len(encoder._dropouts)
    else:
        assert all(seeds is None for seeds in drawn)


def test_an_evaluation_drops_nothing_and_is_traced_once():
    """Seeds of an earlier pass are still there; whether there were any must not matter."""
    encoder, rows = tiny_encoder("xlm-r", attention="sdpa"), mixed_rows()[1]
    encoder.compile(backend="eager")
    with torch.no_grad():
        before = encoder(rows).hidden
        draw_seeds(encoder._dropouts, torch.device("cpu"))
        with torch._dynamo.config.patch(error_on_recompile=True):
            after = encoder(rows).hidden
    assert torch.equal(before, after)


@pytest.mark.parametrize("traced", [False, True])
def test_a_layer_that_is_used_again_drops_others(traced, monkeypatch):
    """ALBERT has one layer for all: with one mask in a pass it would drop the same all the way."""
    settings = ModelConfig(
        size="albert", dropout=0.1, languages="none", hidden=32, heads=2, layers=4,
        max_positions=96,
    )  # fmt: skip
    encoder = Encoder.make(settings, 101, 1, cls_id=0, sep_id=2).train()
    kept, ours = [], hashing.hashed_dropout

    def listening(given, p, seeds):
        kept.append(ours(torch.ones_like(given), p, seeds))
        return ours(given, p, seeds)

    monkeypatch.setattr(hashing, "hashed_dropout", listening)
    if traced:
        encoder.compile(backend="eager")
    for _ in range(2):
        kept.clear()
        draw_seeds(encoder._dropouts, torch.device("cpu"))
        encoder(mixed_rows()[1])
        assert len(kept) == 5
        assert len({mask.numpy().tobytes() for mask in kept}) == len(kept)
