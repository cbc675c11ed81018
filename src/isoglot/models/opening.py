"""Open an encoder and its tokenizer from a folder or the hub.

`open_model` gives the transformers model for packed rows: float32 weights, attention dropout off
and `PACKED` attention; `open_plain` the encoder alone, with the attention of its own. Only
safetensors are read, and no code that comes with a model is run.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from transformers import AutoConfig, AutoModel, AutoModelForMaskedLM, AutoTokenizer

from isoglot.errors import ModelError
from isoglot.models.attention import PACKED
from isoglot.models.dropout import set_dropout

DISENTANGLED = ("deberta", "deberta-v2")
FITTING = "Start from an XLM-R, RoBERTa, BERT, ALBERT, ELECTRA, ModernBERT or EuroBERT model."
UNREADABLE = (OSError, ValueError, KeyError, RuntimeError, SafetensorError)
"""What transformers raises of folders that are damaged or hold something else."""
_TOKENIZERS = ("tokenizer.json", "vocab.*", "*.model")
"""Files that hold the words of a tokenizer, whichever kind it is."""


class PackingError(ModelError):
    """A model that opens, but whose architecture cannot run packed rows."""


def open_config(name: str) -> Any:
    """The config of a model whose weights can be read."""
    check_exists(name)
    folder = Path(name)
    if any(folder.glob("pytorch_model*.bin")) and not any(folder.glob("*.safetensors")):
        raise ModelError(
            f"{name} has its weights in a .bin file, which could run code; only safetensors are "
            "read. If you trust it, convert it once: AutoModelForMaskedLM.from_pretrained(FOLDER)"
            ".save_pretrained(FOLDER)."
        )
    try:
        return AutoConfig.from_pretrained(name, trust_remote_code=False)
    except (OSError, ValueError, KeyError) as error:
        raise ModelError(
            f"{name} cannot be opened: {error} Give a Hugging Face folder with a config.json, a "
            "model.safetensors and a tokenizer."
        ) from error


def open_model(folder_or_name: str, *, dropout: float | None) -> tuple[Any, dict[str, float]]:
    """The model, and the attention dropout that its config had.

    Raises:
        ModelError: no such model, or one that cannot run packed rows.
    """
    model, attention_dropout, _ = open_and_report(folder_or_name, dropout=dropout)
    return model, attention_dropout


def open_and_report(
    folder_or_name: str, *, dropout: float | None
) -> tuple[Any, dict[str, float], tuple[str, ...]]:
    """The same, and the weights of the LM head that the folder lacks: they are new and random."""
    config = open_config(folder_or_name)
    _check_architecture(folder_or_name, config)
    attention_dropout = set_dropout(config, hidden=dropout)
    model, missing = _from_pretrained(
        AutoModelForMaskedLM, folder_or_name, config=config, attn_implementation=PACKED
    )
    if not model._supports_flex_attn:  # noqa: SLF001 (the one place where transformers says it)
        raise PackingError(
            f"{folder_or_name}, a {config.model_type} model, computes attention by itself and "
            f"would not heed the mask of packed rows. {FITTING}"
        )
    return model, attention_dropout, missing


def open_plain(folder_or_name: str) -> Any:
    """The encoder alone, without an LM head and as transformers runs it, one sequence a row."""
    return _from_pretrained(AutoModel, folder_or_name, config=open_config(folder_or_name))[0]


def open_tokenizer(folder_or_name: str) -> Any:
    """The tokenizer of a model that has a vector for each of its words.

    Raises:
        ModelError: there is none, or it is larger than the model's vocabulary.
    """
    config = open_config(folder_or_name)
    folder = Path(folder_or_name)
    # transformers makes one of five special tokens where there is none, and all text is <unk>
    if folder.is_dir() and not any(any(folder.glob(name)) for name in _TOKENIZERS):
        raise ModelError(
            f"{folder} holds no tokenizer ({', '.join(_TOKENIZERS)}). Save the one that the model "
            "was trained with into it."
        )
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder_or_name, trust_remote_code=False)
    except (OSError, ValueError, KeyError) as error:
        raise ModelError(
            f"The tokenizer of {folder_or_name} cannot be opened: {error} Save it again with "
            "transformers' save_pretrained."
        ) from error
    check_vocabulary(folder_or_name, config.vocab_size, len(tokenizer))
    return tokenizer


def check_vocabulary(name: str, of_model: int, of_tokenizer: int | None) -> None:
    """Refuse a model without a vector for every word; more vectors than words are fine."""
    if of_tokenizer is not None and of_model < of_tokenizer:
        raise ModelError(
            f"{name} knows {of_model} words and the tokenizer makes {of_tokenizer}. Use the "
            "model's own tokenizer (a corpus: prepare it with that), or transplant the model first."
        )


def check_exists(folder_or_name: str) -> None:
    """A path that is not there is no hub name; ask the hub only for what could be one."""
    if Path(folder_or_name).is_dir():
        return
    if not re.fullmatch(r"[\w-][\w.-]*(/[\w-][\w.-]*)?", folder_or_name):
        raise ModelError(f"There is no model folder {folder_or_name}. Check model.start.")


def _from_pretrained(auto: Any, name: str, **options: Any) -> tuple[Any, tuple[str, ...]]:
    """A model with float32 weights, and the weights beside its encoder that the folder lacks."""
    try:
        model, found = auto.from_pretrained(
            name,
            dtype=torch.float32,
            use_safetensors=True,
            trust_remote_code=False,
            output_loading_info=True,
            **options,
        )
    except UNREADABLE as error:
        raise ModelError(f"{name} cannot be opened as a masked language model: {error}") from error
    encoder = "" if model.base_model is model else f"{model.base_model_prefix}."
    # nobody reads a pooler, and masked language models have none
    missing = sorted(key for key in found["missing_keys"] if "pooler" not in key)
    lost = [key for key in missing if key.startswith(encoder)]
    if lost:
        raise ModelError(
            f"{name} lacks weights of the encoder ({lost[0]} and {len(lost) - 1} more). Export "
            "the model again."
        )
    return model, tuple(missing)


def _check_architecture(name: str, config: Any) -> None:
    if config.model_type in DISENTANGLED:
        raise PackingError(
            f"{name} is a DeBERTa. Its disentangled attention bypasses the attention function and "
            f"the 4-D mask, so sequences packed into one row would see each other. {FITTING}"
        )
    if config.is_encoder_decoder:
        raise ModelError(
            f"{name} is an encoder-decoder, and an encoder is needed here. To train it on, set "
            "model.decoder; to score it, use isoglot translate --reference."
        )
