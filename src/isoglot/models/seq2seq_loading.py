"""Create or load an encoder-decoder: from scratch, from an encoder, or from an encoder-decoder.

Each function gives the `Encoder` and the transformers `EncoderDecoderModel` around it. Both have
embeddings for the tokens of the vocabulary, then one for each language.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from transformers import (
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    EncoderDecoderConfig,
    EncoderDecoderModel,
)

from isoglot.errors import ModelError
from isoglot.models import language_embeddings
from isoglot.models.attention import PACKED_ATTENTION
from isoglot.models.config import SHAPES
from isoglot.models.encoder import Encoder
from isoglot.models.loading import load_config, load_weights
from isoglot.models.optimizations import configure_dropout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isoglot.models.config import ModelConfig
    from isoglot.types import Vocabulary

_FAMILY = "xlm-roberta"


def is_seq2seq(folder_or_name: str) -> bool:
    """Is it an encoder-decoder?"""
    return bool(load_config(folder_or_name).is_encoder_decoder)


def from_scratch(settings: ModelConfig, vocabulary: Vocabulary, languages: Sequence[str]) -> Any:
    """Random weights; the encoder and the decoder have half of the layers of a size each."""
    assert settings.size is not None
    layers = settings.num_layers or SHAPES[settings.size].layers // 2
    encoder = Encoder.from_scratch(
        replace(settings, num_layers=layers),
        vocabulary.size + len(languages),
        vocabulary.pad,
        cls_id=vocabulary.cls,
        sep_id=vocabulary.sep,
        languages=languages,
    )
    return encoder, _add_decoder(encoder, settings)


def from_encoder(settings: ModelConfig, vocabulary: Vocabulary, languages: Sequence[str]) -> Any:
    """A pretrained encoder, and a new decoder, which `Seq2Seq.init_decoder` copies from it."""
    assert settings.init_from is not None
    encoder = Encoder.from_pretrained(
        settings.init_from, settings, vocabulary_size=vocabulary.size, languages=languages
    )
    # the token of a language begins as a copy of [CLS]
    _select_tokens(encoder.model, [*range(vocabulary.size), *[vocabulary.cls] * len(languages)])
    return encoder, _add_decoder(encoder, settings)


def from_seq2seq(settings: ModelConfig, vocabulary: Vocabulary, languages: Sequence[str]) -> Any:
    """An encoder-decoder folder; its language tokens are copied by language code."""
    assert settings.init_from is not None
    config = load_config(settings.init_from)
    known = getattr(config, "language_token_ids", None)
    if config.encoder.model_type != _FAMILY or known is None:
        raise ModelError(
            f"{settings.init_from} is an encoder-decoder that Isoglot did not write: it has no "
            "language tokens. Start from a model that MASS trained, or from a masked LM."
        )
    for half in (config.encoder, config.decoder):
        dropouts = configure_dropout(half, hidden=settings.dropout)
    found, missing, _ = load_weights(
        EncoderDecoderModel, settings.init_from, "an encoder-decoder", config=config
    )
    if missing:
        raise ModelError(
            f"{settings.init_from} lacks weights ({min(missing)} and perhaps more). Copy its "
            "model.safetensors again, or export it again."
        )
    _check_shared_embeddings(found, settings)
    view = AutoModelForMaskedLM.from_config(
        config.encoder, attn_implementation=PACKED_ATTENTION, dtype=torch.float32
    )
    view.roberta.load_state_dict(found.encoder.state_dict(), strict=False)
    # without shared embeddings, the folder has no LM head for the encoder
    own = {"decoder.weight": view.roberta.embeddings.word_embeddings.weight}
    view.lm_head.load_state_dict({**found.decoder.lm_head.state_dict(), **own})
    encoder = Encoder(view, settings, languages=languages, attention_dropout=dropouts)
    if encoder.languages is not None:
        language_embeddings.load(Path(settings.init_from), encoder.languages, languages)
    tokens = [*range(vocabulary.size), *(known.get(code, vocabulary.cls) for code in languages)]
    _select_tokens(view, tokens)
    model = _add_decoder(encoder, settings, num_layers=config.decoder.num_hidden_layers)
    _select_tokens(found.decoder, tokens)
    model.decoder.load_state_dict(found.decoder.state_dict())
    model.encoder.pooler.load_state_dict(found.encoder.pooler.state_dict())
    return encoder, model


def _check_shared_embeddings(found: Any, settings: ModelConfig) -> None:
    """Raise if the settings share embeddings that differ between the halves."""
    assert settings.decoder is not None
    tables = [half.get_input_embeddings().weight for half in (found.encoder, found.decoder)]
    if settings.decoder.share_embeddings and not tables[0].equal(tables[1]):
        raise ModelError(
            f"{settings.init_from} has embeddings for each half: set "
            "model.decoder.share_embeddings to false."
        )


def _add_decoder(encoder: Encoder, settings: ModelConfig, num_layers: int | None = None) -> Any:
    """The transformers encoder-decoder around an encoder, with a new decoder."""
    assert settings.decoder is not None
    own = encoder.model.config
    if own.model_type != _FAMILY:
        raise ModelError(
            f"A decoder needs an encoder of XLM-R's classes, and this is a {own.model_type} model."
        )
    config = copy.deepcopy(own)
    config.is_decoder = config.add_cross_attention = True
    config.num_hidden_layers = settings.decoder.num_layers or num_layers or own.num_hidden_layers
    decoder = AutoModelForCausalLM.from_config(
        config, attn_implementation="sdpa", dtype=torch.float32
    )
    # transformers loads the encoder of a folder with a pooler, which is not trained
    body = type(encoder.model.roberta)._from_config(  # noqa: SLF001
        own, attn_implementation=PACKED_ATTENTION, dtype=torch.float32
    )
    body.load_state_dict(encoder.model.roberta.state_dict(), strict=False)
    prefix = f"{encoder.model.base_model_prefix}."
    pooler = {name.removeprefix(prefix): weight for name, weight in encoder.pooler.items()}
    body.load_state_dict(pooler, strict=False)
    words = encoder.model.roberta.embeddings.word_embeddings
    encoder.model.roberta = body
    body.embeddings.word_embeddings = words
    encoder.optimize()
    if settings.decoder.share_embeddings:
        decoder.roberta.embeddings.word_embeddings = words
        decoder.lm_head = encoder.model.lm_head
    special = {name: getattr(own, name) for name in ("pad_token_id", "eos_token_id")}
    both = EncoderDecoderConfig.from_encoder_decoder_configs(
        own,
        config,
        decoder_start_token_id=own.bos_token_id,
        vocab_size=own.vocab_size,
        tie_word_embeddings=False,
        **special,
    )
    return EncoderDecoderModel(encoder=body, decoder=decoder, config=both)


def _select_tokens(model: Any, tokens: Sequence[int]) -> None:
    """Keep the embeddings of these tokens, in this order; a token may be there twice."""
    table = model.get_input_embeddings().weight.detach().clone()
    bias = model.lm_head.bias.detach().clone()
    model.resize_token_embeddings(len(tokens), mean_resizing=False)
    with torch.no_grad():
        model.get_input_embeddings().weight.copy_(table[tokens])
        model.lm_head.bias.copy_(bias[tokens])
