"""How an encoder-decoder comes to be: made, around an encoder that was opened, or opened.

Each way gives the `Encoder` and the transformers `EncoderDecoderModel` that it is the encoder of.
The words of both are the vocabulary's, then one for each language.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    EncoderDecoderConfig,
    EncoderDecoderModel,
)

from isoglot.errors import ModelError
from isoglot.models import language_embeddings
from isoglot.models.attention import PACKED
from isoglot.models.dropout import set_dropout
from isoglot.models.encoder import Encoder
from isoglot.models.opening import UNREADABLE, open_config
from isoglot.models.scratch import SHAPES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isoglot.models.config import ModelConfig
    from isoglot.types import Vocabulary

_FAMILY = "xlm-roberta"


def is_seq2seq(folder_or_name: str) -> bool:
    """Is it an encoder-decoder?"""
    try:
        config = AutoConfig.from_pretrained(folder_or_name, trust_remote_code=False)
    except (OSError, ValueError):
        return False  # whoever opens it says why it cannot be opened
    return bool(config.is_encoder_decoder)


def made(settings: ModelConfig, vocabulary: Vocabulary, languages: Sequence[str]) -> Any:
    """Random weights; half of the layers of a size are the encoder's, half the decoder's."""
    assert settings.size is not None
    layers = settings.layers or SHAPES[settings.size].layers // 2
    encoder = Encoder.make(
        replace(settings, layers=layers),
        vocabulary.size + len(languages),
        vocabulary.pad,
        cls_id=vocabulary.cls,
        sep_id=vocabulary.sep,
        languages=languages,
    )
    return encoder, _with_decoder(encoder, settings)


def around(settings: ModelConfig, vocabulary: Vocabulary, languages: Sequence[str]) -> Any:
    """An encoder that was opened, and a decoder that is to begin as its copy."""
    assert settings.start is not None
    encoder = Encoder.open(
        settings.start, settings, vocabulary_size=vocabulary.size, languages=languages
    )
    # a language's token begins as the first token of any sequence
    _take_words(encoder.model, [*range(vocabulary.size), *[vocabulary.cls] * len(languages)])
    return encoder, _with_decoder(encoder, settings)


def opened(settings: ModelConfig, vocabulary: Vocabulary, languages: Sequence[str]) -> Any:
    """An encoder-decoder of a folder; its languages are taken over by code."""
    assert settings.start is not None
    config = open_config(settings.start)
    known = getattr(config, "language_token_ids", None)
    if config.encoder.model_type != _FAMILY or known is None:
        raise ModelError(
            f"{settings.start} is an encoder-decoder that Isoglot did not write: it has no tokens "
            "for languages. Start from a model that MASS trained, or from a masked language model."
        )
    for part in (config.encoder, config.decoder):
        dropouts = set_dropout(part, hidden=settings.dropout)
    found = _from_folder(settings.start, config)
    _check_tables(found, settings)
    view = AutoModelForMaskedLM.from_config(
        config.encoder, attn_implementation=PACKED, dtype=torch.float32
    )
    view.roberta.load_state_dict(found.encoder.state_dict(), strict=False)
    # where the halves have words of their own, the folder has no LM head of the encoder's
    own = {"decoder.weight": view.roberta.embeddings.word_embeddings.weight}
    view.lm_head.load_state_dict({**found.decoder.lm_head.state_dict(), **own})
    encoder = Encoder(view, settings, languages=languages, attention_dropout=dropouts)
    if encoder.languages is not None:
        language_embeddings.load(Path(settings.start), encoder.languages, languages)
    words = [*range(vocabulary.size), *(known.get(code, vocabulary.cls) for code in languages)]
    _take_words(view, words)
    model = _with_decoder(encoder, settings, layers=config.decoder.num_hidden_layers)
    _take_words(found.decoder, words)
    model.decoder.load_state_dict(found.decoder.state_dict())
    model.encoder.pooler.load_state_dict(found.encoder.pooler.state_dict())
    return encoder, model


def _from_folder(folder: str, config: Any) -> Any:
    """What transformers opens, with all of its weights."""
    try:
        model, said = EncoderDecoderModel.from_pretrained(
            folder,
            config=config,
            dtype=torch.float32,
            use_safetensors=True,
            output_loading_info=True,
        )
    except UNREADABLE as error:
        raise ModelError(f"{folder} cannot be opened as an encoder-decoder: {error}") from error
    if said["missing_keys"]:
        raise ModelError(
            f"{folder} lacks weights ({min(said['missing_keys'])} and perhaps more). Copy its "
            "model.safetensors again, or export it again."
        )
    return model


def _check_tables(found: Any, settings: ModelConfig) -> None:
    """Raises if two tables of words that differ were to become one."""
    assert settings.decoder is not None
    tables = [half.get_input_embeddings().weight for half in (found.encoder, found.decoder)]
    if settings.decoder.share_embeddings and not tables[0].equal(tables[1]):
        raise ModelError(
            f"{settings.start} has a table of words for each half: set "
            "model.decoder.share_embeddings to false."
        )


def _with_decoder(encoder: Encoder, settings: ModelConfig, layers: int | None = None) -> Any:
    """The transformers encoder-decoder around an encoder, with a new decoder."""
    assert settings.decoder is not None
    own = encoder.model.config
    if own.model_type != _FAMILY:
        raise ModelError(
            f"A decoder needs an encoder of XLM-R's classes, and this is a {own.model_type} model."
        )
    config = copy.deepcopy(own)
    config.is_decoder = config.add_cross_attention = True
    config.num_hidden_layers = settings.decoder.layers or layers or own.num_hidden_layers
    decoder = AutoModelForCausalLM.from_config(
        config, attn_implementation="sdpa", dtype=torch.float32
    )
    # as transformers opens the encoder of a folder: with a pooler, which nobody trains
    body = type(encoder.model.roberta)._from_config(  # noqa: SLF001
        own, attn_implementation=PACKED, dtype=torch.float32
    )
    body.load_state_dict(encoder.model.roberta.state_dict(), strict=False)
    words = encoder.model.roberta.embeddings.word_embeddings
    encoder.model.roberta = body
    body.embeddings.word_embeddings = words
    encoder.fit_body()
    if settings.decoder.share_embeddings:
        decoder.roberta.embeddings.word_embeddings = words
        decoder.lm_head = encoder.model.lm_head
    special = {name: getattr(own, name) for name in ("pad_token_id", "eos_token_id")}
    joined = EncoderDecoderConfig.from_encoder_decoder_configs(
        own,
        config,
        decoder_start_token_id=own.bos_token_id,
        vocab_size=own.vocab_size,
        tie_word_embeddings=False,
        **special,
    )
    return EncoderDecoderModel(encoder=body, decoder=decoder, config=joined)


def _take_words(model: Any, words: Sequence[int]) -> None:
    """Let a model know these of its words, in this order; some may be there twice."""
    table = model.get_input_embeddings().weight.detach().clone()
    bias = model.lm_head.bias.detach().clone()
    model.resize_token_embeddings(len(words), mean_resizing=False)
    with torch.no_grad():
        model.get_input_embeddings().weight.copy_(table[words])
        model.lm_head.bias.copy_(bias[words])
