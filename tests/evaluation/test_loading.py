"""Folders that are opened for scoring alone: any encoder, with a head or without one."""

from __future__ import annotations

import logging
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    DebertaV2Config,
    DistilBertConfig,
    GPT2Config,
    MPNetConfig,
    RemBertConfig,
    XLMConfig,
)

from isoglot.errors import ModelError
from isoglot.evaluation.embed import embed
from isoglot.evaluation.loading import load_for_scoring, scoring_note
from isoglot.evaluation.probing import predict_objects
from isoglot.evaluation.settings import FeatureConfig
from isoglot.evaluation.word_alignment import align_words
from isoglot.evaluation.word_vectors import word_vectors
from isoglot.finetuning.classification import SequenceClassificationHead
from isoglot.finetuning.settings import FinetuneConfig
from isoglot.models.config import ModelConfig
from isoglot.models.encoder import Encoder
from isoglot.models.export import export_encoder
from isoglot.models.transplant.run import transplant
from isoglot.tasks.examples import AlignedPair, Fact
from isoglot.types import Rows
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
def test_a_new_head_is_not_probed(auto, folder, copied, caplog, monkeypatch):
    auto.from_pretrained(folder).save_pretrained(copied)
    monkeypatch.setattr(logging.getLogger("transformers"), "propagate", True)
    caplog.clear()
    encoder, tokenizer = load_for_scoring(copied)
    assert "MISSING" not in caplog.text, "of a head that is not used"
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
    with pytest.raises(ModelError, match=r"convert it to safetensors once: .*save_pretrained"):
        load_for_scoring(copied)
    with pytest.raises(ModelError, match="convert it to safetensors once"):
        SequenceClassificationHead(copied, FinetuneConfig(), ["x"])


def test_nothing_is_compiled_for_the_shapes_of_sentences(folder):
    encoder, _ = load_for_scoring(folder)
    assert encoder.settings.attention == "sdpa"
    assert not encoder.training


def with_languages(corpus, folder, where, *, std=1.0):
    """An encoder with language embeddings that have moved away from zero, and its folder."""
    torch.manual_seed(1)
    settings = ModelConfig(
        size="tiny",
        num_layers=2,
        hidden_size=16,
        num_heads=1,
        max_positions=40,
        language_embeddings=where,
    )
    encoder = Encoder.build(settings, corpus.vocabulary, languages=corpus.languages).eval()
    if encoder.languages is not None:
        torch.nn.init.normal_(encoder.languages.weight, std=std)
    export_encoder(encoder, folder, tokenizer_folder=corpus.tokenizer_folder, card="")
    return encoder


@pytest.mark.parametrize("where", ["none", "all", "slots"])
def test_what_a_model_is_scored_with(corpus, tmp_path, where):
    with_languages(corpus, tmp_path / "m", where)
    note = scoring_note(tmp_path / "m")
    if where == "all":
        assert note is not None
        assert f"{tmp_path / 'm'} runs with the language embeddings" in note
        assert f"texts in {', '.join(corpus.languages)};" in note
        assert "runs without them" in str(scoring_note(tmp_path / "m", with_languages=False))
    else:
        assert note is None, "the plain model gives the outputs of training"


@torch.no_grad()
@pytest.mark.parametrize("language", ["bb", "zz"])
def test_states_are_those_of_training_with_the_language_of_the_text(corpus, tmp_path, language):
    trained = with_languages(corpus, tmp_path / "m", "all")
    encoder, tokenizer = load_for_scoring(tmp_path / "m")
    said: list[str] = []
    found = embed(encoder, tokenizer, SENTENCES, language=language, note=said.append)
    row = corpus.languages.index(language) if language in corpus.languages else -1
    for number, sentence in enumerate(SENTENCES):
        ids = torch.tensor([tokenizer(sentence)["input_ids"]])
        zeros = torch.zeros_like(ids)
        rows = Rows(
            ids=ids,
            positions=torch.arange(ids.shape[1])[None],
            languages=zeros + row,
            sentences=zeros,
            roles=zeros,
            rules=zeros,
            sequences=zeros,
        )
        layers = trained(rows, layers=True).layers
        assert layers is not None
        expected = torch.stack([layer[0].mean(dim=0) for layer in layers])
        torch.testing.assert_close(found[:, number], expected, atol=1e-5, rtol=1e-4)
    assert (said == []) == (row >= 0)
    without, _ = load_for_scoring(tmp_path / "m", language_embeddings=False)
    assert without.languages is None
    plain = embed(without, tokenizer, SENTENCES, language=language)
    assert torch.allclose(plain, found, atol=1e-3) == (row < 0)


@pytest.mark.parametrize("settings", [FeatureConfig(), FeatureConfig(aligner="argmax")])
def test_every_kind_of_task_sees_the_languages(corpus, tmp_path, settings):
    """Another language's embedding gives other states: of words, pairs and prompts."""
    with_languages(corpus, tmp_path / "m", "all", std=3.0)
    encoder, tokenizer = load_for_scoring(tmp_path / "m")
    pairs = [
        AlignedPair(first=tuple(words("aa")[n : n + 6]), second=tuple(words("bb")[n : n + 6]),
                    sure=frozenset(), possible=frozenset())
        for n in range(4)
    ]  # fmt: skip
    links, prompts, vectors = [], [], []
    for first, second in (("aa", "bb"), ("aa", "cc"), ("bb", "aa"), ("aa", "bb")):
        links.append(align_words(encoder, tokenizer, pairs, settings, languages=(first, second)))
        prompts.append(predict_objects(encoder, tokenizer, [FACT], max_masks=1, language=first)[0])
        *_, last = word_vectors(encoder, tokenizer, [("ka", first), ("ka", second)])
        vectors.append(last)
    assert links[0] == links[3] != links[1]
    assert prompts[0] == prompts[3]
    assert prompts[0].log_probability != prompts[2].log_probability
    assert torch.equal(vectors[0].raw(["ka"], "bb"), vectors[2].raw(["ka"], "bb"))
    assert not torch.allclose(vectors[0].raw(["ka"], "bb"), vectors[0].raw(["ka"], "aa"))


def test_two_languages_of_a_pair_that_is_one_sequence(corpus, tmp_path):
    """As in TLM: the first sentence with its special tokens, then the second with its own."""
    with_languages(corpus, tmp_path / "m", "all")
    encoder, tokenizer = load_for_scoring(tmp_path / "m")
    seen: list[Rows] = []
    encoder.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    pair = AlignedPair(first=("ka",), second=("lo", "mitu"), sure=frozenset(), possible=frozenset())
    align_words(encoder, tokenizer, [pair], FeatureConfig(), languages=("bb", "cc"))
    end = tokenizer.sep_token_id
    ids, languages = seen[0].ids[0].tolist(), seen[0].languages[0].tolist()
    first = ids.index(end) + 1
    expected = [corpus.languages.index("bb")] * first
    assert languages == expected + [corpus.languages.index("cc")] * (len(ids) - first)


@pytest.mark.parametrize(("value", "name"), [(float("nan"), "NaN"), (float("-inf"), "infinite")])
def test_weights_that_are_not_finite_are_refused_by_name(copied, value, name):
    weights = load_file(copied / "model.safetensors")
    weights["roberta.encoder.layer.1.output.dense.bias"][3] = value
    save_file(weights, copied / "model.safetensors", metadata={"format": "pt"})
    for load in (
        load_for_scoring,
        lambda folder: Encoder.from_pretrained(str(folder)),
        lambda folder: SequenceClassificationHead(folder, FinetuneConfig(), ["x"]).load_model(),
        lambda folder: transplant(folder, folder, folder.parent / "new"),
    ):
        with pytest.raises(
            ModelError, match=r"layer\.1\.output\.dense\.bias are not finite \(1 of"
        ):
            load(copied)


def test_states_that_are_not_finite_are_refused_with_the_sentence(copied):
    """Finite weights whose products overflow: the table has a huge row for one token."""
    encoder, tokenizer = load_for_scoring(copied)
    (token,) = (
        set(tokenizer(SENTENCES[1])["input_ids"])
        - set(tokenizer(SENTENCES[0])["input_ids"])
        - {*tokenizer(" ".join(words("aa")[3:8]))["input_ids"]}
    )
    with torch.no_grad():
        encoder.model.get_input_embeddings().weight[token] = 3e38
    embed(encoder, tokenizer, SENTENCES[:1])
    with pytest.raises(ModelError, match="states of sentence 2 are not finite"):
        embed(encoder, tokenizer, SENTENCES)


def test_why_rows_are_not_packed_is_told(tokenizer, tmp_path):
    config = CONFIGS["mpnet"](vocab_size=len(tokenizer), pad_token_id=tokenizer.pad_token_id)
    AutoModelForMaskedLM.from_config(config).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    said: list[str] = []
    load_for_scoring(tmp_path, note=said.append)
    (note,) = said
    assert "does not call transformers' attention interface" in note
    assert "scored as transformers runs it" in note


def test_a_decoder_is_refused_by_scoring_and_by_fine_tuning(tokenizer, tmp_path):
    config = GPT2Config(vocab_size=len(tokenizer), n_embd=16, n_layer=1, n_head=2)
    AutoModelForCausalLM.from_config(config).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="a gpt2 model, not a masked language model"):
        load_for_scoring(tmp_path)
    with pytest.raises(ModelError, match="a gpt2 model, not a masked language model"):
        SequenceClassificationHead(tmp_path, FinetuneConfig(), ["x"])


def test_a_tokenizer_without_padding_is_refused(copied):
    tokenizer = type(load_for_scoring(copied)[1]).from_pretrained(copied)
    tokenizer.pad_token = None
    tokenizer.save_pretrained(copied)
    with pytest.raises(ModelError, match="has no padding token"):
        load_for_scoring(copied)
