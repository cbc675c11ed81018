"""Context extension: angles by hand, states of transformers' own model, refusals, a longer run."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from rich.console import Console
from transformers import AutoConfig, AutoModelForMaskedLM, ModernBertConfig

from isoglot.batching.planner import BatchConfig
from isoglot.batching.streams import TextStream
from isoglot.errors import ModelError
from isoglot.models.config import ModelConfig
from isoglot.models.encoder import Encoder
from isoglot.pretraining.config import StageConfig
from isoglot.pretraining.run import pretrain
from isoglot.types import MaskRule
from tests.models.tiny import SHAPE, pack, random_tokens, saved_model, tiny_encoder
from tests.pretraining import driver

THETA = 640_000.0


def extended(folder: Any, architecture: str, **settings: Any) -> Encoder:
    told = {"rope_theta": THETA, "max_positions": 300, "language_embeddings": "none", **settings}
    source = saved_model(folder, architecture)
    return Encoder.from_pretrained(source, ModelConfig(init_from=source, **told)).eval()


def angles_by_hand(theta: float) -> list[float]:
    """Radians by which each pair of a head's dimensions turns from a position to the next."""
    size = SHAPE["hidden_size"] // SHAPE["num_attention_heads"]
    return [1 / theta ** (2 * pair / size) for pair in range(size // 2)]


@pytest.mark.parametrize("architecture", ["modernbert", "eurobert"])
def test_global_layers_turn_by_the_new_base(tmp_path: Any, architecture: str) -> None:
    encoder = extended(tmp_path, architecture)
    rotary = encoder.model.base_model.rotary_emb
    if architecture == "modernbert":
        assert rotary.full_attention_inv_freq.tolist() == pytest.approx(angles_by_hand(THETA))
        local = rotary.sliding_attention_inv_freq.tolist()
        assert local == pytest.approx(angles_by_hand(10_000.0)), "windows keep their base"
    else:
        assert rotary.inv_freq.tolist() == pytest.approx(angles_by_hand(THETA))
    assert encoder.max_positions == 300


@pytest.mark.parametrize("architecture", ["modernbert", "eurobert"])
def test_states_are_those_of_transformers_with_that_config(
    tmp_path: Any, architecture: str
) -> None:
    encoder = extended(tmp_path, architecture)
    config = AutoConfig.from_pretrained(tmp_path)
    by_kind = config.rope_parameters.get("full_attention", config.rope_parameters)
    by_kind["rope_theta"] = THETA
    plain = AutoModelForMaskedLM.from_pretrained(tmp_path, config=config).eval()
    # longer than the 72 positions that the model had
    tokens = random_tokens(np.random.default_rng(0), MaskRule.FULL, 200)
    encoder.check_length(200)
    with torch.no_grad():
        found = encoder(pack([[tokens]], 200)).hidden[0]
        expected = plain.base_model(input_ids=torch.tensor([tokens.ids])).last_hidden_state[0]
        before = tiny_encoder(architecture)(pack([[tokens]], 200)).hidden[0]
    assert torch.allclose(found, expected, atol=1e-5)
    assert not torch.allclose(found, before, atol=1e-2), "another base is another model"


def test_a_model_from_scratch_has_the_base_too() -> None:
    settings = ModelConfig(size="modern-tiny", rope_theta=20_000.0, language_embeddings="none")
    encoder = Encoder.from_scratch(settings, 50, 1, cls_id=0, sep_id=2)
    assert encoder.model.config.rope_parameters["full_attention"]["rope_theta"] == 20_000.0


def test_models_without_rotary_positions_are_refused(tmp_path: Any) -> None:
    with pytest.raises(ModelError, match=r"model\.rope_theta is for rotary positions"):
        extended(tmp_path, "xlm-r")


def test_scaled_positions_are_refused(tmp_path: Any) -> None:
    saved_model(tmp_path, "modernbert")
    file = tmp_path / "config.json"
    config = json.loads(file.read_text())
    config["rope_parameters"]["full_attention"] |= {"rope_type": "linear", "factor": 2.0}
    file.write_text(json.dumps(config))
    with pytest.raises(ModelError, match=r"scales its rotary positions \(linear\)"):
        Encoder.from_pretrained(str(tmp_path), ModelConfig(init_from=str(tmp_path), rope_theta=2e4))


def test_a_long_context_stage_continues_a_run(corpus: Any, tmp_path: Any) -> None:
    text = TextStream(objectives=("mlm",), across_documents=True)
    first = driver.config(
        model=ModelConfig(
            size="modern-tiny",
            num_layers=2,
            hidden_size=32,
            num_heads=2,
            language_embeddings="none",
        ),
        stages=(StageConfig(steps=2, streams={"text": text}),),
    )
    quiet = Console(quiet=True)
    pretrain(first, corpus, tmp_path / "short", console=quiet)
    file = tmp_path / "short/model/config.json"
    config = json.loads(file.read_text()) | {"max_position_embeddings": 96}
    file.write_text(json.dumps(config))
    model = ModelConfig(
        init_from=str(tmp_path / "short/model"), language_embeddings="none", max_positions=384
    )
    batch = BatchConfig(rows=2, micro_rows=1, row_length=384)
    longer = replace(first, model=model, batch=batch)
    with pytest.raises(ModelError, match=r"extend one with rotary positions \(model\.rope_theta\)"):
        pretrain(longer, corpus, tmp_path / "refused", console=quiet)
    extended_model = replace(longer, model=replace(model, rope_theta=THETA))
    assert extended_model.fingerprint() != longer.fingerprint()
    outcome = pretrain(extended_model, corpus, tmp_path / "long", console=quiet)
    assert outcome.model is not None
    found = ModernBertConfig.from_pretrained(outcome.model)
    assert found.max_position_embeddings == 384
    assert found.rope_parameters["full_attention"]["rope_theta"] == THETA
