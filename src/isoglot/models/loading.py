"""Load a model and its tokenizer from a folder or the Hugging Face hub, or configure a new model.

`load_masked_lm` gives a transformers model for packed rows: float32 weights, attention dropout off
and `PACKED_ATTENTION`; `load_base_model` gives the encoder alone, with its own attention. Only
safetensors are read, and no code that comes with a model is run.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from transformers import (
    MODEL_FOR_MASKED_LM_MAPPING,
    AlbertConfig,
    AutoConfig,
    AutoModel,
    AutoModelForMaskedLM,
    AutoTokenizer,
    BertConfig,
    EuroBertConfig,
    ModernBertConfig,
    XLMRobertaConfig,
    XLMRobertaXLConfig,
)

from isoglot.errors import ModelError, library_errors
from isoglot.folders import TOKENIZER_FILES, model_folder
from isoglot.models.attention import PACKED_ATTENTION
from isoglot.models.config import SHAPES, ModelSize, Shape
from isoglot.models.finite import check_tensors, check_weights
from isoglot.models.model_files import check_model_files, read_tensors
from isoglot.models.optimizations import configure_dropout
from isoglot.models.rotary import extend_context

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from isoglot.models.config import ModelConfig

SUPPORTED_MODELS = (
    "Start from an XLM-R, RoBERTa, BERT, ALBERT, ELECTRA, ModernBERT or EuroBERT model."
)
_DISENTANGLED = ("deberta", "deberta-v2")


class PackingError(ModelError):
    """A model that loads, but whose architecture cannot run packed rows."""


class LoadedMaskedLM(NamedTuple):
    """A model for packed rows."""

    model: Any
    attention_dropout: dict[str, float]
    """The config's own values, which are 0 in the model."""
    missing: tuple[str, ...]
    """Weights of the LM head that the folder lacks, which are random."""
    pooler: dict[str, torch.Tensor]
    """Weights of a pooler, which the folder has and a masked language model does not."""


def load_masked_lm(
    folder_or_name: str, *, dropout: float | None, settings: ModelConfig | None = None
) -> LoadedMaskedLM:
    """Load a model that can run packed rows, with a dropout of hidden states; none: its own.

    With settings, its rotary positions are extended if these ask for it.
    """
    config = load_config(folder_or_name)
    _check_architecture(folder_or_name, config)
    if settings is not None:
        extend_context(config, settings, folder_or_name)
    attention_dropout = configure_dropout(config, hidden=dropout)
    model, missing = _from_pretrained(
        AutoModelForMaskedLM, folder_or_name, config=config, attn_implementation=PACKED_ATTENTION
    )
    if not model._supports_flex_attn:  # noqa: SLF001 (the one place where transformers says it)
        raise PackingError(
            f"{folder_or_name}, a {config.model_type} model, does not call transformers' attention "
            f"interface and would ignore the mask of packed rows. {SUPPORTED_MODELS}"
        )
    return LoadedMaskedLM(model, attention_dropout, missing, _read_pooler(folder_or_name, model))


def _read_pooler(name: str, model: Any) -> dict[str, torch.Tensor]:
    """The pooler's weights under the names that they have in a model with a head."""
    prefix = f"{model.base_model_prefix}."
    own = model.state_dict().keys()
    found = {
        key if key.startswith(prefix) else prefix + key: tensor.float()
        for key, tensor in read_tensors(model_folder(name), "pooler").items()
        if not key.startswith("classifier.")
    }
    check_tensors(found.items(), name)
    return {key: tensor for key, tensor in found.items() if key not in own}


def load_base_model(folder_or_name: str) -> Any:
    """The encoder without an LM head, as transformers runs it: one sequence a row."""
    config = load_config(folder_or_name)
    check_is_encoder(folder_or_name, config)
    return _from_pretrained(AutoModel, folder_or_name, config=config)[0]


def load_config(name: str) -> Any:
    """The config of a model whose weights are safetensors; no code of its folder is run."""
    folder = model_folder(name)
    check_model_files(folder)
    with library_errors(
        ModelError,
        f"{name} cannot be loaded",
        "Give a Hugging Face folder with a config.json, a model.safetensors and a tokenizer.",
    ):
        return AutoConfig.from_pretrained(str(folder), trust_remote_code=False)


def check_is_encoder(name: str, config: Any) -> None:
    """Refuse decoders and encoder-decoders: scoring and fine-tuning need an encoder.

    Raises:
        ModelError: the model reads text in one direction only, or generates it.
    """
    if config.is_encoder_decoder:
        raise ModelError(
            f"{name} is an encoder-decoder, and an encoder is needed here. To train it on, set "
            "model.decoder; to score it, use isoglot translate --reference."
        )
    if type(config) not in MODEL_FOR_MASKED_LM_MAPPING or getattr(config, "is_decoder", False):
        raise ModelError(
            f"{name} is a {config.model_type} model, not a masked language model: it reads text "
            f"in one direction only, or has no LM head. {SUPPORTED_MODELS}"
        )


def load_tokenizer(folder_or_name: str) -> Any:
    """The tokenizer of a model, which must have an embedding for each of its tokens."""
    config = load_config(folder_or_name)
    folder = model_folder(folder_or_name)
    # without any file, transformers makes a tokenizer of five special tokens: all text is <unk>
    if not any(any(folder.glob(name)) for name in TOKENIZER_FILES):
        raise ModelError(
            f"{folder} holds no tokenizer ({', '.join(TOKENIZER_FILES)}). Save the one that "
            "the model was trained with into it."
        )
    with library_errors(
        ModelError,
        f"The tokenizer of {folder_or_name} cannot be loaded",
        "Save it again with transformers' save_pretrained.",
    ):
        tokenizer = AutoTokenizer.from_pretrained(str(folder), trust_remote_code=False)
        tokenizer("a")  # a damaged tokenizer may load and fail at its first text
    if tokenizer.pad_token_id is None:
        raise ModelError(
            f"The tokenizer of {folder_or_name} has no padding token, which batches of texts need. "
            "Set its pad_token and save it again."
        )
    check_vocabulary_size(folder_or_name, config.vocab_size, len(tokenizer))
    return tokenizer


def check_vocabulary_size(name: str, of_model: int, of_tokenizer: int | None) -> None:
    """Refuse a model with fewer embeddings than its tokenizer has tokens; more are fine."""
    if of_tokenizer is not None and of_model < of_tokenizer:
        raise ModelError(
            f"{name} has {of_model} embeddings and the tokenizer {of_tokenizer} tokens. Use the "
            "model's own tokenizer (a corpus: prepare it with that), or transplant the model "
            "first. If tokens were added to its tokenizer, call "
            f"model.resize_token_embeddings({of_tokenizer}) and save the model again."
        )


_CONFIG_CLASSES: dict[ModelSize, Any] = {
    "mbert": BertConfig,
    "albert": AlbertConfig,
    "xl": XLMRobertaXLConfig,
    "xxl": XLMRobertaXLConfig,
}


_ROTARY_POSITIONS = 8192
"""Positions of new models that have no table of them: ModernBERT's."""


def scratch_config(
    settings: ModelConfig,
    *,
    vocabulary_size: int,
    pad: int,
    cls: int | None,
    sep: int | None,
    mask: int | None = None,
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
    common = {
        "vocab_size": vocabulary_size,
        "num_hidden_layers": shape.layers,
        "hidden_size": shape.hidden,
        "num_attention_heads": shape.heads,
        "intermediate_size": round(named.feed_forward * shape.hidden),
        "pad_token_id": pad,
        "bos_token_id": cls,
        "eos_token_id": sep,
    }
    positions = max(settings.max_positions, _ROTARY_POSITIONS)
    if settings.size.startswith("modern-"):
        return ModernBertConfig(
            **common, max_position_embeddings=positions, cls_token_id=cls, sep_token_id=sep
        )
    if settings.size.startswith("eurobert-"):
        # its config refuses to be without a mask token, which the model does not read
        mask = pad if mask is None else mask
        return EuroBertConfig(**common, max_position_embeddings=positions, mask_token_id=mask)
    is_bert = settings.size in {"mbert", "albert"}
    return _CONFIG_CLASSES.get(settings.size, XLMRobertaConfig)(
        **common,
        # XLM-R's positions start after the padding id
        max_position_embeddings=settings.max_positions + (0 if is_bert else pad + 1),
        type_vocab_size=2 if is_bert else 1,
        layer_norm_eps=1e-12 if is_bert else 1e-5,
    )


def _from_pretrained(auto: Any, name: str, **options: Any) -> tuple[Any, tuple[str, ...]]:
    """A model, and the weights outside its encoder that the folder lacks.

    Within `torch.device("meta")` no weights are read: the model has those of the config's shapes.
    """
    if torch.get_default_device().type == "meta":
        return auto.from_config(dtype=torch.float32, **options).eval(), ()
    model, missing, _ = load_weights(auto, name, "a masked language model", **options)
    return model, check_encoder_weights(name, model, missing)


class LoadedWeights(NamedTuple):
    """A model with float32 weights."""

    model: Any
    missing: set[str]
    """Weights that the folder lacks, which are random."""
    unused: set[str]
    """Weights of the folder that the model does not have."""


def load_weights(auto: Any, name: str, kind: str, **options: Any) -> LoadedWeights:
    """A model of a folder, whose weights are checked.

    transformers' own table of missing and unused weights is not shown: callers have their names.

    Raises:
        ModelError: the folder is damaged or holds another kind of model, or a weight is not finite.
    """
    failed = library_errors(
        ModelError, f"{name} cannot be loaded as {kind}", "Copy or export it again."
    )
    with failed, _quiet_transformers():
        model, found = auto.from_pretrained(
            str(model_folder(name)),
            dtype=torch.float32,
            use_safetensors=True,
            trust_remote_code=False,
            output_loading_info=True,
            **options,
        )
    check_weights(model, name)
    # with `ignore_mismatched_sizes`, a weight of another shape is new, too
    resized = (key for key, *_ in found["mismatched_keys"])
    return LoadedWeights(model, {*found["missing_keys"], *resized}, {*found["unexpected_keys"]})


@contextmanager
def _quiet_transformers() -> Iterator[None]:
    """Within: transformers logs errors alone."""
    from transformers.utils import logging

    before = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(before)


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
    check_is_encoder(name, config)
    if config.model_type in _DISENTANGLED:
        raise PackingError(
            f"{name} is a DeBERTa. Its disentangled attention bypasses the attention function and "
            f"the 4-D mask, so sequences packed into one row would see each other. "
            f"{SUPPORTED_MODELS}"
        )
