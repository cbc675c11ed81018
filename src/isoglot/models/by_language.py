"""What MASS's released decoder has and its paper does not: weights for each language.

Language embeddings on all of the decoder's tokens (the encoder has its own), and a projection for
each language at the end of cross-attention. transformers' classes have a place for neither: the
exported folder has the mean of the projections and no embeddings, and beside it a file with all of
them, from which Isoglot goes on and translates:

    by_language.safetensors
        embeddings                       (languages, D)
        LAYER.weight, LAYER.bias         (languages, D, D), (languages, D)
        metadata: languages              JSON list, the code of each row
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from typing_extensions import override

from isoglot.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

FILE = "by_language.safetensors"


class ByLanguage(nn.Module):
    """The parts of a decoder that depend on the language it speaks; often there are none."""

    def __init__(self, decoder: Any, languages: int, *, embeddings: bool, outputs: bool) -> None:
        super().__init__()
        self._spoken: Tensor | None = None
        self.embeddings: nn.Embedding | None = None
        if embeddings:
            self.embeddings = nn.Embedding(languages, decoder.config.hidden_size)
            nn.init.zeros_(self.embeddings.weight)
            decoder.roberta.embeddings.word_embeddings.register_forward_hook(self._add)
        self.outputs = nn.ModuleList()
        if outputs:
            for layer in decoder.roberta.encoder.layer:
                dense = layer.crossattention.output.dense
                own = _Projections(dense, languages)
                # the plain projection keeps its place in the folder, and is not trained
                dense.requires_grad_(requires_grad=False)
                dense.register_forward_hook(self._project(own))
                self.outputs.append(own)

    @contextmanager
    def speaking(self, languages: Tensor) -> Iterator[None]:
        """Within: the decoder's rows are in these languages (B,)."""
        self._spoken = languages
        try:
            yield
        finally:
            self._spoken = None

    def is_there(self) -> bool:
        """Does the decoder have any such part?"""
        return self.embeddings is not None or len(self.outputs) > 0

    def put_means(self, decoder: Any) -> None:
        """Give the plain projections the mean of the languages'."""
        with torch.no_grad():
            for layer, own in zip(decoder.roberta.encoder.layer, self.outputs, strict=False):
                assert isinstance(own, _Projections)
                layer.crossattention.output.dense.weight.copy_(own.weight.mean(dim=0))
                layer.crossattention.output.dense.bias.copy_(own.bias.mean(dim=0))

    def _add(self, _: nn.Module, inputs: Any, output: Tensor) -> Tensor | None:
        assert self.embeddings is not None
        if self._spoken is None:
            return None  # the encoder's turn, where both have the same words
        added: Tensor = self.embeddings(self._of_rows(inputs[0]))[:, None]
        return output + added

    def _project(self, own: _Projections) -> Any:
        def hook(_: nn.Module, inputs: Any, output: Tensor) -> Tensor:  # noqa: ARG001
            projected: Tensor = own(inputs[0], self._of_rows(inputs[0]))
            return projected

        return hook

    def _of_rows(self, rows: Tensor) -> Tensor:
        """The languages of some rows; in a beam search each has several beside each other."""
        assert self._spoken is not None, "the decoder must know what it speaks"
        return self._spoken.repeat_interleave(len(rows) // len(self._spoken))


class _Projections(nn.Module):
    """A linear layer for each language; all begin as one."""

    def __init__(self, dense: nn.Linear, languages: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(dense.weight.detach().repeat(languages, 1, 1))
        self.bias = nn.Parameter(dense.bias.detach().repeat(languages, 1))

    @override
    def forward(self, states: Tensor, languages: Tensor) -> Tensor:
        """(B, T, D) states, each row in its language."""
        return torch.baddbmm(
            self.bias[languages][:, None], states, self.weight[languages].transpose(1, 2)
        )


def save(folder: Path, parts: ByLanguage, codes: Sequence[str]) -> None:
    """Write them, with the codes of the languages."""
    tensors = {name: weight.detach().contiguous() for name, weight in _named(parts).items()}
    save_file(tensors, folder / FILE, metadata={"languages": json.dumps(list(codes))})


def load(folder: Path, parts: ByLanguage, codes: Sequence[str]) -> None:
    """Copy what a folder has, by language code; other languages stay as they are.

    Raises:
        ModelError: the folder's file is damaged, or belongs to another model.
    """
    file = folder / FILE
    if not parts.is_there() or not file.is_file():
        return
    try:
        with safe_open(file, framework="pt") as kept, torch.no_grad():
            known: list[str] = json.loads((kept.metadata() or {}).get("languages", "[]"))
            for name, weight in _named(parts).items():
                found = kept.get_tensor(name)
                for row, code in enumerate(codes):
                    if code in known:
                        weight[row] = found[known.index(code)]
    except (SafetensorError, RuntimeError) as error:
        raise ModelError(
            f"{file} does not fit the model ({error}). Export it again, or delete the file to "
            "begin with what is the same for all languages."
        ) from error


def _named(parts: ByLanguage) -> dict[str, Tensor]:
    found: dict[str, Tensor] = {}
    if parts.embeddings is not None:
        found["embeddings"] = parts.embeddings.weight
    for number, own in enumerate(parts.outputs):
        assert isinstance(own, _Projections)
        found |= {f"{number}.weight": own.weight, f"{number}.bias": own.bias}
    return found


def has_outputs(folder: Path) -> bool:
    """Does a folder's decoder have a projection for each language?"""
    file = folder / FILE
    if not file.is_file():
        return False
    with safe_open(file, framework="pt") as kept:
        return "0.weight" in kept.keys()  # noqa: SIM118 (no mapping)
