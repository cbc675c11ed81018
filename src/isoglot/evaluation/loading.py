"""Loading a model folder for scoring, which requires less of the model than training does.

Scoring has one sequence per row, so an architecture that cannot separate packed sequences (DeBERTa,
XLM, DistilBERT, MPNet, RemBERT) runs as in transformers, with a padding mask, and a note says so.
Only probes use the LM head: a folder without one is refused when the head is called. Language
embeddings that the model was trained with on all tokens are added to each text of their language.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from typing_extensions import override

from isoglot.corpus.tokenization.pretokenization import FILE, Pretokenizer
from isoglot.errors import ModelError, library_errors
from isoglot.evaluation.embed import pad_rows
from isoglot.models import language_embeddings
from isoglot.models.attention import attention_kernels
from isoglot.models.config import ModelConfig
from isoglot.models.encoder import Encoder, States, position_range
from isoglot.models.lm_head import LMHead
from isoglot.models.loading import (
    PackingError,
    load_base_model,
    load_masked_lm,
    load_tokenizer,
)
from isoglot.models.packing_check import check_packing

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from isoglot.types import Rows

    Note = Callable[[str], None]


def load_for_scoring(
    folder: Path,
    *,
    language_embeddings: bool = True,
    note: Note | None = None,
    device: str | None = None,
) -> tuple[Encoder, Any]:
    """The encoder and the tokenizer of a model folder, on the GPU if there is one.

    Args:
        folder: a Hugging Face folder.
        language_embeddings: use those that the model was trained with on all tokens, if any.
        note: called with a sentence if the model runs without packed rows.
        device: torch's name; none: the GPU if there is one.
    """
    tokenizer = load_tokenizer(str(folder))
    encoder = load_encoder(folder, with_languages=language_embeddings, note=note)
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    return encoder.to(device).eval(), tokenizer


def load_encoder(folder: Path, *, with_languages: bool = True, note: Note | None = None) -> Encoder:
    """The encoder of a model folder, with packed rows if its architecture allows them."""
    name = str(folder)
    codes = language_embeddings.languages_of(folder) if with_languages else ()
    # FlexAttention would compile for every batch: each has another shape
    settings = ModelConfig(
        init_from=name, attention="sdpa", language_embeddings="all" if codes else "none"
    )
    try:
        model, _, missing, _ = load_masked_lm(name, dropout=None)
        encoder = Encoder(model, settings, languages=codes)
        check_packing(encoder, name)
    except PackingError as error:
        if note is not None:
            note(f"{error} It is scored as transformers runs it, one sentence a row.")
        return _plain_encoder(name)
    if encoder.languages is not None:
        language_embeddings.load(folder, encoder.languages, codes)
    if missing:
        encoder.lm_head = MissingLMHead(_why_no_head(folder))
    return encoder


def _plain_encoder(name: str) -> PlainEncoder:
    plain = PlainEncoder(load_base_model(name)).eval()
    with library_errors(ModelError, f"{name} cannot encode a sentence", "Copy the model again."):
        plain(pad_rows([[1, 2], [2]], 0))
    plain.lm_head = MissingLMHead(
        f"{name}, a {plain.model.config.model_type} model, cannot be probed: for architectures "
        "that cannot run packed rows only the encoder is loaded. Leave probes out."
    )
    return plain


class PlainEncoder(Encoder):
    """A transformers encoder without changes, for rows of one sequence each."""

    def __init__(self, model: Any) -> None:
        # not Encoder's own __init__, which replaces the attention of the model
        nn.Module.__init__(self)
        self.model = model
        self.languages, self.language_codes = None, ()
        self.first_position, self.max_positions = position_range(model)

    @override
    def forward(self, rows: Rows, *, layers: bool = False) -> States:
        with attention_kernels("sdpa"):
            output = self.model(
                input_ids=rows.ids,
                attention_mask=(rows.sequences >= 0).long(),
                output_hidden_states=layers,
            )
        return States(hidden=output.last_hidden_state, layers=output.hidden_states)


class MissingLMHead(LMHead):
    """Stands for an LM head that the model does not have; raises an error when called."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    @override
    def __call__(self, hidden: Tensor) -> Tensor:
        raise ModelError(self._reason)


def _why_no_head(folder: Path) -> str:
    encoder = folder / "encoder"
    if (encoder / "config.json").is_file():
        return f"{folder} is fine-tuned and has no LM head to probe. Give {encoder}, which has one."
    return f"{folder} has no LM head, and probing needs a masked language model. Leave probes out."


def scoring_note(folder: Path, *, with_languages: bool = True) -> str | None:
    """A note on language embeddings and pretokenization of this model, or none."""
    notes = []
    codes = language_embeddings.languages_of(folder)
    if codes and not with_languages:
        notes.append(
            f"{folder} was trained with language embeddings on all tokens, and runs without them."
        )
    elif codes:
        notes.append(
            f"{folder} runs with the language embeddings that it was trained with, for texts in "
            f"{', '.join(codes)}; texts in other languages get none."
        )
    if Pretokenizer.load(folder).methods:
        notes.append(
            f"{folder} was trained on pretokenized text, and texts of tasks are pretokenized by "
            "the rules of their language. Words that a task gives (tags, alignments), and "
            f"languages without a rule in {FILE}, are read as they are."
        )
    return " ".join(notes) or None
