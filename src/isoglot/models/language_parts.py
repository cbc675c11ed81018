"""Language-specific parts of a decoder, which MASS's code has and its paper does not mention.

Language embeddings on all of the decoder's tokens (the encoder has its own), and an output
projection of cross-attention for each language. transformers' classes have a place for neither: an
exported folder has the mean of the projections and no embeddings, and this file besides, which
`isoglot translate` and a run that starts from the folder read:

    language_parts.safetensors
        embeddings                       (languages, D)
        LAYER.weight, LAYER.bias         (languages, D, D), (languages, D)
        metadata: languages              JSON list, the code of each row
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from typing_extensions import override

from isoglot import json_text
from isoglot.errors import ModelError, library_errors
from isoglot.languages import find
from isoglot.models.finite import check_tensors

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

FILE = "language_parts.safetensors"
_FIX = (
    "Export it again, or delete the file to begin with parts that are the same for all languages."
)


class LanguageParts(nn.Module):
    """The language-specific parts of a decoder; by default there are none."""

    def __init__(self, decoder: Any, languages: int, *, embeddings: bool, outputs: bool) -> None:
        super().__init__()
        self._active: Tensor | None = None
        self.embeddings: nn.Embedding | None = None
        if embeddings:
            self.embeddings = nn.Embedding(languages, decoder.config.hidden_size)
            nn.init.zeros_(self.embeddings.weight)
            decoder.roberta.embeddings.word_embeddings.register_forward_hook(self._add_embedding)
        self.outputs = nn.ModuleList()
        if outputs:
            for layer in decoder.roberta.encoder.layer:
                dense = layer.crossattention.output.dense
                projections = _Projections(dense, languages)
                # the plain projection keeps its place in the folder, and is not trained
                dense.requires_grad_(requires_grad=False)
                dense.register_forward_hook(self._replace_output(projections))
                self.outputs.append(projections)

    @contextmanager
    def active(self, languages: Tensor) -> Iterator[None]:
        """Within: the decoder's rows are in these languages (B,)."""
        self._active = languages
        try:
            yield
        finally:
            self._active = None

    def exist(self) -> bool:
        """Does the decoder have any such part?"""
        return self.embeddings is not None or len(self.outputs) > 0

    def average_outputs(self, decoder: Any) -> None:
        """Set the plain projections to the mean over languages."""
        with torch.no_grad():
            for layer, projections in zip(
                decoder.roberta.encoder.layer, self.outputs, strict=False
            ):
                assert isinstance(projections, _Projections)
                layer.crossattention.output.dense.weight.copy_(projections.weight.mean(dim=0))
                layer.crossattention.output.dense.bias.copy_(projections.bias.mean(dim=0))

    def _add_embedding(self, _: nn.Module, inputs: Any, output: Tensor) -> Tensor | None:
        assert self.embeddings is not None
        if self._active is None:
            return None  # the encoder runs, with shared word embeddings
        added: Tensor = self.embeddings(self._row_languages(inputs[0]))[:, None]
        return output + added

    def _replace_output(self, projections: _Projections) -> Any:
        def hook(_: nn.Module, inputs: Any, output: Tensor) -> Tensor:  # noqa: ARG001
            projected: Tensor = projections(inputs[0], self._row_languages(inputs[0]))
            return projected

        return hook

    def _row_languages(self, rows: Tensor) -> Tensor:
        """The language of each row; beam search has several adjacent rows for each source."""
        assert self._active is not None, "the decoder runs within `active`"
        return self._active.repeat_interleave(len(rows) // len(self._active))


class _Projections(nn.Module):
    """A linear layer for each language; all begin as copies of one."""

    def __init__(self, dense: nn.Linear, languages: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(dense.weight.detach().repeat(languages, 1, 1))
        self.bias = nn.Parameter(dense.bias.detach().repeat(languages, 1))

    @override
    def forward(self, states: Tensor, languages: Tensor) -> Tensor:
        """Project states (B, T, D), each row with the layer of its language (B,)."""
        return torch.baddbmm(
            self.bias[languages][:, None], states, self.weight[languages].transpose(1, 2)
        )


def save(folder: Path, parts: LanguageParts, codes: Sequence[str]) -> None:
    """Write the parts, with the codes of the languages."""
    tensors = {name: weight.detach().contiguous() for name, weight in _named(parts).items()}
    save_file(tensors, folder / FILE, metadata={"languages": json.dumps(list(codes))})


def load(folder: Path, parts: LanguageParts, codes: Sequence[str]) -> None:
    """Copy a folder's parts by language code; other languages stay as they are."""
    file = _find(folder)
    if not parts.exist() or file is None:
        return
    with library_errors(ModelError, f"{file} does not fit the model", _FIX):
        with safe_open(file, framework="pt") as saved:
            known: list[str] = json_text.parse((saved.metadata() or {}).get("languages", "[]"))
            tensors = {name: saved.get_tensor(name) for name in _named(parts)}
        check_tensors(tensors.items(), str(file))
        with torch.no_grad():
            for name, weight in _named(parts).items():
                for row, code in enumerate(codes):
                    if (name_there := find(code, known)) is not None:
                        weight[row] = tensors[name][known.index(name_there)]


def has_outputs(folder: Path) -> bool:
    """Does a folder's decoder have an output projection for each language?"""
    file = _find(folder)
    if file is None:
        return False
    with (
        library_errors(ModelError, f"{file} cannot be read", _FIX),
        safe_open(file, framework="pt") as saved,
    ):
        return "0.weight" in saved.keys()  # noqa: SIM118 (no mapping)


def _find(folder: Path) -> Path | None:
    """The folder's file, if it has one; a file under the name of earlier versions is refused."""
    earlier = folder / "by_language.safetensors"
    if earlier.is_file():
        raise ModelError(f"{earlier} has the name of earlier versions. Rename it to {FILE}.")
    return folder / FILE if (folder / FILE).is_file() else None


def _named(parts: LanguageParts) -> dict[str, Tensor]:
    found: dict[str, Tensor] = {}
    if parts.embeddings is not None:
        found["embeddings"] = parts.embeddings.weight
    for number, projections in enumerate(parts.outputs):
        assert isinstance(projections, _Projections)
        found |= {f"{number}.weight": projections.weight, f"{number}.bias": projections.bias}
    return found
