"""Folders that are opened for scoring alone: any encoder, with a head or without one."""

from __future__ import annotations

import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    AutoModel,
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    DebertaV2Config,
    DistilBertConfig,
    MPNetConfig,
    RemBertConfig,
    XLMConfig,
)

from isoglot.errors import ModelError
from isoglot.evaluation.embed import embed
from isoglot.evaluation.loading import load_for_scoring, scoring_note
from isoglot.evaluation.probing import predict_objects
from isoglot.finetuning.classification import SequenceClassificationHead
from isoglot.finetuning.settings import FinetuneConfig
from isoglot.models.config import ModelConfig
from isoglot.models.encoder import Encoder
from isoglot.models.export import export_encoder
from isoglot.tasks.examples import Fact
from tests.tiny_corpus import words

SENTENCES = [" ".join(words("aa")[start : start + number]) for start, number in ((0, 1), (3, 6))]
FACT = Fact(id="0", relation="r", group="g", prompt="ka [Y]", answers=("lo",))
SHAPE = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
SMALL = {**SHAPE, "intermediate_size": 24, "max_position_embeddings": 40}
CONFIGS = {
    "deberta-v2": lambda **ids: DebertaV2Config(
        **SMALL, **ids, relative_attention=True, pos_att_type=["p2c", "c2p"]
    ),
    "xlm": lambda **ids: XLMConfig(
        emb_dim=16, n_layers=2, n_heads=2, max_position_embeddings=40, **ids,
        pad_index=ids["pad_token_id"],
    ),
    "distilbert": lambda **ids: DistilBertConfig(
        dim=16, n_layers=2, n_heads=2, hidden_dim=24, max_position_embeddings=40, **ids
    ),
    "mpnet": lambda **ids: MPNetConfig(**SMALL, **ids),
    "rembert": lambda **ids: RemBertConfig(
        **SMALL, **ids, input_embedding_size=8, output_embedding_size=8
    ),
}  # fmt: skip


@pytest.fixture
def copied(folder, tmp_path):
    """A model folder to damage."""
    return shutil.copytree(folder, tmp_path / "copied")


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning")
@pytest.mark.parametrize("architecture", CONFIGS)
def test_what_cannot_be_packed_is_scored_as_it_is(architecture, corpus, tokenizer, tmp_path):
    config = CONFIGS[architecture](vocab_size=len(tokenizer), pad_token_id=tokenizer.pad_token_id)
    torch.manual_seed(0)
    AutoModelForMaskedLM.from_config(config).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    encoder, opened = load_for_scoring(tmp_path)
    found = embed(encoder, opened, [*SENTENCES, " ".join(words("aa"))])
    model = AutoModel.from_pretrained(tmp_path).eval()
    for number, sentence in enumerate(SENTENCES):
        ids = tokenizer(sentence, return_tensors="pt")["input_ids"]
        with torch.no_grad():
            layers = model(ids, output_hidden_states=True).hidden_states
        expected = torch.stack([layer[0].mean(dim=0) for layer in layers])
        torch.testing.assert_close(found[:, number], expected, atol=1e-5, rtol=1e-4)
    with pytest.raises(ModelError, match=f"a {architecture} model, cannot be probed"):
        predict_objects(encoder, opened, [FACT], max_masks=1)


def test_no_tokenizer_is_no_tokenizer_of_five_tokens(copied):
    for file in copied.glob("tokenizer*"):
        file.unlink()
    with pytest.raises(ModelError, match="copied holds no tokenizer"):
        load_for_scoring(copied)
    with pytest.raises(ModelError, match="copied holds no tokenizer"):
        SequenceClassificationHead(copied, FinetuneConfig(), ["x"])


def test_more_words_than_the_model_has_vectors(copied, tokenizer):
    tokenizer = type(tokenizer).from_pretrained(copied)
    tokenizer.add_tokens(["one", "more"])
    tokenizer.save_pretrained(copied)
    with pytest.raises(ModelError, match="embeddings and the tokenizer"):
        load_for_scoring(copied)
    with pytest.raises(ModelError, match="embeddings and the tokenizer"):
        SequenceClassificationHead(copied, FinetuneConfig(), ["x"])


@pytest.mark.parametrize("auto", [AutoModel, AutoModelForSequenceClassification])
def test_a_new_head_is_not_probed(auto, folder, copied):
    auto.from_pretrained(folder).save_pretrained(copied)
    encoder, tokenizer = load_for_scoring(copied)
    whole, _ = load_for_scoring(folder)
    assert torch.equal(embed(encoder, tokenizer, SENTENCES), embed(whole, tokenizer, SENTENCES))
    with pytest.raises(ModelError, match="probing needs a masked language model"):
        predict_objects(encoder, tokenizer, [FACT], max_masks=1)
    shutil.copytree(folder, copied / "encoder")
    encoder, _ = load_for_scoring(copied)
    with pytest.raises(ModelError, match=f"Give {copied / 'encoder'}, which has one"):
        predict_objects(encoder, tokenizer, [FACT], max_masks=1)
    assert predict_objects(*load_for_scoring(copied / "encoder"), [FACT], max_masks=1)[0].text


def test_half_an_encoder_is_refused(copied):
    weights = load_file(copied / "model.safetensors")
    some = {name: weight for name, weight in weights.items() if "layer.2.attention" not in name}
    save_file(some, copied / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match="lacks weights of the encoder"):
        load_for_scoring(copied)


def test_pickled_weights_are_refused_with_the_way_out(copied):
    torch.save(load_file(copied / "model.safetensors"), copied / "pytorch_model.bin")
    (copied / "model.safetensors").unlink()
    with pytest.raises(ModelError, match=r"convert it once: .*save_pretrained"):
        load_for_scoring(copied)
    with pytest.raises(ModelError, match="convert it once"):
        SequenceClassificationHead(copied, FinetuneConfig(), ["x"])


def test_nothing_is_compiled_for_the_shapes_of_sentences(folder):
    encoder, _ = load_for_scoring(folder)
    assert encoder.settings.attention == "sdpa"
    assert not encoder.training


@pytest.mark.parametrize("where", ["none", "all", "slots"])
def test_what_a_model_is_scored_without(corpus, tmp_path, where):
    settings = ModelConfig(
        size="tiny", num_layers=1, hidden_size=8, num_heads=1, language_embeddings=where
    )
    encoder = Encoder.build(settings, corpus.vocabulary, languages=corpus.languages)
    if encoder.languages is not None:
        torch.nn.init.ones_(encoder.languages.weight)
    export_encoder(encoder, tmp_path / "m", tokenizer_folder=corpus.tokenizer_folder, card="")
    note = scoring_note(tmp_path / "m")
    if where == "all":
        assert note is not None
        assert f"{tmp_path / 'm'} was trained with language embeddings on all tokens" in note
    else:
        assert note is None, "the plain model gives the outputs of training"
