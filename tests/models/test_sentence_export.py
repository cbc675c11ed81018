"""A sentence-transformers folder gives the vectors that were trained."""

import json

import pytest
import torch
from transformers import AutoModel, AutoModelForMaskedLM, AutoTokenizer

from isoglot.errors import ModelError
from isoglot.evaluation.embed import embed, pad_rows
from isoglot.models.config import ModelConfig
from isoglot.models.encoder import Encoder
from isoglot.models.export import export_encoder
from isoglot.models.sentence_export import (
    SentenceHead,
    export_sentence_transformers,
    sentence_limitations,
)
from isoglot.objectives.contrast.pooling import Pooling, Projection, ProjectionConfig, pool
from tests.models.tiny import ARCHITECTURES, CONFIGS

SENTENCES = ["kalo mi tu.", "бода ги", "zhaquo xi wue vy. jax", "se"]
HEADS: dict[str, tuple[Pooling, ProjectionConfig]] = {
    "paper": ("cls", ProjectionConfig(size=12)),
    "xlco": ("cls", ProjectionConfig(layers=1, size=None, bias=True, normalize="none")),
    "after": ("mean", ProjectionConfig(size=7, normalize="after")),
    "bare": ("mean", ProjectionConfig(layers=0)),
}


@pytest.fixture(scope="module")
def encoder(corpus):
    torch.manual_seed(0)
    settings = ModelConfig(size="tiny", num_layers=2, hidden_size=32, num_heads=2, max_positions=96)
    return Encoder.build(settings, corpus.vocabulary).eval()


@pytest.fixture(scope="module")
def model(corpus, encoder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("export") / "model"
    export_encoder(encoder, folder, tokenizer_folder=corpus.tokenizer_folder, card="# card\n")
    return folder


def head_of(name):
    pooling, settings = HEADS[name]
    projection = Projection(settings, 32)
    return projection, SentenceHead(
        pooling=pooling, normalize=projection.normalize, layers=projection.linear()
    )


@pytest.mark.parametrize("name", HEADS)
def test_it_opens_and_gives_the_same_vectors(encoder, model, tmp_path, name):
    package = pytest.importorskip("sentence_transformers")
    projection, head = head_of(name)
    export_sentence_transformers(model, tmp_path / "out", head, max_length=96)
    opened = package.SentenceTransformer(str(tmp_path / "out"), device="cpu")
    found = torch.tensor(opened.encode(SENTENCES))
    tokenizer = AutoTokenizer.from_pretrained(model)
    rows = pad_rows(tokenizer(SENTENCES)["input_ids"], tokenizer.pad_token_id)
    with torch.no_grad():
        places = torch.arange(len(SENTENCES)) * rows.ids.shape[1]
        pooled = pool(encoder(rows).hidden, rows, places, head.pooling)
        expected = projection(pooled)
    assert found.shape == expected.shape
    assert torch.allclose(found, expected, rtol=1e-4, atol=1e-6)
    assert opened.max_seq_length == 96
    assert opened.similarity_fn_name == ("dot" if name in ("paper", "xlco") else "cosine")


def test_what_it_writes_does_not_need_the_package(model, tmp_path):
    _, head = head_of("paper")
    out = tmp_path / "out"
    for _ in range(2):  # the second replaces the first
        export_sentence_transformers(model, out, head, max_length=96)
    kinds = [
        module["type"].rsplit(".", 1)[1]
        for module in json.loads((out / "modules.json").read_text())
    ]
    assert kinds == ["Transformer", "Pooling", "Normalize", "Dense", "Dense"]
    functions = [
        json.loads((out / f"{number}_Dense/config.json").read_text())["activation_function"]
        for number in (3, 4)
    ]
    assert [name.rsplit(".", 1)[1] for name in functions] == ["ReLU", "Identity"]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_nothing_is_missing_and_nothing_unexpected(architecture, corpus, tmp_path, caplog):
    """By transformers' own report, which it logs when a folder is loaded."""
    package = pytest.importorskip("sentence_transformers")
    config = CONFIGS[architecture]()
    config.vocab_size = corpus.vocabulary.size
    AutoModelForMaskedLM.from_config(config).save_pretrained(tmp_path / "start")
    encoder = Encoder.from_pretrained(str(tmp_path / "start"))
    export_encoder(
        encoder, tmp_path / "m", tokenizer_folder=corpus.tokenizer_folder, card="# card\n"
    )
    head = SentenceHead(pooling="mean")
    export_sentence_transformers(tmp_path / "m", tmp_path / "out", head, max_length=64)
    _, report = AutoModel.from_pretrained(tmp_path / "out", output_loading_info=True)
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    caplog.clear()
    package.SentenceTransformer(str(tmp_path / "out"), device="cpu").encode(["ka"])
    said = "".join(record.getMessage() for record in caplog.records)
    assert "MISSING" not in said
    assert "UNEXPECTED" not in said


@pytest.mark.parametrize("architecture", ["xlm-r", "albert"])
def test_language_embeddings_become_their_mean(architecture, corpus, tmp_path):
    package = pytest.importorskip("sentence_transformers")
    config = CONFIGS[architecture]()
    config.vocab_size = corpus.vocabulary.size
    AutoModelForMaskedLM.from_config(config).save_pretrained(tmp_path / "start")
    settings = ModelConfig(init_from=str(tmp_path / "start"), language_embeddings="all")
    encoder = Encoder.from_pretrained(str(tmp_path / "start"), settings, languages=("aa", "bb"))
    assert encoder.languages is not None
    torch.nn.init.normal_(encoder.languages.weight)
    folder = tmp_path / "m"
    export_encoder(encoder, folder, tokenizer_folder=corpus.tokenizer_folder, card="")
    (limitation,) = sentence_limitations(folder)
    assert "mean of the languages' embeddings" in limitation
    head = SentenceHead(pooling="mean")
    export_sentence_transformers(folder, tmp_path / "out", head, max_length=64)
    opened = package.SentenceTransformer(str(tmp_path / "out"), device="cpu")
    with torch.no_grad():
        encoder.languages.weight.copy_(encoder.languages.weight.mean(dim=0).repeat(2, 1))
    tokenizer = AutoTokenizer.from_pretrained(folder)
    expected = embed(encoder.eval(), tokenizer, SENTENCES, language="aa")[-1]
    found = torch.tensor(opened.encode(SENTENCES))
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)


def test_a_card_of_its_own_and_how_a_vector_is_made(model, tmp_path):
    _, head = head_of("paper")
    export_sentence_transformers(model, tmp_path / "out", head, max_length=96, card="# mine\n")
    assert (tmp_path / "out" / "README.md").read_text() == "# mine\n"
    said = "the state of the first token, normalized, projected to 32 and 12 dimensions"
    assert head.describe() == said
    assert (
        SentenceHead(pooling="mean", normalize="after").describe() == "the mean state, normalized"
    )


def test_another_folder_is_not_overwritten(model, tmp_path):
    (tmp_path / "out").mkdir()
    with pytest.raises(ModelError, match="is not a sentence-transformers folder"):
        export_sentence_transformers(model, tmp_path / "out", head_of("bare")[1], max_length=96)
