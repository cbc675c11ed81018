"""The LM head at target positions equals the head at every token.

The fused product and loss equal the separate operations.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from isoglot.models import lm_head
from isoglot.models.attention import build_masks
from isoglot.models.config import LMHeadConfig
from isoglot.models.lm_head import (
    LMHead,
    _FusedLinearCrossEntropy,
    _gradient,
    padded_logits,
    target_losses,
)
from isoglot.types import IGNORE
from tests.models.tiny import ARCHITECTURES, VOCABULARY, OnGPU, mixed_rows, tiny_encoder

NUM_TARGETS = 41


def some_targets(rows):
    """Some positions with targets and weights, every fourth of weight zero with no real target."""
    rng = np.random.default_rng(3)
    positions = torch.tensor(rng.choice(rows.ids.numel(), size=NUM_TARGETS, replace=False))
    targets = torch.tensor(rng.integers(0, VOCABULARY, size=NUM_TARGETS))
    weights = torch.ones(NUM_TARGETS, dtype=torch.float64)
    weights[1::4] = 0.0
    weights[2::4] = 0.5
    targets[1::8] = IGNORE
    return positions, targets, weights


def full_logits(encoder, rows):
    """Logits everywhere, the way transformers' own model computes them."""
    return encoder.model(
        input_ids=rows.ids,
        position_ids=rows.positions + encoder.first_position,
        attention_mask=build_masks(rows, encoder.model.config, "sdpa", encoder.model.dtype),
    ).logits


def gradients(encoder):
    return {
        name: weight.grad.clone()
        for name, weight in encoder.named_parameters()
        if weight.grad is not None
    }


@pytest.mark.parametrize(
    ("architecture", "chunk"), [*((name, 7) for name in ARCHITECTURES), ("xlm-r", 4096)]
)
def test_target_positions_equal_full_logits(architecture, chunk):
    _, rows = mixed_rows()
    positions, targets, weights = some_targets(rows)
    encoder = tiny_encoder(architecture, lm_head=LMHeadConfig(chunk_size=chunk)).double()

    logits = full_logits(encoder, rows).flatten(0, 1)
    real = weights > 0
    expected = (
        F.cross_entropy(logits[positions[real]], targets[real], reduction="none") * weights[real]
    )
    expected.sum().backward()
    expected_gradients = gradients(encoder)
    encoder.zero_grad()

    found = encoder.target_losses(encoder(rows), positions, targets, weights)
    found.losses.sum().backward()
    torch.testing.assert_close(found.losses[real], expected, rtol=1e-9, atol=0)
    assert torch.equal(found.losses[~real], torch.zeros_like(found.losses[~real]))
    assert torch.equal(found.correct[real], logits[positions[real]].argmax(-1) == targets[real])
    assert not found.correct[~real].any()
    found_gradients = gradients(encoder)
    assert found_gradients.keys() == expected_gradients.keys()
    for name, gradient in found_gradients.items():
        torch.testing.assert_close(gradient, expected_gradients[name], rtol=1e-9, atol=1e-11)


def test_a_head_with_more_after_its_product():
    """Such a head runs as it is, whole; every head of the zoo ends with its product."""
    for architecture in ARCHITECTURES:
        assert tiny_encoder(architecture).lm_head.ends_with_output_embeddings, architecture
    _, rows = mixed_rows()
    positions, targets, weights = some_targets(rows)
    encoder = tiny_encoder("xlm-r").double()
    encoder.model.lm_head.register_forward_hook(lambda _module, _given, logits: torch.tanh(logits))
    lm_head = LMHead(encoder.model)
    assert not lm_head.ends_with_output_embeddings
    states = encoder(rows).hidden
    found = target_losses(lm_head, states, positions, targets, weights, chunk_size=9)
    logits = full_logits(encoder, rows).flatten(0, 1)[positions]
    expected = F.cross_entropy(logits[weights > 0], targets[weights > 0], reduction="none")
    torch.testing.assert_close(found.losses[weights > 0], expected * weights[weights > 0])


@pytest.mark.parametrize("chunk", [3, 4096])
def test_zero_weight_gives_no_gradient_at_all(chunk):
    _, rows = mixed_rows()
    positions, targets, weights = some_targets(rows)
    encoder = tiny_encoder("xlm-r", lm_head=LMHeadConfig(chunk_size=chunk))
    states = encoder(rows)
    states.hidden.retain_grad()
    encoder.target_losses(states, positions, targets, weights.float()).losses.sum().backward()
    assert states.hidden.grad is not None
    at_positions = states.hidden.grad.flatten(0, 1)[positions]
    assert torch.equal(at_positions[weights == 0], torch.zeros_like(at_positions[weights == 0]))
    assert at_positions[weights > 0].abs().sum(dim=-1).min() > 0


def test_zero_weight_is_never_correct():
    _, rows = mixed_rows()
    encoder = tiny_encoder("xlm-r")
    states, positions = encoder(rows), torch.arange(6)
    likeliest = encoder.logits_at(states, positions).argmax(dim=-1)
    weights = torch.tensor([1.0, 0.0, 1.0, 0.0, 0.0, 0.5])
    found = encoder.target_losses(states, positions, likeliest, weights)
    assert torch.equal(found.correct, weights > 0)


def test_zero_weight_silences_broken_states():
    """Where the buffer is padded nothing may come out, not even what zero times NaN is."""
    _, rows = mixed_rows()
    encoder = tiny_encoder("bert")
    states = encoder(rows)
    states.hidden = torch.where(torch.arange(144)[:, None] == 5, torch.nan, states.hidden)
    found = encoder.target_losses(
        states, torch.tensor([4, 5]), torch.tensor([9, 9]), torch.tensor([1.0, 0.0])
    )
    assert found.losses[0] > 0
    assert found.losses[1] == 0


def test_padded_targets_may_repeat_a_position():
    _, rows = mixed_rows()
    encoder = tiny_encoder("bert")
    states = encoder(rows)
    one = encoder.target_losses(states, torch.tensor([0]), torch.tensor([9]), torch.ones(1))
    padded = encoder.target_losses(
        states, torch.zeros(5, dtype=torch.long), torch.full((5,), 9), torch.eye(5)[0]
    )
    torch.testing.assert_close(padded.losses.sum(), one.losses.sum())


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_logits_at_positions(architecture):
    _, rows = mixed_rows()
    encoder = tiny_encoder(architecture)
    positions = torch.tensor([0, 77, 150, 200])
    with torch.no_grad():
        expected = full_logits(encoder, rows).flatten(0, 1)[positions]
        found = encoder.logits_at(encoder(rows), positions)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_logits_on_a_gpu_come_of_the_filled_matrix(architecture, monkeypatch):
    """As the losses do: 101 words are no multiple of eight."""
    encoder, states = tiny_encoder(architecture), torch.randn(5, 32)
    widths = []

    def listening(states, words, bias):
        widths.append(len(words))
        return padded_logits(states, words, bias)

    monkeypatch.setattr(lm_head, "padded_logits", listening)
    with torch.no_grad():
        expected = encoder.lm_head(states)
        assert not widths
        found = encoder.lm_head(states.as_subclass(OnGPU))
    assert widths == [VOCABULARY]
    torch.testing.assert_close(found.as_subclass(torch.Tensor), expected)


def test_losses_are_float32_under_bf16_weights():
    _, rows = mixed_rows()
    encoder = tiny_encoder("xlm-r")
    states = encoder(rows)
    states.hidden = states.hidden.to(torch.bfloat16)
    encoder.model.lm_head.to(torch.bfloat16)
    found = encoder.target_losses(states, torch.arange(4), torch.arange(4), torch.ones(4))
    assert found.losses.dtype == torch.float32


NUM_SITES = 41


@pytest.mark.parametrize("bias", [True, False])
def test_logits_of_a_filled_matrix_are_those_of_the_words(bias):
    torch.manual_seed(0)
    states, words = torch.randn(2, 9, 6).double(), torch.randn(11, 6).double()
    own = torch.randn(11).double() if bias else None
    expected = states @ words.T + (0 if own is None else own)
    for multiple in (1, 8):
        given = states.clone().requires_grad_(), words.clone().requires_grad_()
        found = padded_logits(*given, own, multiple)
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
        of_states, of_words = torch.autograd.grad(found.square().sum(), given)
        torch.testing.assert_close(of_states, 2 * expected @ words, rtol=1e-12, atol=1e-12)
        slope = 2 * expected.flatten(0, 1).T @ states.flatten(0, 1)
        torch.testing.assert_close(of_words, slope, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("bias", [True, False])
def test_rows_that_mean_no_word_change_nothing(bias):
    """A GPU gets them; here they are asked for."""
    torch.manual_seed(0)
    states, words = torch.randn(9, 6).double(), torch.randn(11, 6).double()
    own = torch.randn(11).double() if bias else torch.zeros(11).double()
    targets = torch.tensor([0, 3, 10, IGNORE, 5, 5, 1, 9, 2])
    found = []
    for multiple in (1, 8):
        given = [tensor.clone().requires_grad_() for tensor in (states, words, own)]
        losses, correct = _FusedLinearCrossEntropy.apply(*given, targets, multiple)
        gradients = torch.autograd.grad(losses.square().sum(), given)
        found.append((losses.detach(), correct, *gradients))
    for filled, plain in zip(found[1], found[0], strict=True):
        torch.testing.assert_close(filled, plain, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_the_compiled_gradient_is_the_same(dtype):
    torch.manual_seed(0)
    logits, targets = torch.randn(7, 11).to(dtype), torch.tensor([0, 3, 10, IGNORE, 5, 5, 1])
    wide = logits.to(torch.promote_types(dtype, torch.float32))
    denominators, slopes = wide.logsumexp(dim=1), torch.rand(7).to(wide.dtype)
    compiled = torch.compile(_gradient, backend="eager", fullgraph=True)
    found = compiled(logits, denominators, targets, slopes)
    expected = _gradient(logits, denominators, targets, slopes)
    assert found.dtype == expected.dtype == dtype
    torch.testing.assert_close(found, expected)
    assert (found[3] == 0).all()


def test_a_row_that_is_ignored_has_no_loss_of_its_own():
    """Without the help of a weight that is zero."""
    torch.manual_seed(0)
    features, words = torch.randn(3, 6), torch.randn(11, 6)
    targets = torch.tensor([4, IGNORE, 2])
    losses, correct = lm_head.fused_linear_cross_entropy(features, words, None, targets)
    expected = F.cross_entropy(features @ words.T, targets, reduction="none", ignore_index=IGNORE)
    torch.testing.assert_close(losses, expected)
    assert losses[1] == 0
    assert not correct[1]


def test_only_a_gpu_needs_multiples_of_eight():
    features = torch.zeros(2, 3)
    assert lm_head._multiple(features) == 1
    assert lm_head._multiple(features.as_subclass(OnGPU)) == 8


def test_a_head_that_cannot_run_without_its_product_is_run_whole():
    encoder = tiny_encoder("xlm-r")

    def refuse(_module, _given, logits):
        if logits.shape[-1] != VOCABULARY:
            raise TypeError

    encoder.model.lm_head.register_forward_hook(refuse)
    assert not LMHead(encoder.model).ends_with_output_embeddings
