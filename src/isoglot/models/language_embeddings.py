"""The file of language embeddings in a model folder, since transformers has no place for them.

`export_encoder` writes it; `Encoder.from_pretrained` reads it, by language code:

    language_embeddings.safetensors
        weight                  (languages, D)
        metadata: isoglot       JSON: `languages`, the code of each row, and `used_on`, the tokens
                                that they were added to in training: `all` or `slots`

The metadata is one key, because safetensors writes several in a random order. config.json says the
same under `language_embeddings`, which transformers passes over.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file

from isoglot import json_text
from isoglot.errors import ModelError, library_errors
from isoglot.languages import canonical, find, plain_code
from isoglot.models.finite import check_tensors

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from torch import Tensor, nn

FILE = "language_embeddings.safetensors"
_METADATA = "isoglot"
_FIX = "Export the model again, or delete the file to begin with new language embeddings."


def save(folder: Path, table: nn.Embedding, codes: Sequence[str], *, used_on: str) -> None:
    """Write a table, the codes of its rows and the tokens that it was used on."""
    assert len(codes) == table.num_embeddings
    content = {"languages": list(codes), "used_on": used_on}
    save_file(
        {"weight": table.weight.detach().cpu().contiguous()},
        folder / FILE,
        metadata={_METADATA: json.dumps(content, ensure_ascii=False)},
    )


def load(folder: Path, table: nn.Embedding, codes: Sequence[str]) -> None:
    """Copy the rows of the languages that a folder has; the others stay as they are.

    Raises:
        ModelError: the folder's file is damaged or belongs to another model.
    """
    file = folder / FILE
    if not file.is_file():
        return
    weight, known, _ = _read(file)
    if weight.shape != (len(known), table.embedding_dim):
        raise ModelError(
            f"{file} has vectors of shape {tuple(weight.shape)} for {len(known)} languages and a "
            f"model of width {table.embedding_dim}. {_FIX}"
        )
    rows = dict(zip(known, weight, strict=True))
    with torch.no_grad():
        for row, code in enumerate(codes):
            if (known_as := find(code, known)) is not None:
                table.weight[row] = rows[known_as]


def used_on(folder: Path) -> str | None:
    """The tokens that had language embeddings in training; none for a folder without them."""
    return _read(folder / FILE)[2] if (folder / FILE).is_file() else None


def codes_of(folder: Path) -> tuple[str, ...]:
    """The code of each row; empty for a folder without language embeddings."""
    return tuple(_read(folder / FILE)[1]) if (folder / FILE).is_file() else ()


def languages_of(folder: Path) -> tuple[str, ...]:
    """The languages that texts of this folder's model need an embedding of; empty: none do."""
    return codes_of(folder) if used_on(folder) == "all" else ()


def mean_of(folder: Path) -> Tensor | None:
    """The mean of the rows, if the folder's model has one on all tokens."""
    return _read(folder / FILE)[0].mean(dim=0) if languages_of(folder) else None


def describe(config: Any, codes: Sequence[str], *, used_on: str | None) -> None:
    """Say in a transformers config which language embeddings its folder has; none: say nothing."""
    if used_on is None:
        config.__dict__.pop("language_embeddings", None)
    else:
        config.language_embeddings = {"file": FILE, "languages": list(codes), "used_on": used_on}


def row_of(code: str, codes: Sequence[str]) -> int:
    """The row of a language: that of its code, else of another spelling, else of its variant.

    -1: no row is of this language.
    """
    for reading in (str, canonical, plain_code):
        readings = [reading(one) for one in codes]
        if reading(code) in readings:
            return readings.index(reading(code))
    return -1


def _read(file: Path) -> tuple[Tensor, list[str], str | None]:
    """The table, the codes of its rows, and the tokens it was used on."""
    with library_errors(ModelError, f"{file} cannot be read", _FIX):
        with safe_open(file, framework="pt") as saved:
            weight, metadata = saved.get_tensor("weight"), saved.metadata() or {}
        if _METADATA in metadata:
            content = json_text.parse(metadata[_METADATA])
        else:  # earlier versions wrote two keys
            known = json_text.parse(metadata.get("languages", "[]"))
            content = {"languages": known, "used_on": metadata.get("used_on")}
        codes, tokens = [str(code) for code in content["languages"]], content.get("used_on")
    check_tensors([("weight", weight)], str(file))
    return weight, codes, tokens
