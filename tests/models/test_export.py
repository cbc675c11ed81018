from __future__ import annotations

import errno
import json
import os
import re
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from transformers import (
    AutoModel,
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    PreTrainedTokenizerFast,
)

import isoglot
from isoglot.corpus.tokenization.pretokenization import Pretokenizer
from isoglot.errors import ModelError, WriteError
from isoglot.models import language_embeddings
from isoglot.models.config import ModelConfig
from isoglot.models.encoder import Encoder
from isoglot.models.export import export_encoder
from isoglot.models.fold import folded_encoder
from isoglot.models.language_embeddings import FILE
from isoglot.models.sentence_export import SentenceHead, export_sentence_transformers
from isoglot.types import Rows
from tests.models.tiny import ARCHITECTURES, CONFIGS, LANGUAGES, tiny_encoder, tiny_model

CARD = "# Tiny\n"


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
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert tokenizer("b a")["input_ids"] == [5, 4]
    assert len(tokenizer("a " * 9999, truncation=True)["input_ids"]) == encoder.max_positions
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
    said = {"languages": ["aa", "bb", "cc"], "used_on": where}
    with safe_open(tmp_path / "m" / FILE, framework="pt") as kept:
        assert torch.equal(kept.get_tensor("weight"), encoder.languages.weight)
        assert {name: json.loads(text) for name, text in kept.metadata().items()} == {
            "isoglot": said
        }
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    assert config["language_embeddings"] == {"file": FILE, **said}
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


def test_without_language_embeddings_the_config_does_not_name_any(tmp_path, tokenizer_folder):
    encoder = tiny_encoder("xlm-r", language_embeddings="all")
    assert encoder.languages is not None
    torch.nn.init.normal_(encoder.languages.weight)
    export_encoder(encoder, tmp_path / "m", tokenizer_folder=tokenizer_folder, card="")
    settings = ModelConfig(init_from=str(tmp_path / "m"), language_embeddings="none")
    plain = Encoder.from_pretrained(str(tmp_path / "m"), settings)
    export_encoder(plain, tmp_path / "n", tokenizer_folder=tokenizer_folder, card="")
    assert "language_embeddings" not in json.loads((tmp_path / "n" / "config.json").read_text())
    assert not (tmp_path / "n" / FILE).exists()


@pytest.mark.parametrize("architecture", ["bert", "albert", "xlm-r", "roberta"])
@pytest.mark.parametrize("bare", [False, True])
def test_a_pooler_survives(tmp_path, tokenizer_folder, architecture, bare):
    """BERT's own, in a folder of a base model or of one with heads; transplanted, too."""
    torch.manual_seed(3)
    base = AutoModel.from_config(CONFIGS[architecture]())
    full = AutoModelForMaskedLM.from_config(CONFIGS[architecture]())
    pooler = {name: tensor for name, tensor in base.state_dict().items() if "pooler" in name}
    assert len(pooler) == 2
    for tensor in pooler.values():
        torch.nn.init.normal_(tensor)
    if bare:
        base.save_pretrained(tmp_path / "start")
    else:
        prefix = full.base_model_prefix
        named = {f"{prefix}.{name}": tensor for name, tensor in pooler.items()}
        full.save_pretrained(tmp_path / "start", state_dict={**full.state_dict(), **named})
    encoder = Encoder.from_pretrained(str(tmp_path / "start"))
    assert len(encoder.pooler) == 2
    export_encoder(encoder, tmp_path / "m", tokenizer_folder=tokenizer_folder, card="")
    with torch.no_grad():
        for weight in encoder.parameters():
            weight.mul_(1.1)  # training moves the encoder, and nothing reads the pooler
    export_encoder(encoder, tmp_path / "m", tokenizer_folder=tokenizer_folder, card="")
    again, report = AutoModel.from_pretrained(tmp_path / "m", output_loading_info=True)
    assert not report["missing_keys"]
    for name, tensor in pooler.items():
        assert torch.equal(again.state_dict()[name], tensor)
    _, report = AutoModelForSequenceClassification.from_pretrained(
        tmp_path / "m", output_loading_info=True
    )
    assert not any("pooler" in key for key in report["missing_keys"])


@torch.no_grad()
@pytest.mark.parametrize("architecture", ["xlm-r", "bert", "albert", "electra"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_folded_language_is_a_plain_model_with_the_outputs_of_training(
    tmp_path, tokenizer_folder, architecture, language
):
    encoder = tiny_encoder(architecture, language_embeddings="all")
    assert encoder.languages is not None
    torch.nn.init.normal_(encoder.languages.weight)
    folder = tmp_path / "m"
    limitations = export_encoder(
        folded_encoder(encoder, language), folder, tokenizer_folder=tokenizer_folder, card=""
    )
    assert limitations == []
    assert not (folder / FILE).exists()
    model = AutoModelForMaskedLM.from_pretrained(folder).eval()
    ids = torch.arange(4, 34)[None]
    zeros = torch.zeros_like(ids)
    rows = Rows(
        ids=ids,
        positions=torch.arange(30)[None],
        languages=zeros + LANGUAGES.index(language),
        sentences=zeros,
        roles=zeros,
        rules=zeros,
        sequences=zeros,
    )
    expected = encoder(rows).hidden
    found = model(input_ids=ids, output_hidden_states=True).hidden_states[-1]
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)


def test_what_cannot_be_folded_is_refused(tmp_path):
    rotating = tiny_encoder("modernbert", language_embeddings="all")
    with pytest.raises(ModelError, match="A modernbert model has no position embeddings"):
        folded_encoder(rotating, "aa")
    with pytest.raises(ModelError, match=r"no language embedding of 'zz' \(it has: aa, bb, cc\)"):
        folded_encoder(tiny_encoder("bert", language_embeddings="all"), "zz")
    with pytest.raises(ModelError, match="it has: none"):
        folded_encoder(tiny_encoder("bert"), "aa")


WRITE_TWICE = """
import sys
from pathlib import Path
import torch
from isoglot.models import language_embeddings, language_parts, objective_heads
from isoglot.models.export import export_encoder
from tests.models.tiny import LANGUAGES, tiny_encoder
out, tokenizer = Path(sys.argv[1]), Path(sys.argv[2])
encoder = tiny_encoder("xlm-r", layers=1, language_embeddings="all")
torch.manual_seed(0)
torch.nn.init.normal_(encoder.languages.weight)
heads = {
    name: objective_heads.ObjectiveHead({"b": 1, "a": 2}, {"x": torch.ones(2), "y": torch.ones(3)})
    for name in ("n", "m")
}
export_encoder(encoder, out, tokenizer_folder=tokenizer, card="", heads=heads)
"""


def test_language_embeddings_are_the_same_file_every_time(tmp_path):
    """With two metadata keys, one of two orders would be drawn for each file."""
    table = torch.nn.Embedding(2, 3)
    found = set()
    for _ in range(20):
        language_embeddings.save(tmp_path, table, ["aa", "bb"], used_on="all")
        found.add((tmp_path / FILE).read_bytes())
    assert len(found) == 1
    save_file(
        {"weight": table.weight.detach()},
        tmp_path / FILE,
        metadata={"languages": '["aa", "bb"]', "used_on": "all"},
    )
    assert language_embeddings.languages_of(tmp_path) == ("aa", "bb"), "of earlier versions"


@pytest.mark.slow
def test_exports_are_the_same_files_in_every_process(tmp_path, tokenizer_folder):
    """safetensors writes several metadata keys in an order that differs between processes."""
    hashes = []
    for seed in ("0", "1", "2"):
        out = tmp_path / seed
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        subprocess.run(
            [sys.executable, "-c", WRITE_TWICE, str(out), str(tokenizer_folder)],
            check=True,
            env=environment,
        )
        files = sorted(path for path in out.rglob("*") if path.is_file())
        hashes.append({path.name: sha256(path.read_bytes()).hexdigest() for path in files})
    assert {"language_embeddings.safetensors", "objective_heads.safetensors"} <= hashes[0].keys()
    assert all(one == hashes[0] for one in hashes[1:])


def test_every_safetensors_file_that_is_written_has_one_metadata_key_at_most():
    """The order of several is random: looked for in the source, to catch new writers."""
    for file in Path(isoglot.__file__).parent.rglob("*.py"):
        for call in re.findall(r"metadata=\{([^}]*)\}", file.read_text(encoding="utf-8")):
            assert call.count(":") <= 1, f"{file}: metadata of several keys ({call})"


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        SafetensorError(
            "Error while serializing: I/O error: No space left on device (os error 28)"
        ),
    ],
)
@pytest.mark.parametrize("existing", [False, True])
def test_a_full_disk_leaves_nothing_half_written(
    tmp_path, tokenizer_folder, monkeypatch, error, existing
):
    """One sentence, no temporary folder, and the model that was there before."""
    encoder = tiny_encoder("bert")
    place = tmp_path / "runs" / "model"
    if existing:
        export_encoder(encoder, place, tokenizer_folder=tokenizer_folder, card="before")
    before = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}

    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(encoder.model, "save_pretrained", fail)
    with pytest.raises(WriteError, match=r"model: cannot be written .*No space left"):
        export_encoder(encoder, place, tokenizer_folder=tokenizer_folder, card="after")
    left = [path.name for path in tmp_path.rglob("*") if path.is_file()]
    assert sorted(left) == sorted(path.name for path in before)
    assert before == {path: path.read_bytes() for path in before}
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["model"] * existing
