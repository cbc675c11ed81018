"""Model folders in and out: opening a source, writing what became of it."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from isoglot.errors import ModelError
from isoglot.models import language_embeddings
from isoglot.models.config import ModelConfig
from isoglot.models.encoder import Encoder
from isoglot.models.export import export
from isoglot.models.opening import FITTING
from isoglot.models.transplant.tokens import Tokens

if TYPE_CHECKING:
    from pathlib import Path

    from isoglot.models.transplant.report import Report


def open_source(folder: Path) -> tuple[Encoder, Tokens]:
    """A model and its tokenizer.

    Raises:
        ModelError: no masked language model, or one with fewer vectors than its tokenizer's tokens.
        CorpusError: no tokenizer, or one without a special token that training needs.
    """
    if not (folder / "config.json").is_file():
        raise ModelError(f"{folder} holds no model. Name a Hugging Face model folder.")
    _refuse_other_kinds(folder)
    tokens = Tokens.open(folder)
    settings = ModelConfig(start=str(folder), languages="none")
    encoder = Encoder.open(str(folder), settings)
    if encoder.vocabulary_size < tokens.vocabulary.size:
        raise ModelError(
            f"{folder} has vectors for {encoder.vocabulary_size} tokens and a tokenizer of "
            f"{tokens.vocabulary.size}. Put the tokenizer that the model was trained with into "
            "the folder."
        )
    return encoder.eval(), tokens


def write_model(
    encoder: Encoder, out: Path, *, source: Path, tokenizer_folder: Path, card: str, report: Report
) -> None:
    """Write the new model, with its report and the source's language embeddings, if any."""
    export(encoder, out, tokenizer_folder=tokenizer_folder, card=card)
    report.write(out)
    languages = source / language_embeddings.FILE
    if languages.is_file():
        shutil.copyfile(languages, out / languages.name)


def _refuse_other_kinds(folder: Path) -> None:
    """A decoder has no masked-language-model form: say so, rather than list those that have."""
    from transformers import MODEL_FOR_MASKED_LM_MAPPING, AutoConfig

    try:
        config = AutoConfig.from_pretrained(
            str(folder), local_files_only=True, trust_remote_code=False
        )
    except (OSError, ValueError, KeyError) as error:
        raise ModelError(f"{folder}/config.json is not a model's config: {error}") from error
    if type(config) not in MODEL_FOR_MASKED_LM_MAPPING:
        raise ModelError(
            f"{folder} is a {config.model_type} model, not a masked language model: it reads text "
            f"in one direction only, or has no LM head. {FITTING}"
        )
