"""Layers that replace those of a transformers model (see `optimizations`), for speed on a GPU.

`HashedDropout`: compiled by torch, dropout draws every element with Philox, about a hundred
operations for one bit: on an H200 a third of the time of the norms that it is fused with. A hash of
a dozen operations serves as well, and is fused into the same kernel. The seeds of all layers are
drawn before each forward pass, outside the compiled graph, from torch's generator: a run that
resumes from a checkpoint draws the same ones. (Inside the graph they would be drawn again for every
element.) A layer without seeds is torch's own dropout, which is faster where nothing is compiled.

`DeterministicEmbedding`: with deterministic algorithms, a compiled model sums the gradient of an
embedding table one token after the other for each id. That is slow where many tokens share an id:
all of them share XLM-R's one token type, and one of eight is the mask token. On an H200 it took
30 % of a step. Here the tokens of an id are summed in blocks of at most `BLOCK_SIZE`, then the
blocks, in a fixed order. Otherwise torch's kernels are fast, and are used.

`FusedQKVLinear`: queries, keys and values of an attention layer in one matrix product.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from typing_extensions import override

if TYPE_CHECKING:
    from collections.abc import Sequence

_MAX_SEED = 2**31 - 1
_MULTIPLIERS = (0x7FEB352D, 0x846CA68B - 2**32, 0x9E3779B1 - 2**32)
"""Of well-known 32-bit hashes: lowbias32's two, and the golden ratio's."""
_SEEDS_PER_LAYER = 4
"""Two seeds, and the two increments that are added to them for each further use in a pass."""


class HashedDropout(nn.Dropout):
    """`nn.Dropout`, with a hashed mask once it has seeds."""

    seeds: Tensor | None = None
    uses: int = 0
    """Calls in this pass: ALBERT's layers are one layer, and each call needs its own mask."""
    counts_uses: bool = True
    """False where a layer runs again in the backward pass, with the mask of its forward pass."""

    @override
    def forward(self, input: Tensor) -> Tensor:
        # training first: evaluation is then not compiled again once there are seeds
        if not self.training or self.seeds is None or not 0 < self.p < 1:
            return super().forward(input)
        seeds = self.seeds
        if self.counts_uses:
            if self.uses:
                seeds = seeds[:2] + self.uses * seeds[2:]
            self.uses += 1
        return hashed_dropout(input, self.p, seeds)


def use_hashed_dropout(model: nn.Module) -> int:
    """Replace all `nn.Dropout` layers of a model; gives how many hashed layers it has then."""
    for parent in model.modules():
        for name, child in parent.named_children():
            if type(child) is nn.Dropout:
                setattr(parent, name, HashedDropout(child.p).train(child.training))
    return len(hashed_dropouts(model))


def hashed_dropouts(model: nn.Module) -> tuple[HashedDropout, ...]:
    """The hashed dropout layers of a model."""
    return tuple(module for module in model.modules() if isinstance(module, HashedDropout))


def draw_seeds(layers: Sequence[HashedDropout], device: torch.device) -> None:
    """Give each layer the seeds of its next pass."""
    drawn = torch.randint(
        0, _MAX_SEED, (len(layers), _SEEDS_PER_LAYER), dtype=torch.int32, device=device
    )
    for layer, seeds in zip(layers, drawn.unbind(), strict=True):
        layer.seeds, layer.uses = seeds, 0


def hashed_dropout(input: Tensor, p: float, seeds: Tensor) -> Tensor:  # noqa: A002
    """Zero elements with probability `p` and scale the others by 1 / (1 - p)."""
    index = torch.arange(input.numel(), dtype=torch.int32, device=input.device).view(input.shape)
    uniform = _hash(index, seeds) & _MAX_SEED
    return torch.where(uniform >= round(p * 2**31), input * (1 / (1 - p)), 0.0)


def _hash(index: Tensor, seeds: Tensor) -> Tensor:
    """32 pseudo-random bits of each index; all arithmetic is of 32 bits and overflows.

    The second seed enters in the middle: with the first alone, masks would be permutations of each
    other.
    """
    mixed = (index ^ seeds[0]) * _MULTIPLIERS[0]
    mixed = (mixed ^ _shift_right(mixed, 16)) + seeds[1]
    mixed = mixed * _MULTIPLIERS[1]
    mixed = (mixed ^ _shift_right(mixed, 15)) * _MULTIPLIERS[2]
    return mixed ^ _shift_right(mixed, 16)


def _shift_right(bits: Tensor, number: int) -> Tensor:
    """A logical shift: torch's own shift of a negative number keeps its sign."""
    return torch.bitwise_and(bits >> number, 2 ** (32 - number) - 1)


BLOCK_SIZE = 128
"""Tokens that are summed one after the other, at most."""


class DeterministicEmbedding(nn.Embedding):
    """`nn.Embedding`, with another way to sum its gradient."""

    @override
    def forward(self, input: Tensor) -> Tensor:
        wanted = torch.compiler.is_compiling() and torch.are_deterministic_algorithms_enabled()
        if wanted and input.is_cuda:
            return deterministic_lookup(self.weight, input, self.padding_idx)
        return super().forward(input)


def use_deterministic_embeddings(model: nn.Module) -> int:
    """Change the class of all plain embedding tables of a model; gives how many it has then."""
    for module in model.modules():
        special = isinstance(module, nn.Embedding) and (
            module.max_norm is not None or module.sparse or module.scale_grad_by_freq
        )
        if type(module) is nn.Embedding and not special:
            # in place: heads and other layers hold the table itself, or its weights
            module.__class__ = DeterministicEmbedding
    return sum(isinstance(module, DeterministicEmbedding) for module in model.modules())


def deterministic_lookup(table: Tensor, ids: Tensor, padding_idx: int | None) -> Tensor:
    """Rows of a table (V, D) by ids of any shape; the row `padding_idx` gets no gradient."""
    found: Tensor = _Lookup.apply(table, ids, padding_idx)
    return found


class _Lookup(torch.autograd.Function):
    @staticmethod
    @override
    def forward(ctx: Any, table: Tensor, ids: Tensor, padding_idx: int | None) -> Tensor:
        ctx.save_for_backward(ids)
        ctx.number, ctx.padding_idx = len(table), padding_idx
        return F.embedding(ids, table)

    @staticmethod
    @override
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        (ids,), (slope,) = ctx.saved_tensors, grad_outputs
        gradient = sum_by_index(slope.reshape(-1, slope.shape[-1]), ids.flatten(), ctx.number)
        if ctx.padding_idx is not None:
            gradient[ctx.padding_idx] = 0
        return gradient, None, None


def sum_by_index(values: Tensor, ids: Tensor, number: int, block_size: int = BLOCK_SIZE) -> Tensor:
    """The sum (V, D) of all values (N, D) of each id, in the order of the values.

    Args:
        values: (N, D) what is summed, in float32 or better.
        ids: (N,) below V.
        number: V.
        block_size: values that are summed one after the other, at most.
    """
    wide = torch.promote_types(values.dtype, torch.float32)
    ids, order = ids.sort(stable=True)
    place = torch.arange(len(ids), device=ids.device)
    # a block begins with each id, and again after `block_size` places
    begins = (place % block_size == 0) | (ids != ids.roll(1))
    block = begins.cumsum(0) - 1
    max_blocks = min(number, len(ids)) + -(-len(ids) // block_size)
    # unused blocks are zero and belong to ids that all differ, so that no sum gets longer
    id_of_block = torch.arange(max_blocks, device=ids.device, dtype=ids.dtype) % number
    id_of_block = id_of_block.index_put((block,), ids)
    blocks = values.new_zeros((max_blocks, values.shape[1]), dtype=wide)
    blocks = blocks.index_put((block,), values[order].to(wide), accumulate=True)
    sums = values.new_zeros((number, values.shape[1]), dtype=wide)
    return sums.index_put((id_of_block,), blocks, accumulate=True).to(values.dtype)


def set_norm_dtype(model: nn.Module, *, only_on_gpu: bool = False) -> int:
    """Round the output of all norms to the autocast type, by a hook; gives how many there are."""
    norms = [module for module in model.modules() if type(module).__name__.endswith("Norm")]
    for norm in norms:
        norm.register_forward_hook(functools.partial(_round_output, only_on_gpu=only_on_gpu))
    return len(norms)


def _round_output(
    _module: nn.Module, _inputs: tuple[Tensor, ...], output: Tensor, *, only_on_gpu: bool
) -> Tensor:
    device = output.device.type
    if torch.is_autocast_enabled(device) and (output.is_cuda or not only_on_gpu):
        return output.to(torch.get_autocast_dtype(device))
    return output


_QKV_NAMES = (("query", "key", "value"), ("q_proj", "k_proj", "v_proj"))
"""transformers' names of the three layers. ModernBERT has one layer for all three already."""


def fuse_qkv(model: nn.Module, *, only_on_gpu: bool = False) -> int:
    """Compute queries, keys and values of each attention layer in one product; gives how many."""
    found = [
        [getattr(module, name) for name in names]
        for module in model.modules()
        for names in _QKV_NAMES
        if all(type(getattr(module, name, None)) is nn.Linear for name in names)
    ]
    found = [layers for layers in found if len({layer.bias is None for layer in layers}) == 1]
    for layers in found:
        group = _QKVGroup(layers, only_on_gpu=only_on_gpu)
        for index, layer in enumerate(layers):
            # in place: weights keep their names, and `print(model)` shows the class
            layer.__class__ = FusedQKVLinear
            layer.group, layer.index = group, index
    return len(found)


class FusedQKVLinear(nn.Linear):
    """One of the three projections of an attention layer."""

    group: _QKVGroup
    index: int

    @override
    def forward(self, input: Tensor) -> Tensor:
        return self.group.output(self.index, input)


class _QKVGroup:
    """Three layers with one input: the first computes all three outputs, the others fetch theirs.

    Layers whose inputs turn out to differ (cross-attention) compute their own.
    """

    def __init__(self, layers: list[nn.Linear], *, only_on_gpu: bool) -> None:
        self.layers, self.only_on_gpu = layers, only_on_gpu
        self.input: Tensor | None = None
        self.outputs: tuple[Tensor, ...] = ()

    def output(self, index: int, input: Tensor) -> Tensor:  # noqa: A002 (the name it has in torch)
        """The output of one of the layers."""
        if index == 0 and (input.is_cuda or not self.only_on_gpu):
            self.input, self.outputs = input, self._all_outputs(input)
        same, outputs = input is self.input, self.outputs
        if not same or index == len(self.layers) - 1:  # the last use: free the memory
            self.input, self.outputs = None, ()
        layer = self.layers[index]
        return outputs[index] if same else F.linear(input, layer.weight, layer.bias)

    def _all_outputs(self, input: Tensor) -> tuple[Tensor, ...]:  # noqa: A002
        weights: list[Tensor] = [layer.weight for layer in self.layers]
        biases: list[Tensor] = [layer.bias for layer in self.layers if layer.bias is not None]
        fused = F.linear(input, torch.cat(weights), torch.cat(biases) if biases else None)
        outputs: tuple[Tensor, ...] = fused.split(
            [layer.out_features for layer in self.layers], dim=-1
        )
        return outputs
