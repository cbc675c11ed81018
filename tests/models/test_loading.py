"""Models that load, and those that are refused with a reason."""

from __future__ import annotations

import pytest
from transformers import (
    AutoModelForMaskedLM,
    BartConfig,
    DebertaV2Config,
    DistilBertConfig,
    EuroBertConfig,
    MPNetConfig,
    XLMConfig,
)

from isoglot.errors import ModelError
from isoglot.models.config import ModelConfig
from isoglot.models.encoder import Encoder
from isoglot.models.loading import scratch_config
from isoglot.models.sharding import transformer_layers
from tests.models.tiny import (
    VOCABULARY,
    saved_model,
    tiny_model,
)

SMALL = {"vocab_size": 50, "max_position_embeddings": 40, "pad_token_id": 1}


def test_open_keeps_more_words_and_refuses_fewer(tmp_path):
    folder = saved_model(tmp_path, "bert")
    Encoder.from_pretrained(folder, vocabulary_size=VOCABULARY - 1)
    with pytest.raises(ModelError, match=f"{VOCABULARY} embeddings .* {VOCABULARY + 1}"):
        Encoder.from_pretrained(folder, vocabulary_size=VOCABULARY + 1)


def test_a_bare_encoder_gets_a_new_head_and_half_a_one_is_refused(tmp_path):
    base = tiny_model("xlm-r", attention="sdpa").base_model
    base.save_pretrained(tmp_path)
    Encoder.from_pretrained(str(tmp_path))
    base.encoder.layer = base.encoder.layer[:2]
    base.save_pretrained(tmp_path)
    base.config.num_hidden_layers = 3
    base.config.save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="lacks weights of the encoder"):
        Encoder.from_pretrained(str(tmp_path))


def test_missing_folder_is_named(tmp_path):
    with pytest.raises(ModelError, match=r"no folder .*nowhere.*Give a Hugging Face folder"):
        Encoder.from_pretrained(str(tmp_path / "nowhere"))


def test_folder_without_a_model_is_named(tmp_path):
    with pytest.raises(ModelError, match=f"{tmp_path} holds no model"):
        Encoder.from_pretrained(str(tmp_path))


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (
            MPNetConfig(hidden_size=24, num_hidden_layers=1, **SMALL),
            "does not call transformers' attention",
        ),
        (
            XLMConfig(emb_dim=16, n_layers=1, n_heads=2, **SMALL),
            "does not call transformers' attention",
        ),
        (BartConfig(d_model=16, encoder_layers=1, decoder_layers=1, **SMALL), "encoder-decoder"),
        (
            DistilBertConfig(dim=24, n_layers=1, hidden_dim=16, **SMALL),
            "LM head at target positions .* Start from an XLM-R, RoBERTa, BERT",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else value.model_type,
)
def test_architectures_that_cannot_are_refused(tmp_path, config, reason):
    AutoModelForMaskedLM.from_config(config).save_pretrained(tmp_path)
    with pytest.raises(ModelError, match=reason):
        Encoder.from_pretrained(str(tmp_path))


def test_deberta_is_refused_with_the_reason(tmp_path):
    DebertaV2Config(**SMALL).save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="disentangled attention"):
        Encoder.from_pretrained(str(tmp_path))


@pytest.mark.parametrize(
    ("size", "named"),
    [("modern-base", (22, 768, 12, 1152)), ("modern-large", (28, 1024, 16, 2624))],
)
def test_modern_sizes_are_those_of_modernbert(size, named):
    config = scratch_config(ModelConfig(size=size), vocabulary_size=50, pad=1, cls=0, sep=2)
    assert config.model_type == "modernbert"
    found = (config.num_hidden_layers, config.hidden_size, config.num_attention_heads)
    assert (*found, config.intermediate_size) == named
    assert config.max_position_embeddings == 8192
    windows = ["full_attention", "sliding_attention", "sliding_attention", "full_attention"]
    assert config.layer_types[:4] == windows
    assert (config.cls_token_id, config.sep_token_id, config.pad_token_id) == (0, 2, 1)


def test_eurobert_base_has_the_shape_of_the_model_of_210m_weights():
    config = scratch_config(
        ModelConfig(size="eurobert-base"), vocabulary_size=50, pad=1, cls=0, sep=2, mask=3
    )
    shape = EuroBertConfig().to_dict() | {"vocab_size": 50}
    special = {"bos_token_id": 0, "eos_token_id": 2, "pad_token_id": 1, "mask_token_id": 3}
    found = config.to_dict()
    assert {key for key in found if found[key] != (shape | special).get(key)} == set()


def test_a_model_without_dropout_takes_none_or_0():
    for dropout in (None, 0.0):
        settings = ModelConfig(size="eurobert-tiny", dropout=dropout)
        Encoder.from_scratch(settings, 50, 1, cls_id=0, sep_id=2, languages=())
    settings = ModelConfig(size="eurobert-tiny", dropout=0.1)
    with pytest.raises(ModelError, match=r"model\.dropout is 0\.1.*Set model\.dropout to null"):
        Encoder.from_scratch(settings, 50, 1, cls_id=0, sep_id=2, languages=())


@pytest.mark.parametrize("gated", ["modern-small", "eurobert-small"])
def test_gated_small_sizes_have_the_number_of_weights_of_small(gated):
    numbers = []
    for size in ("small", gated):
        settings = ModelConfig(size=size)
        encoder = Encoder.from_scratch(settings, 100, 1, cls_id=0, sep_id=2, languages=())
        layers = transformer_layers(encoder)
        numbers.append(sum(p.numel() for layer in layers for p in layer.parameters()))
    assert numbers[1] == pytest.approx(numbers[0], rel=0.005)  # without biases


def test_longer_rows_than_modernberts_are_possible():
    settings = ModelConfig(size="modern-tiny", max_positions=10_000)
    config = scratch_config(settings, vocabulary_size=50, pad=1, cls=0, sep=2)
    assert config.max_position_embeddings == 10_000
