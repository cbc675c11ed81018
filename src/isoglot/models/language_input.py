"""Language embeddings in a plain transformers model, such as one with the head of a task.

transformers' classes have no place for them, so `add_language_embeddings` registers a table in the
base model, which is trained and saved like any weight, and hooks: the model takes `language_ids`
(the row of each token's language, -1 for none) as an argument, and the table's rows are added to
the word embeddings, as in pre-training.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from isoglot.models import language_embeddings

if TYPE_CHECKING:
    from pathlib import Path

ARGUMENT = "language_ids"
"""The model's additional argument: as many integers as `input_ids`."""
NAME = "language_embeddings"
"""The table's name in the base model."""


def add_language_embeddings(model: Any, folder: Path) -> tuple[str, ...]:
    """Add a folder's language embeddings to a model of it; gives the code of each row, or none."""
    codes = language_embeddings.languages_of(folder)
    if not codes:
        return ()
    words = model.get_input_embeddings()
    table = nn.Embedding(len(codes), words.embedding_dim)
    language_embeddings.load(folder, table, codes)
    model.base_model.add_module(NAME, table)
    hooks = _Hooks(table)
    model.register_forward_pre_hook(hooks.take_languages, with_kwargs=True)
    model.register_forward_hook(hooks.forget_languages, always_call=True)
    words.register_forward_hook(hooks.add_languages)
    return codes


def split_language_embeddings(model: Any) -> tuple[dict[str, Tensor], nn.Embedding | None]:
    """The weights of a model without its language embeddings, and those, if it has any."""
    table = getattr(model.base_model, NAME, None)
    weights = {
        name: weight for name, weight in model.state_dict().items() if f".{NAME}." not in f".{name}"
    }
    return weights, table


class _Hooks:
    """The languages of a forward pass, between the model's call and its word embeddings."""

    def __init__(self, table: nn.Embedding) -> None:
        self._table, self._languages = table, None

    def take_languages(self, _: nn.Module, inputs: Any, named: dict[str, Any]) -> Any:
        self._languages = named.pop(ARGUMENT, None)
        return inputs, named

    def add_languages(self, _: nn.Module, inputs: Any, output: Tensor) -> Tensor | None:
        languages: Tensor | None = self._languages
        if languages is None:
            return None
        # the alternatives of a question are (batch, alternatives, length) before the model
        languages = languages.reshape(inputs[0].shape)
        known = (languages >= 0)[..., None]
        added: Tensor = self._table(languages.clamp(min=0)) * known
        return output + added

    def forget_languages(self, *_: Any) -> None:
        self._languages = None
