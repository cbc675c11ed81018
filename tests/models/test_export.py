from __future__ import annotations

import json
import shutil

import pytest
import torch
from safetensors import safe_open
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from transformers import AutoModelForMaskedLM, AutoTokenizer, PreTrainedTokenizerFast

from isoglot.corpus.tokenization.pretokenization import Pretokenizer
from isoglot.errors import ModelError
from isoglot.models.config import ModelConfig
from isoglot.models.encoder import Encoder
from isoglot.models.export import export_encoder, model_card
from isoglot.models.language_embeddings import FILE
from isoglot.models.sentence_export import SentenceHead, export_sentence_transformers
from tests.models.tiny import ARCHITECTURES, CONFIGS, tiny_encoder, tiny_model

CARD = model_card(
    name="Tiny",
    languages=["sw", "no"],
    objectives=["mlm", "tlm"],
    tokens_seen=12_345,
    init_from="base",
)


@pytest.fixture(scope="module")
def tokenizer_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizer")
    words = {word: index for index, word in enumerate("<s> <pad> </s> <unk> a b c".split())}
    tokenizer = Tokenizer(WordLevel(words, unk_token="<unk>"))  # noqa: S106
    tokenizer.pre_tokenizer = Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>").save_pretrained(folder)  # noqa: S106
    (folder / "model.safetensors").write_text("the weights of another model")
    return folder


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_round_trip(tmp_path, tokenizer_folder, architecture):
    start, folder = tmp_path / "start", tmp_path / "runs" / "model"
    tiny_model(architecture, attention="sdpa").save_pretrained(start)
    encoder = Encoder.from_pretrained(str(start)).eval()
    with torch.no_grad():
        for weight in encoder.parameters():
            weight.mul_(1.1)
    losses = export_encoder(
        encoder, folder, tokenizer_folder=tokenizer_folder, card=CARD, recipe_text="seed: 1\n"
    )
    assert losses == []
    assert (folder / "README.md").read_text() == CARD
    assert (folder / "recipe.yaml").read_text() == "seed: 1\n"

    model, report = AutoModelForMaskedLM.from_pretrained(folder, output_loading_info=True)
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    assert not report["mismatched_keys"]
    ids = torch.arange(4, 34)[None]
    with torch.no_grad():
        assert torch.equal(model.eval()(input_ids=ids).logits, encoder.model(input_ids=ids).logits)
    assert AutoTokenizer.from_pretrained(folder)("b a")["input_ids"] == [5, 4]
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_config_is_the_one_opened(tmp_path, tokenizer_folder, architecture):
    """Attention dropout above all: it was off in training, and is the user's again."""
    start, folder = tmp_path / "start", tmp_path / "model"
    config = CONFIGS[architecture]()
    for name in ("attention_dropout", "attention_probs_dropout_prob"):
        if hasattr(config, name):
            setattr(config, name, 0.125)
    AutoModelForMaskedLM.from_config(config).save_pretrained(start)
    encoder = Encoder.from_pretrained(str(start))
    export_encoder(encoder, folder, tokenizer_folder=tokenizer_folder, card=CARD)
    before, after = (json.loads((f / "config.json").read_text()) for f in (start, folder))
    assert after == before
    assert 0.125 in after.values()
    assert 0.125 not in encoder.model.config.to_dict().values()


@pytest.mark.parametrize("where", ["all", "slots"])
def test_language_embeddings_are_kept_beside(tmp_path, tokenizer_folder, where):
    encoder = tiny_encoder("xlm-r", language_embeddings=where)
    assert encoder.languages is not None
    torch.nn.init.normal_(encoder.languages.weight)
    (loss,) = export_encoder(encoder, tmp_path / "m", tokenizer_folder=tokenizer_folder, card=CARD)
    assert ("outputs differ" in loss) == (where == "all")
    assert loss in (tmp_path / "m" / "README.md").read_text()
    assert f"`language_embeddings: {where}`" in loss
    with safe_open(tmp_path / "m" / FILE, framework="pt") as kept:
        assert torch.equal(kept.get_tensor("weight"), encoder.languages.weight)
        assert kept.metadata() == {"languages": '["aa", "bb", "cc"]', "used_on": where}
    _, report = AutoModelForMaskedLM.from_pretrained(tmp_path / "m", output_loading_info=True)
    assert not report["unexpected_keys"]


def test_replaces_a_model_and_nothing_else(tmp_path, tokenizer_folder):
    encoder = tiny_encoder("bert")
    folder = tmp_path / "model"
    for card in ("old", "new"):
        export_encoder(encoder, folder, tokenizer_folder=tokenizer_folder, card=card)
    assert (folder / "README.md").read_text() == "new"
    (tmp_path / "thesis").mkdir()
    with pytest.raises(ModelError, match="holds no model"):
        export_encoder(encoder, tmp_path / "thesis", tokenizer_folder=tokenizer_folder, card=CARD)


def test_nothing_is_left_of_an_export_that_fails(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelError, match="empty holds no tokenizer"):
        export_encoder(
            tiny_encoder("bert"), tmp_path / "m", tokenizer_folder=tmp_path / "empty", card=CARD
        )
    assert [path.name for path in tmp_path.iterdir()] == ["empty"]


def test_made_model_is_exported_with_the_attention_dropout_of_its_kind(tmp_path, tokenizer_folder):
    encoder = Encoder.from_scratch(ModelConfig(size="tiny", num_layers=1), 50, 1)
    export_encoder(encoder, tmp_path / "m", tokenizer_folder=tokenizer_folder, card=CARD)
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    assert config["attention_probs_dropout_prob"] == 0.1


def test_card():
    for part in ("# Tiny", '- "no"', "| no, sw |", "mlm, tlm", "12,345", "`base`"):
        assert part in CARD
    scratch = model_card(name="x", languages=[], objectives=[], tokens_seen=0)
    assert "random weights" in scratch


def test_how_text_is_divided_comes_with_the_model(tmp_path, tokenizer_folder):
    source = tmp_path / "tokenizer"
    shutil.copytree(tokenizer_folder, source)
    Pretokenizer({"*": "moses", "zh": "zh"}).save(source)
    encoder = tiny_encoder("xlm-r", language_embeddings="all")
    assert encoder.languages is not None
    torch.nn.init.normal_(encoder.languages.weight)
    embeddings, words = export_encoder(encoder, tmp_path / "m", tokenizer_folder=source, card=CARD)
    assert "split into words" in words
    assert "(zh: zh, all other languages: moses)" in words
    assert Pretokenizer.load(tmp_path / "m").methods == {"*": "moses", "zh": "zh"}
    head = SentenceHead(pooling="mean")
    export_sentence_transformers(tmp_path / "m", tmp_path / "sentences", head, max_length=8)
    for folder in (tmp_path / "m", tmp_path / "sentences"):
        assert (folder / "README.md").read_text().endswith(f"{embeddings}\n\n{words}\n")
        assert (folder / "pretokenize.json").is_file()
