"""An encoder as an ONNX folder: model.onnx, config, tokenizer and card.

    inputs    input_ids, attention_mask   (batch, sequence), int64
    outputs   last_hidden_state           (batch, sequence, width)
              sentence_embedding          (batch, width), where a pooling is given

The names are those of optimum's feature extraction. torch's own exporter writes it: optimum-onnx
0.1.0, the newest, needs transformers below 4.58. The file is run by onnxruntime and compared with
torch before the folder gets its name.
"""

from __future__ import annotations

import logging
import shutil
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from typing_extensions import override

from isoglot.atomic import replace_folder, write_errors
from isoglot.errors import ModelError, library_errors
from isoglot.models.encoder import position_range
from isoglot.models.export import TOKENIZER_FILES
from isoglot.models.sentence_export import load_sentence_encoder
from isoglot.models.truncate import truncate

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Literal

FILE = "model.onnx"
TOLERANCE = 1e-4
"""Largest difference from torch: absolute for values up to 1, relative above."""
_INPUTS, _STATES, _VECTORS = (
    ("input_ids", "attention_mask"),
    "last_hidden_state",
    "sentence_embedding",
)
_MAX_FILE_BYTES = 1_900_000_000
"""Larger weights are in a file of their own: protobuf ends at 2 GiB."""
_TRIED = ((1, 3), (4, 17), (2, 40))
"""Batch size and length of the inputs on which both are compared."""


class _OnnxEncoder(nn.Module):
    """Ids and mask to states, and with a pooling to vectors."""

    base: Any
    """transformers' encoder."""

    def __init__(self, base: nn.Module, pooling: Literal["mean", "cls"] | None) -> None:
        super().__init__()
        self.base, self.pooling = base, pooling

    @override
    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> tuple[Tensor, ...]:
        output = self.base(input_ids=input_ids, attention_mask=attention_mask)
        states: Tensor = output.last_hidden_state
        if self.pooling is None:
            return (states,)
        if self.pooling == "cls":
            return states, states[:, 0]
        weights = attention_mask[..., None].to(states.dtype)
        return states, (states * weights).sum(dim=1) / weights.sum(dim=1)


def check_onnx_installed() -> None:
    """Refuse, before any work, an export without the packages for it."""
    try:
        import onnx
        import onnxruntime
        import onnxscript
    except ImportError as error:
        raise ModelError(
            f"ONNX needs the package {error.name}. Install it: pip install 'isoglot[onnx]'."
        ) from error
    del onnx, onnxruntime, onnxscript


def export_onnx(
    model: Path,
    folder: Path,
    *,
    card: str,
    pooling: Literal["mean", "cls"] | None = None,
    num_layers: int | None = None,
) -> float:
    """Write the folder, replacing an earlier one; gives the largest difference from torch.

    Args:
        model: a plain Hugging Face folder of an encoder.
        folder: the ONNX folder.
        card: README.md.
        pooling: of a second output with sentence vectors; none: states only.
        num_layers: layers that are kept, from the first on; none: all.
    """
    check_onnx_installed()
    if folder.exists() and not (folder / FILE).is_file():
        raise ModelError(f"{folder} exists and holds no {FILE}. Name another folder to export to.")
    base = load_sentence_encoder(model)
    base = base if num_layers is None else truncate(base, num_layers)
    encoder = _OnnxEncoder(base, pooling).eval()
    with replace_folder(folder) as new:
        _write(encoder, new / FILE)
        difference = _compare(encoder, new / FILE)
        base.config.save_pretrained(new)
        for name in TOKENIZER_FILES:
            if (model / name).is_file():
                shutil.copyfile(model / name, new / name)
        (new / "README.md").write_text(card, encoding="utf-8")
    return difference


def _write(encoder: _OnnxEncoder, file: Path) -> None:
    ids, mask = _inputs(encoder, 2, 9)
    _, longest = position_range(encoder.base)
    shape = {0: torch.export.Dim("batch", min=1), 1: torch.export.Dim("sequence", max=longest)}
    size = sum(weight.nbytes for weight in encoder.parameters())
    names = [_STATES] if encoder.pooling is None else [_STATES, _VECTORS]
    kind = getattr(encoder.base.config, "model_type", "this")
    with (
        library_errors(
            ModelError,
            f"A {kind} model could not be converted to ONNX",
            "Export it as transformers or sentence-transformers.",
        ),
        write_errors(file),
        _quiet(),
    ):
        torch.onnx.export(
            encoder,
            (ids, mask),
            str(file),
            dynamo=True,
            input_names=list(_INPUTS),
            output_names=names,
            dynamic_shapes=dict.fromkeys(_INPUTS, shape),
            external_data=size > _MAX_FILE_BYTES,
            verbose=False,
        )


@torch.no_grad()
def _compare(encoder: _OnnxEncoder, file: Path) -> float:
    """The largest difference between onnxruntime and torch; too large a one is refused."""
    import onnxruntime

    session: Any = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    _, longest = position_range(encoder.base)
    largest = 0.0
    for size, length in _TRIED:
        ids, mask = _inputs(encoder, size, min(length, longest))
        found = session.run(None, {"input_ids": ids.numpy(), "attention_mask": mask.numpy()})
        real = mask.bool().numpy()
        for mine, expected in zip(found, encoder(ids, mask), strict=True):
            gap = np.abs(mine - expected.numpy()) / np.maximum(1, np.abs(expected.numpy()))
            gap = gap[real] if gap.ndim == 3 else gap  # states at padding are of no use
            largest = max(largest, float(gap.max()))
    if not largest <= TOLERANCE:
        raise ModelError(
            f"onnxruntime's outputs differ from torch's by {largest:.2g}, more than {TOLERANCE}: "
            "the ONNX folder was not written. Export as transformers or sentence-transformers."
        )
    return largest


def _inputs(encoder: _OnnxEncoder, size: int, length: int) -> tuple[Tensor, Tensor]:
    """Ids and a mask with padding in the last of several rows."""
    chance = torch.Generator().manual_seed(size * length)
    ids = torch.randint(0, encoder.base.config.vocab_size, (size, length), generator=chance)
    mask = torch.ones_like(ids)
    if size > 1:
        mask[-1, length // 2 :] = 0
    pad = encoder.base.config.pad_token_id or 0
    # RoBERTa counts positions by the ids that are no padding
    return torch.where((mask == 0) | (ids != pad), ids, (pad + 1) % 2).masked_fill(
        mask == 0, pad
    ), mask


@contextmanager
def _quiet() -> Iterator[None]:
    """Hide the exporter's notes on packages and operators that are not used."""
    log = logging.getLogger("torch.onnx")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(before)
