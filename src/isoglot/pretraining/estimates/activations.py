"""How many bytes the layers of a model keep for the backward pass, counted without memory.

    shape of a model --built on fake tensors--> one pass over fake rows --> tensors that are kept

A fake tensor has a shape, a type and a device, and no numbers. One pass with one layer and one with
two give the bytes of a layer and of the rest (embeddings). A compiled model is traced by torch's
own compiler, whose partitioner decides what is kept and what is computed again; nothing is
generated or run.
"""

from __future__ import annotations

import functools
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode

from isoglot.models.layers import draw_seeds
from isoglot.models.recompute import checkpoint_activations
from isoglot.pretraining.train_module import Seq2SeqTrainModule, visible_to_decoder
from isoglot.types import Rows, Seq2SeqBatch

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from isoglot.models.config import ModelConfig
    from isoglot.models.encoder import Encoder
    from isoglot.pretraining.train_module import TrainModule
    from isoglot.types import Batch

_PARTITIONED = "aot_eager_decomp_partition"
"""torch's compiler up to the partition into forward and backward, without its code generator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passes:
    """How passes run."""

    bf16: bool
    """Mixed precision?"""
    on_gpu: bool
    """As on a GPU: bf16 norms, hashed dropout, no additive mask."""
    compiled: bool
    recompute: bool
    """Activation checkpointing?"""
    bf16_weights: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptBytes:
    """Bytes that one micro-batch keeps."""

    rest: int
    """Embeddings, their norm, masks."""
    layer: int
    """Of one layer."""
    recomputed_layer: int
    """Of the one layer that is computed again, with activation checkpointing."""

    def all_layers(self, number: int) -> int:
        """Of a model with so many layers."""
        return self.rest + number * self.layer


def fake_tensors() -> AbstractContextManager[Any]:
    """Within: tensors that are made have no memory. All are of one mode and go together."""
    mode: AbstractContextManager[Any] = _mode()
    return mode


class _Mode(FakeTensorMode):
    """The mode of all fake tensors here; a copy of an encoder (for momentum) is of the same."""

    def __deepcopy__(self, _: dict[int, Any]) -> _Mode:
        return self


@functools.cache
def _mode() -> Any:
    return _Mode(allow_non_fake_inputs=True)


def traced_settings(settings: ModelConfig, passes: Passes) -> ModelConfig:
    """The settings of a model as they take effect on its device."""
    bf16_norms = passes.on_gpu and settings.norm_dtype == "auto"
    return replace(
        settings,
        attention="sdpa",
        norm_dtype="bf16" if bf16_norms else settings.norm_dtype,
        fuse_qkv=passes.on_gpu if settings.fuse_qkv is None else settings.fuse_qkv,
    )


def kept_bytes(
    build: Callable[[int], Encoder], num_rows: int, row_length: int, passes: Passes
) -> KeptBytes:
    """What a micro-batch of rows keeps in an encoder.

    Args:
        build: makes the encoder with so many layers, on fake tensors.
        num_rows: rows of the micro-batch.
        row_length: tokens of a row.
        passes: how the pass runs.
    """

    def count(layers: int, how: Passes) -> int:
        with fake_tensors():
            return _count(build(layers), num_rows, row_length, how)

    whole = replace(passes, recompute=False)
    one, two = count(1, whole), count(2, whole)
    found = KeptBytes(rest=2 * one - two, layer=two - one, recomputed_layer=0)
    if not passes.recompute:
        return found
    # what is kept is the input of each layer, compiled or not
    again = replace(passes, compiled=False)
    one, two = count(1, again), count(2, again)
    return KeptBytes(rest=2 * one - two, layer=two - one, recomputed_layer=found.layer)


def _count(encoder: Encoder, num_rows: int, row_length: int, passes: Passes) -> int:
    encoder.train()
    if passes.recompute:
        checkpoint_activations(encoder.model.base_model)
    if passes.bf16_weights:
        to_bf16(encoder.model)
    names = [name for name in Rows.__slots__ if name != "unmasked"]
    rows = Rows(**{name: torch.zeros(num_rows, row_length, dtype=torch.int64) for name in names})
    if passes.compiled:
        torch.compiler.reset()
        if passes.on_gpu:
            draw_seeds(encoder._dropouts, torch.device("cpu"))  # noqa: SLF001
        encoder.model.base_model.compile(backend=_PARTITIONED)
    found = saved_bytes(encoder, lambda: encoder(rows).hidden, passes)
    if passes.compiled:
        torch.compiler.reset()
    if passes.on_gpu:  # FlexAttention keeps blocks of the mask, of no size
        found -= num_rows * row_length**2 * (2 if passes.bf16 else 4)
    return found


def saved_bytes(module: nn.Module, run: Callable[[], Tensor], passes: Passes) -> int:
    """Bytes that a pass saves for the backward pass besides the weights of a module."""
    weights = {weight.untyped_storage()._cdata for weight in module.parameters()}  # noqa: SLF001
    kept: dict[int, Tensor] = {}

    def keep(tensor: Tensor) -> Tensor:
        memory = tensor.untyped_storage()._cdata  # noqa: SLF001
        if memory not in weights:
            kept[memory] = tensor  # held, so that no other tensor gets its memory
        return tensor

    precision = torch.autocast("cpu", torch.bfloat16) if passes.bf16 else nullcontext()
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor), precision:
        output = run()
    del output
    return sum(tensor.untyped_storage().nbytes() for tensor in kept.values())


def to_bf16(model: nn.Module) -> None:
    """Matrices in bf16: new weights, as fake ones cannot change their type."""
    made: dict[Tensor, nn.Parameter] = {}
    for module in model.modules():
        for name, weight in module._parameters.items():  # noqa: SLF001
            if weight is not None and weight.ndim >= 2:
                if weight not in made:
                    made[weight] = nn.Parameter(
                        weight.detach().to(torch.bfloat16), requires_grad=weight.requires_grad
                    )
                module._parameters[name] = made[weight]  # noqa: SLF001


def seq2seq_bytes(module: TrainModule, batch: Batch, passes: Passes) -> int:
    """What a batch of an encoder-decoder keeps, both halves together."""
    assert isinstance(module, Seq2SeqTrainModule)
    seq2seq: Any = module.seq2seq
    with fake_tensors():
        module.train()
        if passes.recompute:
            checkpoint_activations(module.encoder.model.base_model)
            checkpoint_activations(seq2seq.model.decoder)

        def run() -> Tensor:
            states: Tensor = module.encoder(batch.rows).hidden
            if not isinstance(batch, Seq2SeqBatch) or not len(batch.decoding.source_rows):
                return states
            decoded: Tensor = seq2seq.decode(batch.decoding, states, visible_to_decoder(batch))
            return decoded

        return saved_bytes(module, run, passes)
