"""Losses by blocks of tokens equal those of all logits at once."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch._subclasses.fake_tensor import FakeTensorMode

from isoglot.models import blocked_cross_entropy, lm_head
from isoglot.models.blocked_cross_entropy import BlockedLinearCrossEntropy
from isoglot.types import IGNORE
from tests.models.tiny import OnGPU

TOKENS, WIDTH = 21, 6
TARGETS = torch.tensor([0, 3, 20, IGNORE, 5, 5, 1, 9, 4])


@pytest.fixture(params=[1, 4, 7, 512], autouse=True)
def block_tokens(request, monkeypatch):
    """Blocks of one token, with and without a rest, and one block of all tokens."""
    monkeypatch.setattr(blocked_cross_entropy, "_MIN_BLOCK_TOKENS", request.param)
    monkeypatch.setattr(blocked_cross_entropy, "_MAX_BLOCK_TOKENS", request.param)
    return request.param


def inputs(dtype):
    """States, output embeddings and bias."""
    torch.manual_seed(0)
    shapes = (len(TARGETS), WIDTH), (TOKENS, WIDTH), (TOKENS,)
    return [torch.randn(shape).to(dtype).requires_grad_() for shape in shapes]


def test_losses_and_gradients_are_those_of_all_logits():
    given, slopes = inputs(torch.float64), torch.rand(len(TARGETS)).double()
    losses, correct = BlockedLinearCrossEntropy.apply(*given, TARGETS)
    logits = F.linear(*given)
    expected = F.cross_entropy(logits, TARGETS, reduction="none", ignore_index=IGNORE)
    torch.testing.assert_close(losses, expected, rtol=1e-12, atol=1e-12)
    assert torch.equal(correct, logits.argmax(dim=1) == TARGETS)
    found = torch.autograd.grad((losses * slopes).sum(), given)
    wanted = torch.autograd.grad((expected * slopes).sum(), given)
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


def test_bf16_products_and_a_float32_weight(block_tokens):
    """As under autocast: the gradient of a weight has its type, and the precision of bf16."""
    _, weight, bias = inputs(torch.float32)
    features = inputs(torch.float32)[0].detach().bfloat16().requires_grad_()
    losses, _ = BlockedLinearCrossEntropy.apply(features, weight, bias, TARGETS)
    found = torch.autograd.grad(losses.sum(), (features, weight, bias))
    wide = [one.detach().bfloat16().double().requires_grad_() for one in (features, weight, bias)]
    expected = F.cross_entropy(F.linear(*wide), TARGETS, reduction="sum", ignore_index=IGNORE)
    wanted = torch.autograd.grad(expected, wide)
    assert losses.dtype == torch.float32
    assert losses.sum().item() == pytest.approx(expected.item(), rel=1e-2)
    for one, other, dtype in zip(
        found, wanted, (features.dtype, *2 * [torch.float32]), strict=True
    ):
        assert one.dtype == dtype
        torch.testing.assert_close(one.double(), other, rtol=0.05, atol=0.02)
    # block by block, the sum over all tokens is rounded once, at the end
    whole = torch.autograd.grad(
        lm_head._FusedLinearCrossEntropy.apply(features, weight, bias, TARGETS, 1)[0].sum(),
        features,
    )[0]
    error = (found[0].double() - wanted[0]).norm()
    assert error <= (whole.double() - wanted[0]).norm() * (1.6 if block_tokens > 1 else 3)


def test_a_target_that_shares_the_highest_logit_is_not_correct():
    weight = torch.zeros(TOKENS, 1)
    weight[[2, 15]] = 1.0
    features, bias = torch.tensor([[1.0], [1.0], [-1.0]]), torch.zeros(TOKENS)
    targets = torch.tensor([2, 15, 2])
    _, correct = BlockedLinearCrossEntropy.apply(features, weight, bias, targets)
    assert not correct.any()
    weight[15] = 0.5
    _, correct = BlockedLinearCrossEntropy.apply(features, weight, bias, targets)
    assert correct.tolist() == [True, False, False]


def test_a_retained_graph_gives_the_same_gradient_twice():
    given = inputs(torch.float32)
    losses, _ = BlockedLinearCrossEntropy.apply(*given, TARGETS)
    first = torch.autograd.grad(losses.sum(), given, retain_graph=True)
    second = torch.autograd.grad(losses.sum(), given)
    assert all(map(torch.equal, first, second))


def test_only_what_is_trained_has_a_gradient():
    given = inputs(torch.float32)
    expected = torch.autograd.grad(
        BlockedLinearCrossEntropy.apply(*given, TARGETS)[0].sum(), given[0]
    )[0]
    given[1].requires_grad_(requires_grad=False)
    given[2].requires_grad_(requires_grad=False)
    BlockedLinearCrossEntropy.apply(*given, TARGETS)[0].sum().backward()
    assert torch.equal(given[0].grad, expected)
    assert given[1].grad is None
    assert given[2].grad is None


def test_a_target_outside_of_the_vocabulary_is_an_error():
    with pytest.raises(IndexError, match="target 21 of a vocabulary of 21 tokens"):
        BlockedLinearCrossEntropy.apply(*inputs(torch.float32), TARGETS.clone().fill_(TOKENS))


def test_no_target_positions():
    features, weight, bias = inputs(torch.float32)
    losses, correct = BlockedLinearCrossEntropy.apply(features[:0], weight, bias, TARGETS[:0])
    losses.sum().backward()
    assert losses.shape == correct.shape == (0,)
    assert torch.equal(weight.grad, torch.zeros_like(weight))


def test_blocks_hold_half_a_million_logits(monkeypatch):
    monkeypatch.setattr(blocked_cross_entropy, "_MIN_BLOCK_TOKENS", 512)
    monkeypatch.setattr(blocked_cross_entropy, "_MAX_BLOCK_TOKENS", 8192)
    for positions, tokens in ((20, 8192), (154, 3392), (4000, 512)):
        blocks = blocked_cross_entropy._blocks(torch.zeros(positions, dtype=torch.long), 250_002)
        assert blocks[0].stop == tokens
        assert blocks[-1].stop == 250_002
        assert sum(len(block.rows) for block in blocks) == positions


def test_only_a_cpu_computes_by_blocks(monkeypatch):
    calls = []

    def listening(*given):
        calls.append(given)
        return torch.zeros(()), torch.zeros(())

    monkeypatch.setattr(BlockedLinearCrossEntropy, "apply", listening)
    features, weight, bias = inputs(torch.float32)
    lm_head.fused_linear_cross_entropy(features, weight, bias, TARGETS)
    assert len(calls) == 1
    assert not lm_head._on_cpu(features.as_subclass(OnGPU))
    with FakeTensorMode():
        assert not lm_head._on_cpu(torch.empty(2, 3))
