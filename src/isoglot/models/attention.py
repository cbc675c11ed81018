"""Who sees whom inside packed rows: the mask rule, written once and realised twice.

    sees(q, k) = same_sequence(q, k) and (ALLOW[rule][part(q), part(k)] or q == k)

Reads `Rows`; gives transformers' encoders a mask that they take as it is: an additive
(B, 1, L, L) tensor for SDPA, or a `BlockMask` for FlexAttention. Both evaluate the same function,
so they cannot drift apart. Padding sees itself and nothing else: no row of a softmax is empty.
cuDNN gets none where every row is one whole sequence: reading a mask takes it a third of its time.

Encoders with local layers (ModernBERT) take one mask per kind of layer. Their window is measured on
`positions` inside a part and is not applied between the parts: a slot of a translation stands at
its own sentence's position, which says nothing about where its counterpart stands in the other.

`PACKED` names the attention function registered with transformers. It looks at the mask it is
handed, so one opened model runs under either realisation, wherever its weights are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import sdpa_mask

from isoglot.types import ALLOW

if TYPE_CHECKING:
    from torch import nn

    from isoglot.types import Rows

Implementation = Literal["sdpa", "flex", "cudnn"]
Mask = Tensor | BlockMask
MaskRule = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]

MASKED = 512
"""The longest rows whose mask is written out for cuDNN, unless it is asked for by name."""

NO_MASK = torch.Size((1, 1, 1, 1))
"""The shape that stands for no mask. Where there is none at all, transformers makes one."""

PACKED = "packed_rows"
"""The name under which transformers' models find `packed_attention`."""

HALVES = (torch.bfloat16, torch.float16)
_HOPPER = (9, 0)

LOCAL = "sliding_attention"
"""What transformers calls a layer that sees a window only; every other kind sees everything."""


@torch.compiler.disable  # compiled on its own, whatever the caller compiles
def masks(
    rows: Rows, config: Any, implementation: Implementation, dtype: torch.dtype
) -> Mask | dict[str, Mask]:
    """The mask of some rows in the form that a model with this config takes.

    Args:
        rows: the packed rows, on the device of the model.
        config: the transformers config; its `layer_types` says whether there are local layers.
        implementation: `sdpa` or `cudnn` for an additive tensor, `flex` for a block mask.
        dtype: of the queries that an additive tensor will be added to.

    Returns:
        One mask, or one for each kind of layer where some layers are local.
    """
    size = rows.ids.shape
    kinds = set(getattr(config, "layer_types", None) or ())
    if implementation == "cudnn" and rows.whole and LOCAL not in kinds:
        return torch.zeros(NO_MASK, dtype=dtype, device=rows.ids.device)
    # cuDNN's kernels are for rows of one shape, and so for one compiled form
    additive = _compiled(_additive) if implementation == "cudnn" else _additive
    realise = _blocks if implementation == "flex" else functools.partial(additive, dtype=dtype)
    if LOCAL not in kinds:
        return realise(mask_rule(rows), size, rows.ids.device)
    return {
        kind: realise(
            mask_rule(rows, window=config.sliding_window if kind == LOCAL else None),
            size,
            rows.ids.device,
        )
        for kind in sorted(kinds)
    }


def mask_rule(rows: Rows, *, window: int | None = None) -> MaskRule:
    """`sees` for these rows, as a function of the row, the head (ignored), the query and the key.

    The indices may be numbers or tensors that broadcast. `window` is the largest distance, on
    `positions`, at which two tokens of one part see each other.
    """
    sequences, positions = rows.sequences.int(), rows.positions.int()
    # the parts that a query may see and the part that a key has, as bits: a kernel then loads one
    # number a query and one a key, where a table would be looked up for every pair of them
    visible, badge = _visible(rows.ids.device)[rows.rules, rows.parts], 1 << rows.parts.int()

    def sees(row: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:  # noqa: ARG001
        own = sequences[row, query]
        together = (own == sequences[row, key]) & (own >= 0)
        allowed = (visible[row, query] & badge[row, key]) != 0
        return (together & allowed) | (query == key)

    if window is None:
        return sees

    def sees_nearby(row: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        near = (positions[row, query] - positions[row, key]).abs() <= window
        return sees(row, head, query, key) & (near | (badge[row, query] != badge[row, key]))

    return sees_nearby


def packed_attention(
    module: nn.Module,  # noqa: ARG001 (transformers hands it over)
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Mask | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    **_: object,
) -> tuple[Tensor, None]:
    """Attention as transformers' encoders call it, under whichever mask they were given."""
    assert dropout == 0.0, "attention dropout is switched off when a model is opened"
    grouped = query.shape[1] != key.shape[1]
    if isinstance(attention_mask, BlockMask):
        # eager flex materialises all scores; inside a compiled model it is fused already
        attend: Callable[..., Any] = flex_attention
        if query.is_cuda and not torch.compiler.is_compiling():
            attend = _compiled(attend)
        output: Tensor = attend(
            query,
            key,
            value,
            block_mask=attention_mask,
            scale=scaling,
            enable_gqa=grouped,
            kernel_options=_sizes(query),
        )
    else:
        if attention_mask is not None and attention_mask.shape == NO_MASK:
            attention_mask = None
        output = F.scaled_dot_product_attention(
            query, key, value, attn_mask=attention_mask, scale=scaling, enable_gqa=grouped
        )
    return output.transpose(1, 2).contiguous(), None


AttentionInterface.register(PACKED, packed_attention)
AttentionMaskInterface.register(PACKED, sdpa_mask)  # for plain calls with a 2-D mask, or none


def fastest(rows: Rows, config: Any, dtype: torch.dtype) -> Implementation:
    """What runs these rows fastest on their device, the same bits twice where that is asked for.

    Measured on an H200 (docs/speed.md). A mask for cuDNN grows with the square of the row's length;
    flex skips the blocks in which nobody sees anybody.
    """
    if not rows.ids.is_cuda:
        return "sdpa"
    heads = config.num_attention_heads
    grouped = getattr(config, "num_key_value_heads", None) not in {None, heads}
    if (
        torch.are_deterministic_algorithms_enabled()
        or dtype not in HALVES
        or _capability(rows.ids.device) < _HOPPER
        or grouped  # such heads cuDNN is not given by torch
    ):
        return "flex"
    return "cudnn" if rows.whole or rows.ids.shape[1] <= MASKED else "flex"


def kernels(implementation: Implementation) -> AbstractContextManager[None]:
    """The kernels to choose from while a model runs: cuDNN's where they are asked for, only there.

    They do not give the same bits twice, and a plan is made for every shape, which batches that are
    each of a shape of their own would wait for. torch prefers them on a Hopper GPU.
    """
    if implementation == "flex" or not torch.cuda.is_available():
        return nullcontext()
    others = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
    first = [SDPBackend.CUDNN_ATTENTION] if implementation == "cudnn" else []
    chosen: AbstractContextManager[None] = sdpa_kernel([*first, *others], set_priority=True)
    return chosen


def _additive(
    sees: MaskRule, size: torch.Size, device: torch.device, *, dtype: torch.dtype
) -> Tensor:
    num_rows, length = size
    row = torch.arange(num_rows, device=device)[:, None, None, None]
    token = torch.arange(length, device=device)
    seen = sees(row, row, token[:, None], token)
    return torch.zeros(seen.shape, dtype=dtype, device=device).masked_fill_(
        ~seen, torch.finfo(dtype).min
    )


def _blocks(sees: MaskRule, size: torch.Size, device: torch.device) -> BlockMask:
    num_rows, length = size
    create = _compiled(create_block_mask) if device.type == "cuda" else create_block_mask
    mask: BlockMask = create(sees, num_rows, None, length, length, device=device)
    return mask


def _sizes(query: Tensor) -> dict[str, int] | None:
    """Sizes for flex's forward kernel: on Hopper its own take twice as long as these."""
    narrow = query.shape[-1] <= 64 and query.dtype in HALVES
    if not (query.is_cuda and narrow and _capability(query.device) == _HOPPER):
        return None
    return {"fwd_BLOCK_M": 128, "fwd_BLOCK_N": 128, "fwd_num_warps": 8, "fwd_num_stages": 2}


@functools.cache
def _capability(device: torch.device) -> tuple[int, int]:
    return torch.cuda.get_device_capability(device)


@functools.cache
def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """One compiled form for the whole process: the rows' tensors reach it as inputs."""
    return torch.compile(function)


@functools.cache
def _visible(device: torch.device) -> Tensor:
    """`ALLOW` as [rule][part of the query] -> bits, copied once: each copy waits for the device."""
    bits = (ALLOW << np.arange(ALLOW.shape[-1])).sum(axis=-1, dtype=np.int32)
    return torch.from_numpy(bits).to(device)
