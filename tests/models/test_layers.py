"""Replacement layers: hashed dropout and deterministic embeddings."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from typing_extensions import override

from isoglot.models import layers as layers_module
from isoglot.models.config import ModelConfig
from isoglot.models.encoder import Encoder
from isoglot.models.layers import (
    DeterministicEmbedding,
    HashedDropout,
    _hash,
    deterministic_lookup,
    draw_seeds,
    hashed_dropout,
    hashed_dropouts,
    sum_by_index,
    use_deterministic_embeddings,
    use_hashed_dropout,
)
from tests.models.tiny import (
    OnGPU,
    mixed_rows,
    relative,
    replace,
    states_and_gradients,
    tiny_encoder,
)

SHAPE = (512, 768)


def seeds(number):
    torch.manual_seed(number)
    return torch.randint(0, 2**31 - 1, (2,), dtype=torch.int32)


def dropped(number, p=0.1):
    return hashed_dropout(torch.ones(SHAPE), p, seeds(number)) == 0


def test_the_arithmetic_is_that_of_32_bits():
    """Against Python's own integers."""
    first, second = seeds(0).tolist()
    found = _hash(torch.tensor([0, 1, 77, 2**31 - 1], dtype=torch.int32), seeds(0)).tolist()
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
    """Rows, columns, neighbors and other seeds: as far from each other as chance makes them."""
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
    use_hashed_dropout(ours := nn.Sequential(nn.Dropout(0.3)))
    found = []
    for layers in (usual, ours):
        torch.manual_seed(0)
        found.append(layers(torch.ones(50)))
    assert torch.equal(*found)


def test_every_layer_and_every_pass_has_seeds_of_its_own():
    model = nn.Sequential(*(nn.Dropout(0.3) for _ in range(5)))
    use_hashed_dropout(model)
    layers = hashed_dropouts(model)
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
    draw_seeds(hashed_dropouts(encoder.model.base_model), torch.device("cpu"))
    encoder.zero_grad()
    return states_and_gradients(encoder)


def test_traced_it_drops_the_same_and_new_seeds_trace_nothing_anew():
    plain, traced = (tiny_encoder("xlm-r", layers=1, attention="sdpa").train() for _ in range(2))
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
    encoder, rows = tiny_encoder("xlm-r", layers=1, attention="sdpa"), mixed_rows()[1]
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
        size="albert", dropout=0.1, language_embeddings="none", hidden_size=32, num_heads=2,
        num_layers=2, max_positions=96,
    )  # fmt: skip
    encoder = Encoder.from_scratch(settings, 101, 1, cls_id=0, sep_id=2).train()
    kept, ours = [], layers_module.hashed_dropout

    def listening(given, p, seeds):
        kept.append(ours(torch.ones_like(given), p, seeds))
        return ours(given, p, seeds)

    monkeypatch.setattr(layers_module, "hashed_dropout", listening)
    if traced:
        encoder.compile(backend="eager")
    for _ in range(2):
        kept.clear()
        draw_seeds(encoder._dropouts, torch.device("cpu"))
        encoder(mixed_rows()[1])
        assert len(kept) == 3
        assert len({mask.numpy().tobytes() for mask in kept}) == len(kept)


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
    found = sum_by_index(values, keys, number, depth)
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
        sum_by_index(torch.ones(len(keys), 1), keys, number, depth)
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
    ours = (
        torch.compile(deterministic_lookup, fullgraph=True, backend="aot_eager")
        if compiled
        else deterministic_lookup
    )
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


@pytest.mark.parametrize("architecture", ["xlm-r", "modernbert"])
def test_a_traced_model_learns_the_same(architecture, monkeypatch):
    plain, traced = (tiny_encoder(architecture, layers=1, attention="sdpa") for _ in range(2))
    expected = states_and_gradients(plain)
    monkeypatch.setattr(
        DeterministicEmbedding,
        "forward",
        lambda self, keys: deterministic_lookup(self.weight, keys, self.padding_idx),
    )
    traced.compile(backend="aot_eager")
    for ours, reference in zip(states_and_gradients(traced), expected, strict=True):
        assert relative(ours, reference) < 1e-5


def test_tables_stay_what_they_are_for_everybody_else():
    encoder = tiny_encoder("xlm-r")
    words = encoder.model.get_input_embeddings()
    assert type(words) is DeterministicEmbedding
    assert words.weight is encoder.model.get_output_embeddings().weight
    usual, special = nn.Embedding(3, 2), nn.Embedding(3, 2, max_norm=1.0)
    names = list(usual.state_dict())
    use_deterministic_embeddings(layers := nn.ModuleList([usual, special]))
    assert [type(layer) for layer in layers] == [DeterministicEmbedding, nn.Embedding]
    assert list(usual.state_dict()) == names


def test_a_key_adds_its_values_in_their_order():
    """1 is lost beside 1e8 unless it comes last; a sort that keeps no order may lose it."""
    values = torch.tensor([[1.0], [5.0], [1e8], [-1e8], [1e8], [-1e8], [1.0]])
    keys = torch.tensor([2, 0, 2, 2, 1, 1, 1])
    assert sum_by_index(values, keys, 3).tolist() == [[5.0], [1.0], [0.0]]
    sorts = []

    class Listening(torch.utils._python_dispatch.TorchDispatchMode):
        @override
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if func.overloadpacket is torch.ops.aten.sort:
                sorts.append((kwargs or {}).get("stable", False))
            return func(*args, **(kwargs or {}))

    with Listening():  # on a CPU every sort keeps it, so it is asked what was asked for
        sum_by_index(values, keys, 3)
    assert sorts == [True]


def test_narrow_values_are_summed_wide():
    """In bf16 a sum stops growing where the next value is less than half of its last bit."""
    values = torch.full((4096, 1), 0.1, dtype=torch.bfloat16)
    found = sum_by_index(values, torch.zeros(4096, dtype=torch.long), 2)
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
    monkeypatch.setattr(layers_module, "deterministic_lookup", lambda *given: asked.append(given))
    keys = torch.tensor([1, 2])
    DeterministicEmbedding(3, 2)(keys.as_subclass(OnGPU) if on_gpu else keys)
    assert bool(asked) is (compiling and twice and on_gpu)


# torch's own, where a graph begins with a tensor that another graph computed
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")
@pytest.mark.parametrize(("architecture", "depths"), [("xlm-r", (2, 4)), ("modernbert", (3,))])
def test_regions_compute_the_same_and_deeper_models_compile_nothing_more(architecture, depths):
    """Layers of one kind share a graph: more layers add none."""
    graphs = []
    for layers in depths:
        plain, regional = (
            tiny_encoder(architecture, layers=layers, attention="sdpa", fuse_qkv=True).train()
            for _ in range(2)
        )
        torch.compiler.reset()
        number: list[torch.nn.Module] = []

        def count(module, _examples, number=number):
            number.append(module)
            return module.forward

        regional.compile_regions(backend=count)
        for one, other in zip(passed(regional, 0), passed(plain, 0), strict=True):
            assert relative(one, other) < 1e-5
        with torch._dynamo.config.patch(error_on_recompile=True):
            passed(regional, 1)
        graphs.append(len(number))
    assert len(set(graphs)) == 1
