"""Cards (README.md) of sentence-transformers and ONNX folders: those of the run or of the model.

A run's card has its data, recipe and held-out scores. Of any other model the languages and the
license are taken from its own card, and its name on the hub becomes the base model.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isoglot.models.model_card import ModelCard, front_matter, with_limitations
from isoglot.models.sentence_export import sentence_limitations

if TYPE_CHECKING:
    from isoglot.exporting.pooling import PoolingChoice

_SENTENCES = """```python
from sentence_transformers import SentenceTransformer

model = SentenceTransformer("path/to/this/folder")
vectors = model.encode(["A sentence.", "Another one."])
print(model.similarity(vectors, vectors))
```"""
_ONNX = """```python
import onnxruntime
from transformers import AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("path/to/this/folder")
session = onnxruntime.InferenceSession("path/to/this/folder/model.onnx")
batch = tokenizer(["A sentence.", "Another one."], padding=True, return_tensors="np")
inputs = {name: batch[name] for name in ("input_ids", "attention_mask")}
outputs = session.run(None, inputs)  # %s
```"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CardOrigin:
    """What a card is written from."""

    name: str
    """Of the model, as it was given."""
    model: Path
    """Its transformers folder."""
    of_run: ModelCard | None = None
    """The card of a run; none: the model is no run's."""

    def render(self, kind: str, example: str, vector: str | None) -> str:
        """The card without its section on sentence vectors."""
        if self.of_run is not None and kind == "sentence-similarity":
            return self.of_run.render("sentence-similarity", vector)
        if self.of_run is not None:
            return self.of_run.render().partition("```python")[0] + f"{example}\n"
        known = _metadata(self.model)
        languages = known.get("language") or ()
        header = front_matter(
            "sentence-similarity" if kind == "sentence-similarity" else "fill-mask",
            languages=[languages] if isinstance(languages, str) else map(str, languages),
            license_=known.get("license"),
            base_model=self.name,
        )
        return (
            "\n\n".join([header, f"# {self.name}", f"`{self.name}`, {kind} by Isoglot.", example])
            + "\n"
        )


def sentence_card(origin: CardOrigin, choice: PoolingChoice) -> str:
    """The card of a sentence-transformers folder."""
    text = origin.render("sentence-similarity", _SENTENCES, choice.describe())
    text = f"{text}\n{choice.card()}"
    return with_limitations(text, sentence_limitations(origin.model))


def onnx_card(origin: CardOrigin, choice: PoolingChoice | None) -> str:
    """The card of an ONNX folder."""
    outputs = "last_hidden_state" if choice is None else "last_hidden_state, sentence_embedding"
    text = origin.render("ONNX", _ONNX % outputs, None)
    text = text if choice is None else f"{text}\n{choice.card()}"
    return with_limitations(text, sentence_limitations(origin.model))


def _metadata(model: Path) -> dict[str, Any]:
    """The header of a model's own card; empty where it has none that can be read."""
    from huggingface_hub import metadata_load

    try:
        return metadata_load(model / "README.md") or {}
    except Exception:
        return {}
