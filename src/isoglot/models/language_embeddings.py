"""The file of language embeddings in a model folder, since transformers has no place for them.

`export_encoder` writes it; `Encoder.from_pretrained` reads it, by language code:

    language_embeddings.safetensors
        weight                  (languages, D)
        metadata: languages     JSON list, the code of each row
        metadata: used_on       the tokens they were added to in training: all or slots
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from isoglot.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from torch import Tensor, nn

FILE = "language_embeddings.safetensors"


def save(folder: Path, table: nn.Embedding, codes: Sequence[str], *, used_on: str) -> None:
    """Write a table, the codes of its rows and the tokens that it was used on."""
    assert len(codes) == table.num_embeddings
    save_file(
        {"weight": table.weight.detach().contiguous()},
        folder / FILE,
        metadata={"languages": json.dumps(list(codes)), "used_on": used_on},
    )


def load(folder: Path, table: nn.Embedding, codes: Sequence[str]) -> None:
    """Copy the rows of the languages that a folder has; the others stay as they are.

    Raises:
        ModelError: the folder's file is damaged or belongs to another model.
    """
    file = folder / FILE
    if not file.is_file():
        return
    weight, metadata = _read(file)
    known: list[str] = json.loads(metadata.get("languages", "[]"))
    if weight.shape != (len(known), table.embedding_dim):
        raise ModelError(
            f"{file} has vectors of shape {tuple(weight.shape)} for {len(known)} languages and a "
            f"model of width {table.embedding_dim}. Export the model again, or delete the file to "
            "begin with new language embeddings."
        )
    rows = dict(zip(known, weight, strict=True))
    with torch.no_grad():
        for row, code in enumerate(codes):
            if code in rows:
                table.weight[row] = rows[code]


def used_on(folder: Path) -> str | None:
    """The tokens that had language embeddings in training; none for a folder without them."""
    file = folder / FILE
    return _read(file)[1].get("used_on") if file.is_file() else None


def _read(file: Path) -> tuple[Tensor, dict[str, str]]:
    try:
        with safe_open(file, framework="pt") as saved:
            return saved.get_tensor("weight"), saved.metadata() or {}
    except SafetensorError as error:
        raise ModelError(
            f"{file} cannot be read ({error}). Export the model again, or delete the file to begin "
            "with new language embeddings."
        ) from error
