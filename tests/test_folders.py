"""One way to name a model, a run, a corpus and a tokenizer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from isoglot.errors import CorpusError, IsoglotError, ModelError
from isoglot.folders import corpus_folder, find_model, model_folder, run_folder, tokenizer_folder

if TYPE_CHECKING:
    from collections.abc import Iterator


def write(*files: str) -> None:
    for file in files:
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        Path(file).write_text("{}", encoding="utf-8")


@pytest.fixture(autouse=True)
def workdir(tmp_path, monkeypatch) -> Path:
    """A folder with a model, a finished run, a stopped run and some corpora; no hub."""
    monkeypatch.chdir(tmp_path)
    write("models/english/config.json", "models/english/tokenizer.json")
    write("runs/done/recipe.yaml", "runs/done/model/config.json", "runs/done/model/tokenizer.json")
    write("runs/stopped/recipe.yaml", "runs/ablations/one/metrics.jsonl")
    write("corpora/one/manifest.json", "corpora/one/tokenizer/tokenizer.json")
    write("corpora/bed/corpus/manifest.json", "corpora/bed/corpus/tokenizer/tokenizer.json")
    write("corpora/bed/raw/en.txt", "corpora/one/knowledge/manifest.json")
    write("notes.txt")
    return tmp_path


@pytest.fixture
def asked(monkeypatch) -> list[str]:
    """The names that the hub is asked for; it has `someone/model` alone."""
    names: list[str] = []

    def snapshot_download(name: str, **_: object) -> str:
        names.append(name)
        if name != "someone/model":
            raise OSError("404 Client Error.\nRepository Not Found")
        return "models/english"

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot_download)
    return names


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("models/english", "models/english"),
        ("./models/english/", "models/english"),
        ("runs/done", "runs/done/model"),
        ("runs/done/model", "runs/done/model"),
        (Path("runs/done"), "runs/done/model"),
    ],
)
def test_a_model_is_a_folder_or_a_run(name, folder, asked):
    assert model_folder(name) == find_model(name) == Path(folder)
    assert model_folder(Path(name).absolute()) == Path(folder).absolute()
    assert asked == []


def test_a_name_of_the_hub(asked, tmp_path, monkeypatch):
    assert find_model("someone/model") is None
    assert model_folder("someone/model") == Path("models/english")
    with pytest.raises(ModelError, match=r"no folder robbert here, and the Hugging Face hub .*404"):
        model_folder("robbert")
    assert asked == ["someone/model", "robbert"]
    # without a network, what an earlier download left is used
    write("cache/config.json")
    cached = str(tmp_path / "cache/config.json")
    monkeypatch.setattr("huggingface_hub.try_to_load_from_cache", lambda *_: cached)
    assert model_folder("robbert") == tmp_path / "cache"


def test_the_encoder_of_a_sentence_transformers_folder_may_lie_in_another_one(tmp_path):
    """As older versions of sentence-transformers saved it; their pooling has a config, too."""
    modules = [{"path": name, "type": "x"} for name in ("0_Transformer", "1_Pooling")]
    for one in modules:
        (tmp_path / one["path"]).mkdir()
        (tmp_path / one["path"] / "config.json").write_text("{}")
    (tmp_path / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(
        ModelError, match=r"whose encoder is in .*/0_Transformer\. Give that folder"
    ):
        model_folder(tmp_path)


def test_modules_of_a_sentence_transformers_model_are_downloaded(tmp_path, monkeypatch):
    """Their files lie in folders, of which other models have large ones (onnx/)."""
    modules = [{"path": "", "type": "x.Transformer"}, {"path": "1_Pooling", "type": "x.Pooling"}]
    (tmp_path / "modules.json").write_text(json.dumps(modules))
    asked: list[tuple[object, object]] = []

    def snapshot_download(_: str, *, allow_patterns: object, ignore_patterns: object = None) -> str:
        asked.append((allow_patterns, ignore_patterns))
        return str(tmp_path)

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot_download)
    assert model_folder("someone/sentences") == tmp_path
    (_, ignored), last = asked
    assert ignored == "*/*"
    assert last == (["1_Pooling/*.json", "1_Pooling/*.safetensors"], None)
    (tmp_path / "modules.json").write_text("[1")
    model_folder("someone/sentences")
    assert len(asked) == 3, "damaged modules are told where they are read"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("models/englisch", "There is no folder models/englisch; did you mean 'english'?"),
        ("models/english/modl/x", "There is no folder models/english/modl"),
        ("./englisch", "There is no folder englisch; known: corpora, models, runs"),
        ("modls/english/", "There is no folder modls; did you mean 'models'?"),
        ("runs/donne", "There is no folder runs/donne; did you mean 'done'?"),
        ("runs/metaxlm-tiny-meta", "Make it first: isoglot pretrain metaxlm-tiny-meta"),
        (
            "runs/metaxlm-tiny-meta/model",
            "There is no folder runs/metaxlm-tiny-meta/model. Make it first: isoglot pretrain meta",
        ),
        ("runs/ablations/xlm-k-oe", "Make it first: isoglot pretrain ablations/xlm-k-oe"),
        ("runs/stopped", "the run has not finished. Continue it with isoglot pretrain --resume"),
        ("done", "Did you mean runs/done?"),
        ("models", "models holds no model .* Models in it: models/english."),
        ("runs", "Models in it: runs/done."),
        ("corpora/one", "It is a prepared corpus."),
        ("notes.txt", "notes.txt is a file."),
        ("x" * 5000, "File name too long"),
        ("a\0b", "cannot be opened"),
    ],
)
def test_what_looks_like_a_path_is_refused_at_once(name, message, asked):
    with pytest.raises(IsoglotError, match=message):
        model_folder(name)
    assert asked == []


def test_a_run(asked):
    assert run_folder("runs/done") == run_folder("runs/done/model") == Path("runs/done")
    assert run_folder(Path("runs/ablations/one")) == Path("runs/ablations/one")
    with pytest.raises(IsoglotError, match="models/english is not a run"):
        run_folder("models/english")
    with pytest.raises(IsoglotError, match="no folder runs/stoped; did you mean 'stopped'"):
        run_folder("runs/stoped")
    with pytest.raises(IsoglotError, match="Make it first: isoglot pretrain tiny"):
        run_folder("runs/tiny/model")
    with pytest.raises(IsoglotError, match=r"no folder done\. Did you mean runs/done\?"):
        run_folder("done")


def test_the_run_of_a_folder_of_adapt():
    write("adapted/adapt.yaml", "adapted/run/recipe.yaml", "other/run/recipe.yaml")
    assert run_folder("adapted") == Path("adapted/run")
    with pytest.raises(IsoglotError, match="other is not a run"):
        run_folder("other")
    write("planned/adapt.yaml")
    with pytest.raises(IsoglotError, match="planned is not a run"):
        run_folder("planned")


def test_a_misspelled_folder_is_answered_with_the_nearest_one(asked):
    write("Encoder/config.json")
    with pytest.raises(ModelError, match=r"\(404.*\)\. Did you mean 'Encoder'\? Give a Hugging"):
        model_folder("Encodr")
    assert asked == ["Encodr"]


def test_a_corpus():
    assert corpus_folder("corpora/one") == Path("corpora/one")
    assert corpus_folder("corpora/bed") == Path("corpora/bed/corpus")
    write("corpora/bed/second/manifest.json", "corpora/bed/second/tokenizer/tokenizer.json")
    with pytest.raises(
        CorpusError,
        match=r"holds 2 prepared corpora. .*: corpora/bed/corpus, corpora/bed/second.",
    ):
        corpus_folder("corpora/bed")
    with pytest.raises(CorpusError, match="runs/done: is not a prepared corpus, or preparing it"):
        corpus_folder("runs/done")
    with pytest.raises(CorpusError, match="no folder corpora/on; did you mean 'one'"):
        corpus_folder("corpora/on")
    with pytest.raises(CorpusError, match=r"notes.txt: is not a prepared corpus"):
        corpus_folder("notes.txt")
    # the knowledge of a corpus whose manifest is lost is not taken for the corpus
    Path("corpora/one/manifest.json").unlink()
    with pytest.raises(CorpusError, match=r"it has no manifest.json"):
        corpus_folder("corpora/one")


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("models/english", "models/english"),
        ("runs/done", "runs/done/model"),
        ("corpora/one", "corpora/one/tokenizer"),
        ("corpora/one/tokenizer", "corpora/one/tokenizer"),
        ("corpora/bed", "corpora/bed/corpus/tokenizer"),
        ("someone/model", "models/english"),
    ],
)
def test_a_tokenizer(name, folder, asked, tmp_path, monkeypatch):
    assert tokenizer_folder(name) == Path(folder)
    # relative to another folder, as in a prepare file
    monkeypatch.chdir("/")
    expected = Path(folder) if name == "someone/model" else tmp_path / folder
    assert tokenizer_folder(name, tmp_path) == expected


def test_a_home_that_is_unknown(monkeypatch):
    with pytest.raises(IsoglotError, match="Write the folder in full"):
        model_folder("~no-such-user-here/model")


def test_a_folder_that_must_not_be_read(monkeypatch):
    real = Path.iterdir

    def iterdir(self: Path) -> Iterator[Path]:
        if self.name == "models":
            raise PermissionError(13, "Permission denied")
        return real(self)

    monkeypatch.setattr(Path, "iterdir", iterdir)
    with pytest.raises(ModelError, match=r"There is no folder models/none\."):
        model_folder("models/none")
