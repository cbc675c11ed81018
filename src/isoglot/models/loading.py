"""Load a model and its tokenizer from a folder or the Hugging Face hub, or configure a new model.

`load_masked_lm` gives a transformers model for packed rows: float32 weights, attention dropout off
and `PACKED_ATTENTION`; `load_base_model` gives the encoder alone, with its own attention. Only
safetensors are read, and no code that comes with a model is run.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from safetensors import SafetensorError
from transformers import (
    AlbertConfig,
    AutoConfig,
    AutoModel,
    AutoModelForMaskedLM,
    AutoTokenizer,
    BertConfig,
    XLMRobertaConfig,
)

from isoglot.errors import ModelError
from isoglot.models.attention import PACKED_ATTENTION
from isoglot.models.config import SHAPES, ModelSize, Shape
from isoglot.models.optimizations import configure_dropout

if TYPE_CHECKING:
    from collections.abc import Iterable

    from isoglot.models.config import ModelConfig

SUPPORTED_MODELS = (
    "Start from an XLM-R, RoBERTa, BERT, ALBERT, ELECTRA, ModernBERT or EuroBERT model."
)
LOADING_ERRORS = (OSError, ValueError, KeyError, RuntimeError, SafetensorError)
"""What transformers raises for folders that are damaged or hold something else."""
_DISENTANGLED = ("deberta", "deberta-v2")
_TOKENIZER_PATTERNS = ("tokenizer.json", "vocab.*", "*.model")
"""Files that hold a tokenizer's vocabulary."""


class PackingError(ModelError):
    """A model that loads, but whose architecture cannot run packed rows."""


class LoadedMaskedLM(NamedTuple):
    """A model for packed rows."""

    model: Any
    attention_dropout: dict[str, float]
    """The config's own values, which are 0 in the model."""
    missing: tuple[str, ...]
    """Weights of the LM head that the folder lacks, which are random."""


def load_masked_lm(folder_or_name: str, *, dropout: float | None) -> LoadedMaskedLM:
    """Load a model that can run packed rows, with a dropout of hidden states; none: its own."""
    config = load_config(folder_or_name)
    _check_architecture(folder_or_name, config)
    attention_dropout = configure_dropout(config, hidden=dropout)
    model, missing = _from_pretrained(
        AutoModelForMaskedLM, folder_or_name, config=config, attn_implementation=PACKED_ATTENTION
    )
    if not model._supports_flex_attn:  # noqa: SLF001 (the one place where transformers says it)
        raise PackingError(
            f"{folder_or_name}, a {config.model_type} model, does not call transformers' attention "
            f"interface and would ignore the mask of packed rows. {SUPPORTED_MODELS}"
        )
    return LoadedMaskedLM(model, attention_dropout, missing)


def load_base_model(folder_or_name: str) -> Any:
    """The encoder without an LM head, as transformers runs it: one sequence a row."""
    return _from_pretrained(AutoModel, folder_or_name, config=load_config(folder_or_name))[0]


def load_config(name: str) -> Any:
    """The config of a model whose weights are safetensors."""
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
            f"{name} cannot be loaded: {error} Give a Hugging Face folder with a config.json, a "
            "model.safetensors and a tokenizer."
        ) from error


def load_tokenizer(folder_or_name: str) -> Any:
    """The tokenizer of a model, which must have an embedding for each of its tokens."""
    config = load_config(folder_or_name)
    folder = Path(folder_or_name)
    # without any file, transformers makes a tokenizer of five special tokens: all text is <unk>
    if folder.is_dir() and not any(any(folder.glob(name)) for name in _TOKENIZER_PATTERNS):
        raise ModelError(
            f"{folder} holds no tokenizer ({', '.join(_TOKENIZER_PATTERNS)}). Save the one that "
            "the model was trained with into it."
        )
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder_or_name, trust_remote_code=False)
    except (OSError, ValueError, KeyError) as error:
        raise ModelError(
            f"The tokenizer of {folder_or_name} cannot be loaded: {error} Save it again with "
            "transformers' save_pretrained."
        ) from error
    check_vocabulary_size(folder_or_name, config.vocab_size, len(tokenizer))
    return tokenizer


def check_vocabulary_size(name: str, of_model: int, of_tokenizer: int | None) -> None:
    """Refuse a model with fewer embeddings than its tokenizer has tokens; more are fine."""
    if of_tokenizer is not None and of_model < of_tokenizer:
        raise ModelError(
            f"{name} has {of_model} embeddings and the tokenizer {of_tokenizer} tokens. Use the "
            "model's own tokenizer (a corpus: prepare it with that), or transplant the model first."
        )


def check_exists(folder_or_name: str) -> None:
    """Refuse a path that does not exist, instead of asking the hub for it."""
    if Path(folder_or_name).is_dir():
        return
    if not re.fullmatch(r"[\w-][\w.-]*(/[\w-][\w.-]*)?", folder_or_name):
        raise ModelError(f"There is no model folder {folder_or_name}. Check model.init_from.")


def local_folder(folder_or_name: str) -> Path:
    """The folder of a model and its tokenizer: the one named, or the hub's cache of it."""
    if Path(folder_or_name).is_dir():
        return Path(folder_or_name)
    check_exists(folder_or_name)
    from transformers.utils import cached_file

    try:
        AutoTokenizer.from_pretrained(folder_or_name, trust_remote_code=False)
        load_masked_lm(folder_or_name, dropout=None)
        found = cached_file(folder_or_name, "config.json")
    except (OSError, ValueError) as error:
        reason = str(error).strip().split("\n")[0]
        raise ModelError(f"{folder_or_name} cannot be fetched from the hub: {reason}") from error
    assert found is not None
    return Path(found).parent


_CONFIG_CLASSES: dict[ModelSize, Any] = {"mbert": BertConfig, "albert": AlbertConfig}


def scratch_config(
    settings: ModelConfig, *, vocabulary_size: int, pad: int, cls: int | None, sep: int | None
) -> Any:
    """The transformers config of a new model of the size that the settings name."""
    if settings.size is None:
        raise ModelError("Training from scratch needs model.size: " + ", ".join(SHAPES) + ".")
    named = SHAPES[settings.size]
    shape = Shape(
        settings.num_layers or named.layers,
        settings.hidden_size or named.hidden,
        settings.num_heads or named.heads,
    )
    if shape.hidden % shape.heads:
        raise ModelError(
            f"model.hidden_size ({shape.hidden}) must be a multiple of model.num_heads "
            f"({shape.heads})."
        )
    is_bert = settings.size in _CONFIG_CLASSES
    return _CONFIG_CLASSES.get(settings.size, XLMRobertaConfig)(
        vocab_size=vocabulary_size,
        num_hidden_layers=shape.layers,
        hidden_size=shape.hidden,
        num_attention_heads=shape.heads,
        intermediate_size=4 * shape.hidden,
        # XLM-R's positions start after the padding id
        max_position_embeddings=settings.max_positions + (0 if is_bert else pad + 1),
        type_vocab_size=2 if is_bert else 1,
        layer_norm_eps=1e-12 if is_bert else 1e-5,
        pad_token_id=pad,
        bos_token_id=cls,
        eos_token_id=sep,
    )


def _from_pretrained(auto: Any, name: str, **options: Any) -> tuple[Any, tuple[str, ...]]:
    """A model, and the weights outside its encoder that the folder lacks."""
    model, missing = load_weights(auto, name, "a masked language model", **options)
    return model, check_encoder_weights(name, model, missing)


def load_weights(auto: Any, name: str, kind: str, **options: Any) -> tuple[Any, Iterable[str]]:
    """A model with float32 weights, and the names of the weights that its folder lacks."""
    try:
        model, found = auto.from_pretrained(
            name,
            dtype=torch.float32,
            use_safetensors=True,
            trust_remote_code=False,
            output_loading_info=True,
            **options,
        )
    except LOADING_ERRORS as error:
        raise ModelError(f"{name} cannot be loaded as {kind}: {error}") from error
    return model, found["missing_keys"]


def check_encoder_weights(name: str, model: Any, missing: Iterable[str]) -> tuple[str, ...]:
    """Refuse a folder that lacks weights of the encoder; gives the other missing weights."""
    encoder = "" if model.base_model is model else f"{model.base_model_prefix}."
    # a pooler is not used, and masked language models have none
    others = sorted(key for key in missing if "pooler" not in key)
    lost = [key for key in others if key.startswith(encoder)]
    if lost:
        raise ModelError(
            f"{name} lacks weights of the encoder ({lost[0]} and {len(lost) - 1} more). Export "
            "the model again."
        )
    return tuple(others)


def _check_architecture(name: str, config: Any) -> None:
    if config.model_type in _DISENTANGLED:
        raise PackingError(
            f"{name} is a DeBERTa. Its disentangled attention bypasses the attention function and "
            f"the 4-D mask, so sequences packed into one row would see each other. "
            f"{SUPPORTED_MODELS}"
        )
    if config.is_encoder_decoder:
        raise ModelError(
            f"{name} is an encoder-decoder, and an encoder is needed here. To train it on, set "
            "model.decoder; to score it, use isoglot translate --reference."
        )
