"""Attention inside packed rows: the mask rule, written once, for SDPA, FlexAttention and cuDNN.

    sees(q, k) = same_sequence(q, k) and (ALLOW[rule][role(q), role(k)] or q == k)

Reads `Rows`; gives transformers' encoders a mask: an additive (B, 1, L, L) tensor for SDPA and
cuDNN, or a `BlockMask` for FlexAttention. Both come from one function, so they cannot differ.
Padding sees only itself: no row of a softmax is empty. SDPA and cuDNN get no mask where every row
is one whole sequence: reading a mask takes a third of cuDNN's time.

Encoders with local layers (ModernBERT) take one mask for each layer type. Their window is measured
on `positions` between tokens of one role and is not applied between roles: a slot of a translation
has the position of its own sentence, which does not relate to positions in the other sentence.

`PACKED_ATTENTION` is the name of the attention function registered with transformers. It chooses
the kernel by the type of the mask, so that one model runs with each, on any device.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.flex_attention import BlockMask, flex_attention
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import sdpa_mask

from isoglot.types import ALLOW

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import nn

    from isoglot.types import Rows

Implementation = Literal["sdpa", "flex", "cudnn"]
Mask = Tensor | BlockMask
MaskFunction = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]

MAX_CUDNN_MASK_LENGTH = 512
"""The longest rows with a mask that `auto` gives to cuDNN: a mask grows with the length squared."""

FLEX_BLOCK_TOKENS = 128
"""FlexAttention's block. With shorter rows its backward pass gives NaN (H200, torch 2.11)."""

NO_MASK = torch.Size((1, 1, 1, 1))
"""The shape of a placeholder: transformers builds a mask of its own where it gets none."""

PACKED_ATTENTION = "packed_rows"
"""The name of `packed_attention` in transformers' attention interface."""

HALF_DTYPES = (torch.bfloat16, torch.float16)
_HOPPER = (9, 0)

LOCAL_LAYER = "sliding_attention"
"""transformers' name of the layer type with a window; all other types see the whole sequence."""


@torch.compiler.disable  # compiled separately, whatever the caller compiles
def build_masks(
    rows: Rows, config: Any, implementation: Implementation, dtype: torch.dtype
) -> Mask | dict[str, Mask]:
    """The mask of some rows, in the form that a model with this config takes.

    Args:
        rows: packed rows, on the device of the model.
        config: the transformers config; its `layer_types` says whether there are local layers.
        implementation: `sdpa` or `cudnn` for an additive tensor, `flex` for a block mask.
        dtype: type of the queries, for an additive tensor.

    Returns:
        One mask, or one for each layer type where some layers are local.
    """
    size = rows.ids.shape
    kinds = set(getattr(config, "layer_types", None) or ())
    if implementation != "flex" and rows.unmasked and LOCAL_LAYER not in kinds:
        return torch.zeros(NO_MASK, dtype=dtype, device=rows.ids.device)
    # rows for cuDNN have one shape, so that one compiled form serves
    additive = _compiled(_additive_mask) if implementation == "cudnn" else _additive_mask
    build = _block_mask if implementation == "flex" else functools.partial(additive, dtype=dtype)
    if LOCAL_LAYER not in kinds:
        return build(mask_function(rows), size, rows.ids.device)
    return {
        kind: build(
            mask_function(rows, window=config.sliding_window if kind == LOCAL_LAYER else None),
            size,
            rows.ids.device,
        )
        for kind in sorted(kinds)
    }


def mask_function(rows: Rows, *, window: int | None = None) -> MaskFunction:
    """`sees` for these rows, as a function of row, head (ignored), query and key.

    The indices may be numbers or tensors that broadcast. `window` is the largest distance, on
    `positions`, at which two tokens of one role see each other.
    """
    sequences, positions = rows.sequences.int(), rows.positions.int()
    # the roles that a query may see and the role of a key, as bits: a kernel then loads one number
    # for each query and key, instead of a table entry for each pair
    visible, role_bit = (
        _visible_roles(rows.ids.device)[rows.rules, rows.roles],
        1 << rows.roles.int(),
    )

    def sees(row: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:  # noqa: ARG001
        own = sequences[row, query]
        same_sequence = (own == sequences[row, key]) & (own >= 0)
        allowed = (visible[row, query] & role_bit[row, key]) != 0
        return (same_sequence & allowed) | (query == key)

    if window is None:
        return sees

    def sees_nearby(row: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        near = (positions[row, query] - positions[row, key]).abs() <= window
        return sees(row, head, query, key) & (near | (role_bit[row, query] != role_bit[row, key]))

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
    """Attention as transformers' encoders call it, with the kernel that fits the mask."""
    assert dropout == 0.0, "attention dropout is switched off when a model is loaded"
    grouped = query.shape[1] != key.shape[1]
    if isinstance(attention_mask, BlockMask):
        # eager FlexAttention materializes all scores; in a compiled model it is fused already
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
            kernel_options=_kernel_options(query),
        )
    else:
        if attention_mask is not None and attention_mask.shape == NO_MASK:
            attention_mask = None
        output = F.scaled_dot_product_attention(
            query, key, value, attn_mask=attention_mask, scale=scaling, enable_gqa=grouped
        )
    return output.transpose(1, 2).contiguous(), None


AttentionInterface.register(PACKED_ATTENTION, packed_attention)
AttentionMaskInterface.register(
    PACKED_ATTENTION, sdpa_mask
)  # for plain calls with a 2-D mask, or none


def fastest_implementation(rows: Rows, config: Any, dtype: torch.dtype) -> Implementation:
    """The fastest kernels for these rows on their device, measured on an H200 (docs/speed.md).

    cuDNN is not deterministic; FlexAttention skips blocks without visible pairs, and needs rows
    of at least one block.
    """
    if not rows.ids.is_cuda:
        return "sdpa"
    flex_or_sdpa: Implementation = "flex" if rows.ids.shape[1] >= FLEX_BLOCK_TOKENS else "sdpa"
    heads = config.num_attention_heads
    grouped = getattr(config, "num_key_value_heads", None) not in {None, heads}
    if (
        torch.are_deterministic_algorithms_enabled()
        or dtype not in HALF_DTYPES
        or _capability(rows.ids.device) < _HOPPER
        or grouped  # torch does not call cuDNN for grouped-query attention
    ):
        return flex_or_sdpa
    if rows.unmasked or rows.ids.shape[1] <= MAX_CUDNN_MASK_LENGTH:
        return "cudnn"
    return flex_or_sdpa


_active: ContextVar[Implementation | None] = ContextVar("attention kernels", default=None)


@contextmanager
def attention_kernels(implementation: Implementation) -> Iterator[None]:
    """Within: the kernels that SDPA may use; cuDNN's only where they are asked for.

    torch prefers cuDNN on a Hopper GPU, although it is not deterministic and builds a plan for
    every shape, which is slow where every batch has its own shape.
    """
    token = _active.set(implementation)
    try:
        with _allowed_kernels(implementation):
            yield
    finally:
        _active.reset(token)


def same_kernels() -> AbstractContextManager[None]:
    """The kernels of now, for a pass that runs later: a layer that is computed again."""
    implementation = _active.get()
    return nullcontext() if implementation is None else attention_kernels(implementation)


def _allowed_kernels(implementation: Implementation) -> AbstractContextManager[None]:
    if implementation == "flex" or not torch.cuda.is_available():
        return nullcontext()
    others = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
    if torch.are_deterministic_algorithms_enabled():
        others = [SDPBackend.MATH]
    first = [SDPBackend.CUDNN_ATTENTION] if implementation == "cudnn" else []
    chosen: AbstractContextManager[None] = sdpa_kernel([*first, *others], set_priority=True)
    return chosen


def _additive_mask(
    sees: MaskFunction, size: torch.Size, device: torch.device, *, dtype: torch.dtype
) -> Tensor:
    seen = _seen(sees, size, device)
    return torch.zeros(seen.shape, dtype=dtype, device=device).masked_fill_(
        ~seen, torch.finfo(dtype).min
    )


def _seen(sees: MaskFunction, size: torch.Size, device: torch.device) -> Tensor:
    """(B, 1, L, L) bool: which key each query sees."""
    num_rows, length = size
    row = torch.arange(num_rows, device=device)[:, None, None, None]
    token = torch.arange(length, device=device)
    return sees(row, row, token[:, None], token)


def _block_mask(sees: MaskFunction, size: torch.Size, device: torch.device) -> BlockMask:
    """As torch's `create_block_mask`, which finds the blocks of a key from those of the queries.

    That takes an `index_put_` for each kind of block, which is slow with deterministic algorithms:
    0.6 ms of the host each in a profile of ModernBERT (H200).
    """
    find = _compiled(_visible_blocks) if device.type == "cuda" else _visible_blocks
    by_query, full_by_query, by_key, full_by_key = find(sees, size, device)
    return BlockMask(
        seq_lengths=(size[1], size[1]),
        kv_num_blocks=by_query[0],
        kv_indices=by_query[1],
        full_kv_num_blocks=full_by_query[0],
        full_kv_indices=full_by_query[1],
        q_num_blocks=by_key[0],
        q_indices=by_key[1],
        full_q_num_blocks=full_by_key[0],
        full_q_indices=full_by_key[1],
        BLOCK_SIZE=(FLEX_BLOCK_TOKENS, FLEX_BLOCK_TOKENS),
        mask_mod=sees,
    )


def _visible_blocks(
    sees: MaskFunction, size: torch.Size, device: torch.device
) -> tuple[tuple[Tensor, Tensor], ...]:
    """Blocks with some and with only visible pairs: by query block, then by key block."""
    missing = -size[1] % FLEX_BLOCK_TOKENS
    seen = F.pad(_seen(sees, size, device), (0, missing, 0, missing))
    blocks = seen.unflatten(3, (-1, FLEX_BLOCK_TOKENS)).unflatten(2, (-1, FLEX_BLOCK_TOKENS))
    number = blocks.sum(dim=(3, 5))
    full = number == FLEX_BLOCK_TOKENS**2
    some = (number > 0) & ~full
    return tuple(_ordered(kind) for kind in (some, full, some.mT, full.mT))


def _ordered(blocks: Tensor) -> tuple[Tensor, Tensor]:
    """(..., n, m) bool -> how many of each row are true, and all indices, the true ones first."""
    order = blocks.int().argsort(dim=-1, descending=True, stable=True)
    return blocks.sum(dim=-1, dtype=torch.int32).contiguous(), order.int().contiguous()


def _kernel_options(query: Tensor) -> dict[str, int] | None:
    """Block sizes of FlexAttention's forward kernel: twice as fast on Hopper as the defaults."""
    narrow = query.shape[-1] <= 64 and query.dtype in HALF_DTYPES
    if not (query.is_cuda and narrow and _capability(query.device) == _HOPPER):
        return None
    return {"fwd_BLOCK_M": 128, "fwd_BLOCK_N": 128, "fwd_num_warps": 8, "fwd_num_stages": 2}


def _capability(device: torch.device) -> tuple[int, int]:
    # not cached: the compiler warns of caches, and torch has one
    return torch.cuda.get_device_capability(device)


@functools.cache
def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """One compiled form for the whole process; the tensors of the rows are its inputs."""
    return torch.compile(function)


@functools.cache
def _visible_roles(device: torch.device) -> Tensor:
    """`ALLOW` as [rule][role of the query] -> bits; cached: each copy waits for the device."""
    bits = (ALLOW << np.arange(ALLOW.shape[-1])).sum(axis=-1, dtype=np.int32)
    return torch.from_numpy(bits).to(device)
