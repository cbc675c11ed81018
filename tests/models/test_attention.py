from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from isoglot.models.attention import (
    LOCAL_LAYER,
    NO_MASK,
    build_masks,
    fastest_implementation,
    mask_function,
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
def test_neighbours_change_not_one_bit(architecture):
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
