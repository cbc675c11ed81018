"""The model of a recipe on fake tensors: its shape without memory and without its weights.

A model of the hub is known by its config.json alone, which is all that is downloaded.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from isoglot.errors import ModelError, library_errors
from isoglot.folders import find_model
from isoglot.models.config import SHAPES
from isoglot.models.encoder import Encoder
from isoglot.models.loading import scratch_config
from isoglot.models.seq2seq import Seq2Seq
from isoglot.pretraining.train_module import Seq2SeqTrainModule, TrainModule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isoglot.corpus import Corpus
    from isoglot.models.config import ModelConfig
    from isoglot.objectives.base import Objective


def model_config(settings: ModelConfig, corpus: Corpus, *, transplanted: bool) -> Any:
    """The transformers config of the encoder that a run trains.

    Raises:
        ModelError: there is no such model.
    """
    vocabulary = corpus.vocabulary
    if settings.init_from is None:
        return scratch_config(
            settings,
            vocabulary_size=vocabulary.size,
            pad=vocabulary.pad,
            cls=vocabulary.cls,
            sep=vocabulary.sep,
            mask=vocabulary.mask,
        )
    from transformers import AutoConfig

    folder = find_model(settings.init_from)
    with library_errors(
        ModelError,
        f"The config.json of {settings.init_from} cannot be loaded",
        "Give a Hugging Face folder, a run (runs/NAME) or a name on the Hugging Face hub.",
    ):
        config = AutoConfig.from_pretrained(
            settings.init_from if folder is None else str(folder), trust_remote_code=False
        )
    config = config.encoder if config.is_encoder_decoder else config
    if transplanted:
        config.vocab_size = vocabulary.size
    return config


def with_layers(config: Any, number: int) -> Any:
    """The same config with another number of layers."""
    config = copy.deepcopy(config)
    config.num_hidden_layers = number
    if getattr(config, "layer_types", None):
        config.layer_types = config.layer_types[:number]
    return config


def build_encoder(config: Any, settings: ModelConfig, corpus: Corpus) -> Encoder:
    """The encoder of a config; made within `fake_tensors`, it takes no memory."""
    return Encoder.from_config(copy.deepcopy(config), settings, languages=corpus.languages)


def build_module(
    config: Any, settings: ModelConfig, objectives: Mapping[str, Objective], corpus: Corpus
) -> TrainModule:
    """The whole module that a run trains, momentum encoders and queues included."""
    if settings.decoder is None:
        return TrainModule(build_encoder(config, settings, corpus), objectives, corpus)
    shape = replace(
        settings,
        init_from=None,
        size=settings.size or "base",
        num_layers=_encoder_layers(config, settings),
        hidden_size=config.hidden_size,
        num_heads=config.num_attention_heads,
    )
    seq2seq = Seq2Seq.build(shape, corpus.vocabulary, languages=corpus.languages)
    return Seq2SeqTrainModule(seq2seq, objectives, corpus)


def _encoder_layers(config: Any, settings: ModelConfig) -> int:
    """Layers of the encoder of an encoder-decoder: half of a size's, unless they are named."""
    if settings.size is not None and settings.num_layers is None:
        return SHAPES[settings.size].layers // 2
    return int(config.num_hidden_layers)
