"""An exported encoder-decoder is a plain Hugging Face folder."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

from isoglot.errors import ModelError
from isoglot.models.config import DecoderConfig, GenerationConfig
from isoglot.models.language_parts import FILE
from isoglot.models.translator import Translator
from tests.models.tiny_seq2seq import (
    RELEASED,
    SETTINGS,
    TEXTS,
    build_seq2seq,
    example,
    export_to,
)


@pytest.mark.parametrize("share", [True, False])
def test_the_folder_is_plain_and_writes_the_same(corpus, tmp_path, share):
    found = build_seq2seq(corpus, replace(SETTINGS, decoder=DecoderConfig(share_embeddings=share)))
    assert export_to(found, tmp_path / "model", corpus) == []
    model, said = AutoModelForSeq2SeqLM.from_pretrained(
        tmp_path / "model", output_loading_info=True
    )
    assert not said["missing_keys"]
    assert not said["unexpected_keys"]
    for half in (model.config.encoder, model.config.decoder):
        assert half.attention_probs_dropout_prob == 0.1, "as it was before it was switched off"
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "model")
    inputs = tokenizer([f"<aa>{text}" for text in TEXTS], return_tensors="pt", padding=True)
    assert tokenizer.convert_ids_to_tokens(inputs.input_ids[1].tolist())[0] == "<aa>"
    ids = model.eval().generate(
        input_ids=inputs.input_ids,
        attention_mask=inputs.attention_mask,
        decoder_start_token_id=tokenizer.convert_tokens_to_ids("<bb>"),
        suppress_tokens=found.suppress_tokens,
        max_length=12,
    )
    plain = [text.strip() for text in tokenizer.batch_decode(ids, skip_special_tokens=True)]
    translator = Translator.open(tmp_path / "model", "cpu")
    settings = GenerationConfig(max_length_a=0, max_length_b=11)
    ours = dict(translator.translate(TEXTS, "aa", "bb", settings))
    assert [ours[number] for number in range(3)] == plain
    weights = translator.seq2seq.model.state_dict()
    assert all(weights[name].equal(weight) for name, weight in model.state_dict().items())


def test_the_released_variant_says_what_is_lost_and_keeps_it_beside(corpus, tmp_path):
    found = build_seq2seq(corpus, RELEASED)
    (loss,) = export_to(found, tmp_path / "model", corpus)
    assert "language embeddings" in loss
    assert "output projection of cross-attention for each language" in loss
    assert "language_embeddings.safetensors" in loss
    assert loss in (tmp_path / "model/README.md").read_text()
    translator = Translator.open(tmp_path / "model", "cpu")
    reads, _ = example(corpus)
    for method in ("greedy", "beam"):
        settings = GenerationConfig(method=method, num_beams=3)
        for language in (0, 1, 2):
            spoken = torch.tensor([language])
            with torch.no_grad():
                one, two = (
                    model.generate(reads, spoken, settings) for model in (found, translator.seq2seq)
                )
            assert one.ids.equal(two.ids)
    with torch.no_grad():
        a, b = (found.generate(reads, torch.tensor([n]), GenerationConfig()).ids for n in (0, 1))
    assert not a.equal(b)
    (tmp_path / "model" / FILE).rename(tmp_path / "model" / "by_language.safetensors")
    with pytest.raises(ModelError, match=f"earlier versions. Rename it to {FILE}"):
        Translator.open(tmp_path / "model", "cpu")
