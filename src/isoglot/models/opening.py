"""Open a masked language model from a folder or the hub, for packed rows.

Gives the transformers model with float32 weights, attention dropout off and `PACKED` attention.
Only safetensors are read, and no code that comes with a model is run.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForMaskedLM

from isoglot.errors import ModelError
from isoglot.models.attention import PACKED
from isoglot.models.dropout import set_dropout

DISENTANGLED = ("deberta", "deberta-v2")
FITTING = "Start from an XLM-R, RoBERTa, BERT, ALBERT, ELECTRA, ModernBERT or EuroBERT model."


def open_model(folder_or_name: str, *, dropout: float | None) -> tuple[Any, dict[str, float]]:
    """The model, and the attention dropout that its config had.

    Raises:
        ModelError: no such model, or one that cannot run packed rows.
    """
    check_exists(folder_or_name)
    try:
        config = AutoConfig.from_pretrained(folder_or_name, trust_remote_code=False)
        _check_architecture(folder_or_name, config)
        attention_dropout = set_dropout(config, hidden=dropout)
        model = AutoModelForMaskedLM.from_pretrained(
            folder_or_name,
            config=config,
            attn_implementation=PACKED,
            dtype=torch.float32,
            use_safetensors=True,
            trust_remote_code=False,
        )
    except ModelError:
        raise
    except (OSError, ValueError, KeyError) as error:
        raise ModelError(
            f"{folder_or_name} cannot be opened as a masked language model: {error}"
        ) from error
    if not model._supports_flex_attn:  # noqa: SLF001 (the one place where transformers says it)
        raise ModelError(
            f"{folder_or_name}, a {config.model_type} model, computes attention by itself and "
            f"would not heed the mask of packed rows. {FITTING}"
        )
    return model, attention_dropout


def check_vocabulary(name: str, of_model: int, of_tokenizer: int | None) -> None:
    """Refuse a model without a vector for every word; more vectors than words are fine."""
    if of_tokenizer is not None and of_model < of_tokenizer:
        raise ModelError(
            f"{name} knows {of_model} words and the tokenizer makes {of_tokenizer}. "
            "Prepare the corpus with the model's own tokenizer, or transplant the model first."
        )


def check_exists(folder_or_name: str) -> None:
    """A path that is not there is no hub name; ask the hub only for what could be one."""
    if Path(folder_or_name).is_dir():
        return
    if not re.fullmatch(r"[\w-][\w.-]*(/[\w-][\w.-]*)?", folder_or_name):
        raise ModelError(f"There is no model folder {folder_or_name}. Check model.start.")


def _check_architecture(name: str, config: Any) -> None:
    if config.model_type in DISENTANGLED:
        raise ModelError(
            f"{name} is a DeBERTa. Its disentangled attention bypasses the attention function and "
            f"the 4-D mask, so sequences packed into one row would see each other. {FITTING}"
        )
    if config.is_encoder_decoder:
        raise ModelError(
            f"{name} is an encoder-decoder, and an encoder is needed here. To train it on, set "
            "model.decoder; to score it, use isoglot translate --reference."
        )
