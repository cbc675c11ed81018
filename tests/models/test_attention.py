from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.attention.flex_attention import create_block_mask

from isoglot.models.attention import (
    LOCAL_LAYER,
    MAX_CUDNN_MASK_LENGTH,
    NO_MASK,
    _block_mask,
    _kernel_options,
    _visible_blocks,
    attention_kernels,
    build_masks,
    fastest_implementation,
    mask_function,
    packed_attention,
)
from isoglot.types import MaskRule
from tests.models.tiny import (
    ARCHITECTURES,
    WINDOW,
    alone,
    mixed_rows,
    pack,
    random_tokens,
    replace,
    slow_mask,
    tiny_encoder,
)

# flex is fused by compilation only, which a test of its numbers does not need
eager_flex = pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")


@st.composite
def any_rows(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    plan = st.lists(st.tuples(st.sampled_from(MaskRule), st.integers(2, 9)), max_size=3)
    rows = draw(st.lists(plan, min_size=1, max_size=3))
    sequences = [[random_tokens(rng, rule, length) for rule, length in row] for row in rows]
    filled = max(sum(map(len, row)) for row in sequences)
    return pack(sequences, filled + draw(st.integers(1, 3)))


@settings(max_examples=30, deadline=None)
@given(rows=any_rows(), window=st.none() | st.integers(0, 5))
def test_rule_is_the_double_loop(rows, window):
    num_rows, length = rows.ids.shape
    row, token = torch.arange(num_rows)[:, None, None], torch.arange(length)
    sees = mask_function(rows, window=window)(row, row, token[:, None], token)
    assert torch.equal(sees, slow_mask(rows, window=window))


@settings(max_examples=5, deadline=None)
@given(rows=any_rows())
def test_sdpa_and_flex_have_the_same_mask(rows):
    config = tiny_encoder("modernbert").model.config
    additive: Any = build_masks(rows, config, "sdpa", torch.float64)
    blocks: Any = build_masks(rows, config, "flex", torch.float64)
    for kind, window in (("full_attention", None), ("sliding_attention", WINDOW)):
        expected = slow_mask(rows, window=window)
        assert torch.equal(additive[kind][:, 0] == 0, expected)
        num_rows, length = rows.ids.shape
        row, token = torch.arange(num_rows)[:, None, None], torch.arange(length)
        assert torch.equal(blocks[kind].mask_mod(row, row, token[:, None], token), expected)


def assert_same_blocks(rows, find) -> None:
    """`find` gives the blocks of torch's `create_block_mask`, laid out in the same way."""
    sees, size, device = mask_function(rows, window=WINDOW), rows.ids.shape, torch.device("cpu")
    expected = create_block_mask(sees, size[0], None, size[1], size[1], device="cpu")
    mask = _block_mask(sees, size, device)
    assert (mask.seq_lengths, mask.BLOCK_SIZE) == (expected.seq_lengths, expected.BLOCK_SIZE)
    kinds = ("kv", "full_kv", "q", "full_q")
    for kind, (number, indices) in zip(kinds, find(sees, size, device), strict=True):
        for name, one in ((f"{kind}_num_blocks", number), (f"{kind}_indices", indices)):
            other = getattr(expected, name)
            assert torch.equal(getattr(mask, name), other), name
            assert torch.equal(one, other), name
            assert (one.dtype, one.stride()) == (other.dtype, other.stride()), name


@settings(max_examples=10, deadline=None)
@given(rows=any_rows(), repeats=st.integers(1, 30))
def test_blocks_are_those_that_torch_finds(rows, repeats):
    assert_same_blocks(rows.map(lambda tensor: tensor.repeat(1, repeats)), _visible_blocks)


def test_full_blocks_are_those_that_torch_finds():
    whole = pack([[random_tokens(np.random.default_rng(0), MaskRule.FULL, 300)]] * 2, 400)
    _, (number, _), *_ = _visible_blocks(mask_function(whole), whole.ids.shape, torch.device("cpu"))
    assert number.flatten().tolist() == [2, 2, 0, 0] * 2
    assert_same_blocks(whole, _visible_blocks)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch's compiler
def test_compiled_blocks_are_those_that_torch_finds():
    assert_same_blocks(mixed_rows()[1], torch.compile(_visible_blocks))


def test_padding_sees_itself_and_leaves_no_softmax_empty():
    rows = pack([[]], 5)
    mask = build_masks(rows, tiny_encoder("bert").model.config, "sdpa", torch.float32)
    assert isinstance(mask, torch.Tensor)
    assert torch.equal(mask[0, 0] == 0, torch.eye(5, dtype=torch.bool))
    assert mask.min() == torch.finfo(torch.float32).min


@eager_flex
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_same_numbers_three_ways(architecture):
    sequences, rows = mixed_rows()
    with torch.no_grad():
        sdpa = tiny_encoder(architecture, attention="sdpa")(rows).hidden
        if architecture in {"xlm-r", "eurobert", "modernbert"}:  # plain, grouped heads, windows
            flex = tiny_encoder(architecture, attention="flex")(rows).hidden
            torch.testing.assert_close(flex, sdpa, atol=1e-5, rtol=0)
        encoder = tiny_encoder(architecture)
        for row, own in enumerate(sequences):
            start = 0
            for tokens in own:
                span = sdpa[row, start : start + len(tokens)]
                torch.testing.assert_close(span, alone(encoder, tokens), atol=1e-5, rtol=0)
                start += len(tokens)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_neighbors_change_not_one_bit(architecture):
    _, rows = mixed_rows()
    encoder = tiny_encoder(architecture)
    others = rows.sequences != 1
    ids = torch.where(others, (rows.ids * 7 + 3) % 101, rows.ids)
    with torch.no_grad():
        before, after = encoder(rows).hidden, encoder(replace(rows, ids=ids)).hidden
    assert torch.equal(before[~others], after[~others])
    assert not torch.equal(before[others], after[others])


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_no_gradient_crosses_sequences(architecture):
    """And under `translate` none flows from a sentence to the slots that look at it."""
    _, rows = mixed_rows()
    encoder = tiny_encoder(architecture)
    seen: list[torch.Tensor] = []

    def keep(module, args, output):
        seen.append(output.detach().requires_grad_())
        return seen[0]

    hook = encoder.model.get_input_embeddings().register_forward_hook(keep)
    sentence = (rows.sequences == 1) & (rows.rules == MaskRule.TRANSLATE) & (rows.roles == 0)
    states = encoder(rows).hidden
    hook.remove()
    (gradient,) = torch.autograd.grad(states[sentence].square().sum(), seen)
    assert torch.equal(gradient[~sentence], torch.zeros_like(gradient[~sentence]))
    assert gradient[sentence].abs().sum(dim=-1).min() > 0


def test_the_window_matters():
    """The reference above would also hold for a model whose window is ignored on both sides."""
    _, rows = mixed_rows()
    encoder = tiny_encoder("modernbert")
    with torch.no_grad():
        local = encoder(rows).hidden
        encoder.model.config.sliding_window = 72
        everything = encoder(rows).hidden
    assert (local - everything).abs().max() > 0.1


def test_whole_rows_need_no_mask(monkeypatch):
    """Seen through every architecture whose layers all see everything."""
    rng = np.random.default_rng(0)
    rows = pack([[random_tokens(rng, MaskRule.FULL, 60)] for _ in range(2)], 60)
    for architecture in ARCHITECTURES:
        encoder = tiny_encoder(architecture)
        config = encoder.model.config
        rows.unmasked = False
        with torch.no_grad():
            expected = encoder(rows).hidden
        rows.unmasked = True
        if LOCAL_LAYER in (getattr(config, "layer_types", None) or ()):
            assert architecture == "modernbert"
            continue  # local layers need their mask, which is compiled for a GPU
        mask = build_masks(rows, config, "cudnn", torch.float32)
        assert isinstance(mask, torch.Tensor)
        assert mask.shape == NO_MASK
        monkeypatch.setattr(encoder, "_attention_implementation", lambda _: "cudnn")
        with torch.no_grad():
            found = encoder(rows).hidden
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_what_is_fastest_on_a_cpu_is_the_mask():
    rows = mixed_rows()[1]
    config = tiny_encoder("xlm-r").model.config
    assert fastest_implementation(rows, config, torch.bfloat16) == "sdpa"


@pytest.mark.parametrize(("tokens", "expected"), [(64, "sdpa"), (127, "sdpa"), (128, "flex")])
def test_rows_shorter_than_a_block_do_not_use_flex_on_a_gpu(tokens, expected):
    """FlexAttention's gradients are NaN there."""
    ids = SimpleNamespace(is_cuda=True, shape=(2, tokens), device=torch.device("cuda"))
    rows = SimpleNamespace(ids=ids, unmasked=False)
    config = tiny_encoder("xlm-r").model.config
    assert fastest_implementation(rows, config, torch.float32) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("capability", "tokens", "expected"),
    [
        ((8, 0), 128, "flex"),
        ((9, 0), 128, "cudnn"),
        ((9, 0), MAX_CUDNN_MASK_LENGTH, "cudnn"),
        ((9, 0), MAX_CUDNN_MASK_LENGTH + 1, "flex"),
        ((10, 0), 128, "cudnn"),
    ],
)
def test_cudnn_is_for_hopper_and_masks_that_are_short(monkeypatch, capability, tokens, expected):
    monkeypatch.setattr("isoglot.models.attention._capability", lambda _: capability)
    ids = SimpleNamespace(is_cuda=True, shape=(2, tokens), device=torch.device("cuda"))
    rows: Any = SimpleNamespace(ids=ids, unmasked=False)
    config = tiny_encoder("xlm-r").model.config
    assert fastest_implementation(rows, config, torch.bfloat16) == expected


@pytest.mark.parametrize(("width", "wide_blocks"), [(32, True), (64, True), (65, False)])
def test_large_blocks_are_for_narrow_heads_on_hopper(monkeypatch, width, wide_blocks):
    monkeypatch.setattr("isoglot.models.attention._capability", lambda _: (9, 0))
    query: Any = SimpleNamespace(
        shape=(1, 2, 128, width), dtype=torch.bfloat16, is_cuda=True, device=torch.device("cuda")
    )
    assert (_kernel_options(query) is not None) is wide_blocks


def test_the_longest_mask_of_cudnn_is_the_one_that_was_measured():
    """docs/speed.md: beyond 512 tokens reading the mask costs more than it saves."""
    assert MAX_CUDNN_MASK_LENGTH == 512


def slow_attention(query, key, value, seen, scale):
    """Attention in float64, one query at a time; grouped heads share keys and values."""
    found = torch.zeros(query.shape, dtype=torch.float64)
    share = query.shape[1] // key.shape[1]
    for b, h, q in np.ndindex(*query.shape[:3]):
        scores = [
            scale * float(query[b, h, q].double() @ key[b, h // share, k].double())
            if seen[b, q, k]
            else float("-inf")
            for k in range(key.shape[2])
        ]
        weights = np.exp(np.array(scores) - max(scores))
        weights /= weights.sum()
        for k, weight in enumerate(weights):
            found[b, h, q] += weight * value[b, h // share, k].double()
    return found.transpose(1, 2)


@eager_flex
@pytest.mark.parametrize(
    ("implementation", "scaling", "num_keys"),
    [("sdpa", None, 4), ("sdpa", 0.3, 2), ("sdpa", 0.3, 1), ("flex", 0.3, 2)],
)
def test_attention_is_that_of_the_textbook(implementation, scaling, num_keys):
    """The scale, the mask and the grouping of heads; by default the scale is 1 / sqrt(D)."""
    rng = np.random.default_rng(5)
    rules = (MaskRule.FULL, MaskRule.TRANSLATE, MaskRule.GENERATE)
    sequences = [[random_tokens(rng, rule, 5) for rule in rules[row:]] for row in range(2)]
    rows = pack(sequences, 17)
    config = SimpleNamespace(layer_types=None)
    torch.manual_seed(0)
    query = torch.randn(2, 4, 17, 8)
    key, value = torch.randn(2, num_keys, 17, 8), torch.randn(2, num_keys, 17, 8)
    mask = build_masks(rows, config, implementation, torch.float32)
    assert not isinstance(mask, dict)
    found, weights = packed_attention(torch.nn.Module(), query, key, value, mask, scaling=scaling)
    assert weights is None
    expected = slow_attention(query, key, value, slow_mask(rows), scaling or 8**-0.5)
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-5)
    assert found.is_contiguous()


def test_a_placeholder_is_no_mask():
    torch.manual_seed(0)
    query, key, value = torch.randn(3, 1, 2, 5, 4).unbind()
    none, _ = packed_attention(torch.nn.Module(), query, key, value, None)
    placeholder, _ = packed_attention(torch.nn.Module(), query, key, value, torch.zeros(NO_MASK))
    assert torch.equal(none, placeholder)
    with pytest.raises(AssertionError, match="dropout is switched off"):
        packed_attention(torch.nn.Module(), query, key, value, None, dropout=0.1)


@pytest.mark.parametrize(
    ("implementation", "deterministic", "expected"),
    [
        ("sdpa", False, ["FLASH_ATTENTION", "EFFICIENT_ATTENTION", "MATH"]),
        ("cudnn", False, ["CUDNN_ATTENTION", "FLASH_ATTENTION", "EFFICIENT_ATTENTION", "MATH"]),
        ("sdpa", True, ["MATH"]),
        ("flex", False, None),
    ],
)
def test_the_kernels_that_sdpa_may_use(monkeypatch, implementation, deterministic, expected):
    asked: list[list[str]] = []

    def kernel(backends, *, set_priority):
        assert set_priority
        asked.append([backend.name for backend in backends])
        return nullcontext()

    monkeypatch.setattr("isoglot.models.attention.sdpa_kernel", kernel)
    monkeypatch.setattr(torch, "are_deterministic_algorithms_enabled", lambda: deterministic)
    with attention_kernels(implementation):
        assert asked == [], "without a GPU there is one kernel"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    with attention_kernels(implementation):
        pass
    assert asked == ([] if expected is None else [expected])


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "cudnn"),
        ({"dtype": torch.float32}, "flex"),
        ({"dtype": torch.float16}, "cudnn"),
        ({"key_heads": 2}, "cudnn"),
        ({"key_heads": 1}, "flex"),
        ({"deterministic": True}, "flex"),
        ({"tokens": 4096}, "flex"),
        ({"tokens": 4096, "unmasked": True}, "cudnn"),
        ({"tokens": 127}, "cudnn"),
        ({"tokens": 127, "deterministic": True}, "sdpa"),
    ],
)
def test_each_condition_of_cudnn(monkeypatch, changes, expected):
    case = {"dtype": torch.bfloat16, "key_heads": None, "deterministic": False, "tokens": 256}
    case |= {"unmasked": False, **changes}
    monkeypatch.setattr("isoglot.models.attention._capability", lambda _: (9, 0))
    deterministic = case["deterministic"]
    monkeypatch.setattr(torch, "are_deterministic_algorithms_enabled", lambda: deterministic)
    ids = SimpleNamespace(is_cuda=True, shape=(2, case["tokens"]), device=torch.device("cuda"))
    rows: Any = SimpleNamespace(ids=ids, unmasked=case["unmasked"])
    config = SimpleNamespace(num_attention_heads=2, num_key_value_heads=case["key_heads"])
    dtype: Any = case["dtype"]
    assert fastest_implementation(rows, config, dtype) == expected
