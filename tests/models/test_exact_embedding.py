"""Gradients of embeddings that are summed in parts: the same sums, no part too deep."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from typing_extensions import override

from isoglot.models import exact_embedding
from isoglot.models.exact_embedding import (
    ExactEmbedding,
    look_up,
    sum_embeddings_exactly,
    sums_by_key,
)
from tests.models.there_and_back import relative, states_and_gradients
from tests.models.tiny import ARCHITECTURES, OnGPU, tiny_encoder

# torch's compiler does what torch warns of
pytestmark = pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")


@st.composite
def keys_and_number(draw):
    number = draw(st.integers(1, 12))
    # from a few of the keys, so that some are deep and some are not there
    some = draw(st.lists(st.integers(0, number - 1), min_size=1, max_size=4))
    return draw(st.lists(st.sampled_from(some), max_size=60)), number


@given(keys_and_number(), st.integers(1, 9))
def test_sums_are_those_of_the_keys(drawn, depth):
    keys, number = torch.tensor(drawn[0], dtype=torch.long), drawn[1]
    values = torch.randn(len(keys), 3, dtype=torch.double)
    expected = torch.zeros(number, 3, dtype=torch.double)
    for key, value in zip(keys.tolist(), values, strict=True):
        expected[key] += value
    found = sums_by_key(values, keys, number, depth)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


@given(keys_and_number(), st.integers(1, 9))
def test_nothing_is_deep(drawn, depth):
    """Neither the values of a part nor the parts of a key, those that are left over among them."""
    keys, number = torch.tensor(drawn[0], dtype=torch.long), drawn[1]
    depths = []

    class Counting(torch.utils._python_dispatch.TorchDispatchMode):
        @override
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if func is torch.ops.aten.index_put.default and len(args[1][0]):
                depths.append(int(args[1][0].bincount().max()))
            return func(*args, **(kwargs or {}))

    with Counting():
        sums_by_key(torch.ones(len(keys), 1), keys, number, depth)
    if not len(keys):
        return
    of_keys, of_parts, of_sums = depths
    assert of_keys == of_parts <= depth
    # of a key with n values at most n / depth parts begin at a multiple, one with it, one beside it
    deepest = int(keys.bincount().max())
    assert of_sums <= deepest // depth + 3


@pytest.mark.parametrize("padding", [None, 1])
@pytest.mark.parametrize("compiled", [False, True])
def test_a_table_is_read_and_learned_as_ever(padding, compiled):
    keys = torch.tensor([[1, 3, 3, 0], [3, 1, 4, 3]])
    slope = torch.randn(2, 4, 5, dtype=torch.double)
    ways = [lambda table: F.embedding(keys, table, padding)]
    ours = torch.compile(look_up, fullgraph=True, backend="aot_eager") if compiled else look_up
    ways.append(lambda table: ours(table, keys, padding))
    found = []
    for way in ways:
        torch.manual_seed(0)
        table = torch.randn(6, 5, dtype=torch.double, requires_grad=True)
        rows = way(table)
        (gradient,) = torch.autograd.grad((rows * slope).sum(), table)
        found.append((rows.detach(), gradient))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_traced_model_learns_the_same(architecture, monkeypatch):
    plain, traced = (tiny_encoder(architecture, attention="sdpa") for _ in range(2))
    expected = states_and_gradients(plain)
    monkeypatch.setattr(
        ExactEmbedding,
        "forward",
        lambda self, keys: look_up(self.weight, keys, self.padding_idx),
    )
    traced.compile(backend="aot_eager")
    for ours, reference in zip(states_and_gradients(traced), expected, strict=True):
        assert relative(ours, reference) < 1e-5


def test_tables_stay_what_they_are_for_everybody_else():
    encoder = tiny_encoder("xlm-r")
    words = encoder.model.get_input_embeddings()
    assert type(words) is ExactEmbedding
    assert words.weight is encoder.model.get_output_embeddings().weight
    usual, special = nn.Embedding(3, 2), nn.Embedding(3, 2, max_norm=1.0)
    names = list(usual.state_dict())
    sum_embeddings_exactly(layers := nn.ModuleList([usual, special]))
    assert [type(layer) for layer in layers] == [ExactEmbedding, nn.Embedding]
    assert list(usual.state_dict()) == names


def test_a_key_adds_its_values_in_their_order():
    """1 is lost beside 1e8 unless it comes last; a sort that keeps no order may lose it."""
    values = torch.tensor([[1.0], [5.0], [1e8], [-1e8], [1e8], [-1e8], [1.0]])
    keys = torch.tensor([2, 0, 2, 2, 1, 1, 1])
    assert sums_by_key(values, keys, 3).tolist() == [[5.0], [1.0], [0.0]]
    sorts = []

    class Listening(torch.utils._python_dispatch.TorchDispatchMode):
        @override
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if func.overloadpacket is torch.ops.aten.sort:
                sorts.append((kwargs or {}).get("stable", False))
            return func(*args, **(kwargs or {}))

    with Listening():  # on a CPU every sort keeps it, so it is asked what was asked for
        sums_by_key(values, keys, 3)
    assert sorts == [True]


def test_narrow_values_are_summed_wide():
    """In bf16 a sum stops growing where the next value is less than half of its last bit."""
    values = torch.full((4096, 1), 0.1, dtype=torch.bfloat16)
    found = sums_by_key(values, torch.zeros(4096, dtype=torch.long), 2)
    assert found.dtype == torch.bfloat16
    assert found[0].item() == pytest.approx(values.double().sum().item(), rel=2**-8)


@pytest.mark.parametrize("compiling", [False, True])
@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize("on_gpu", [False, True])
def test_only_compiled_on_a_gpu_and_asked_for_it_a_table_is_exact(
    compiling, twice, on_gpu, monkeypatch
):
    """Everywhere else what torch does is faster."""
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: compiling)
    monkeypatch.setattr(torch, "are_deterministic_algorithms_enabled", lambda: twice)
    asked = []
    monkeypatch.setattr(exact_embedding, "look_up", lambda *given: asked.append(given))
    keys = torch.tensor([1, 2])
    ExactEmbedding(3, 2)(keys.as_subclass(OnGPU) if on_gpu else keys)
    assert bool(asked) is (compiling and twice and on_gpu)
