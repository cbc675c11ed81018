"""`export_model`: sentence-transformers gives the vectors that were chosen; folders; refusals."""

import io
import shutil

import pytest
import torch
from rich.console import Console
from transformers import AutoModel, AutoTokenizer

from isoglot.errors import IsoglotError, ModelError
from isoglot.evaluation.exported import exported_vectors
from isoglot.exporting import ExportOptions, export_model
from isoglot.exporting import pooling as module
from isoglot.exporting.heldout_pairs import pairs_of_corpus
from isoglot.models.loading import load_tokenizer

SENTENCES = ["kalo mi tu.", "бода ги", "zhaquo xi wue vy. jax", "se"]


def expected_vectors(model, pooling, layer):
    """By transformers, one sentence at a time."""
    tokenizer, base = AutoTokenizer.from_pretrained(model), AutoModel.from_pretrained(model).eval()
    vectors = []
    for text in SENTENCES:
        with torch.no_grad():
            output = base(**tokenizer(text, return_tensors="pt"), output_hidden_states=True)
        states = output.hidden_states[layer][0]
        vectors.append(states[0] if pooling == "cls" else states.mean(dim=0))
    return torch.stack(vectors)


def encode(folder):
    from sentence_transformers import SentenceTransformer

    return torch.tensor(SentenceTransformer(str(folder), device="cpu").encode(SENTENCES))


def test_a_run_with_its_sentence_vectors(run, pairs, tmp_path):
    copied = tmp_path / "mine"
    shutil.copytree(run, copied)
    options = ExportOptions(formats=("transformers", "sentence-transformers"), pairs=(pairs,))
    done = export_model(copied, config=options, console=Console(quiet=True))
    place = copied / f"exports/step-{done.step:08d}"
    assert done.folders == {
        "transformers": place / "model",
        "sentence-transformers": place / "sentence-transformers",
    }
    choice = done.pooling
    assert choice is not None
    assert len(choice.tried) == 4
    assert "110 held-out pairs (aa-bb.tsv; aa-bb)" in choice.reason
    expected = expected_vectors(place / "model", choice.pooling, choice.layer)
    assert torch.allclose(encode(place / "sentence-transformers"), expected, atol=1e-5)
    card = (place / "sentence-transformers/README.md").read_text()
    assert choice.card() in card
    assert f"| sentence vector | {choice.describe()} |" in card
    assert not list(copied.rglob(".export-*"))


@pytest.mark.parametrize(("pooling", "layer"), [("mean", 1), ("cls", 1), ("cls", 2)])
def test_an_encoder_cut_at_the_chosen_layer(run, pairs, tmp_path, monkeypatch, pooling, layer):
    """Whatever is chosen, sentence-transformers encodes so."""

    def chosen(base, *_, **__):
        return module.PoolingChoice(pooling=pooling, layer=layer, num_layers=2, reason="So.")

    monkeypatch.setattr("isoglot.exporting.export.choose_pooling", chosen)
    options = ExportOptions(formats=("sentence-transformers",), pairs=(pairs,))
    out = tmp_path / "out"
    done = export_model(run / "model", out, options, console=Console(quiet=True))
    assert done.folders == {"sentence-transformers": out}
    assert done.step is None
    expected = expected_vectors(run / "model", pooling, layer)
    assert torch.allclose(encode(out), expected, atol=1e-5)
    assert AutoModel.from_pretrained(out).config.num_hidden_layers == layer
    # the folder beside a whole model says nothing about that model's vectors
    shutil.copytree(run / "model", tmp_path / "beside/model")
    shutil.copytree(out, tmp_path / "beside/sentence-transformers")
    assert exported_vectors(tmp_path / "beside/model").is_plain == (layer == 1)


def test_without_pairs_it_is_the_mean_with_a_note(run, tmp_path):
    shown = io.StringIO()
    options = ExportOptions(formats=("sentence-transformers",))
    console = Console(file=shown, width=300)
    done = export_model(str(run / "model"), tmp_path / "out", options, console=console)
    assert done.pooling is not None
    assert (done.pooling.pooling, done.pooling.layer) == ("mean", 2)
    assert "no held-out pairs to choose the pooling on" in shown.getvalue()
    asked = ExportOptions(formats=("sentence-transformers",), pooling="cls")
    done = export_model(run / "model", tmp_path / "out", asked, console=Console(quiet=True))
    assert done.pooling is not None
    assert done.pooling.pooling == "cls"
    assert "It was asked for" in (tmp_path / "out/README.md").read_text()


def test_the_held_out_pairs_of_a_corpus(run, corpus, monkeypatch):
    monkeypatch.setattr("isoglot.exporting.heldout_pairs._MIN_PAIRS", 2)
    tokenizer = load_tokenizer(str(run / "model"))
    found = pairs_of_corpus(corpus, tokenizer, 96)
    assert set(found) == {"aa-bb", "aa-cc"}
    vocabulary = corpus.vocabulary
    for name, sides in found.items():
        table = corpus.table("pairs", name, "heldout")
        assert len(sides[0]) == len(sides[1]) == table.num_rows
        for row in range(table.num_rows):
            for side, column in zip(sides, ("first", "second"), strict=True):
                ids = table.ids(column, row).tolist()
                assert side[row] == [vocabulary.cls, *ids, vocabulary.sep]
    short = pairs_of_corpus(corpus, tokenizer, 5)
    assert {len(ids) for side in short["aa-bb"] for ids in side} <= {3, 4, 5}


def test_what_cannot_be_exported_is_refused(run, tmp_path):
    quiet = Console(quiet=True)
    with pytest.raises(IsoglotError, match="is a transformers folder already"):
        export_model(run / "model", tmp_path / "out", console=quiet)
    sentences = ExportOptions(formats=("sentence-transformers",))
    with pytest.raises(IsoglotError, match="name the folder to write, `to`"):
        export_model(run / "model", config=sentences, console=quiet)
    with pytest.raises(IsoglotError, match="did you mean 'onnx'"):
        ExportOptions(formats=("onxn",))  # type: ignore[arg-type]
    with pytest.raises(IsoglotError, match="Name a format"):
        ExportOptions(formats=())
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/notes.txt").touch()
    with pytest.raises(ModelError, match="is not a sentence-transformers folder"):
        export_model(run / "model", tmp_path / "mine", sentences, console=quiet)
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["notes.txt"]
