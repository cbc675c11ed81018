"""ONNX folders: onnxruntime gives what transformers gives."""

import shutil
import sys

import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from isoglot.errors import ModelError
from isoglot.models import onnx_export
from isoglot.models.onnx_export import check_onnx_installed, export_onnx
from isoglot.models.truncate import truncate
from tests.models.tiny import tiny_model

TEXTS = ["kalo mi tu.", "бода ги", "zhaquo xi wue vy. jax kalo mi tu se ra no pe", "se"]


def folder_of(architecture, corpus, folder):
    model = tiny_model(architecture, attention="sdpa")
    model.resize_token_embeddings(corpus.vocabulary.size)
    model.config.pad_token_id = corpus.vocabulary.pad
    model.save_pretrained(folder)
    for file in corpus.tokenizer_folder.glob("*.json"):
        shutil.copyfile(file, folder / file.name)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("architecture", "pooling", "layers"),
    [("xlm-r", "mean", 2), ("modernbert", None, None)],
)
def test_onnxruntime_gives_the_states_and_vectors(architecture, pooling, layers, corpus, tmp_path):
    import onnxruntime

    model, out = folder_of(architecture, corpus, tmp_path / "model"), tmp_path / "onnx"
    difference = export_onnx(model, out, card="# card\n", pooling=pooling, num_layers=layers)
    assert difference <= 1e-4
    tokenizer = AutoTokenizer.from_pretrained(out)
    batch = tokenizer(TEXTS, padding=True, return_tensors="pt")
    base = AutoModel.from_pretrained(model).eval()
    with torch.no_grad():
        inputs = {name: batch[name] for name in ("input_ids", "attention_mask")}
        expected = base(**inputs, output_hidden_states=True).hidden_states[layers or -1]
    session = onnxruntime.InferenceSession(str(out / "model.onnx"))
    found = session.run(None, {name: value.numpy() for name, value in inputs.items()})
    names = [one.name for one in session.get_outputs()]
    assert names == ["last_hidden_state", "sentence_embedding"][: 1 + (pooling is not None)]
    real = inputs["attention_mask"].bool()
    assert torch.allclose(torch.tensor(found[0])[real], expected[real], atol=1e-4)
    if pooling is not None:
        rows = [states[mask] for states, mask in zip(expected, real, strict=True)]
        vectors = [row[0] if pooling == "cls" else row.mean(dim=0) for row in rows]
        assert torch.allclose(torch.tensor(found[1]), torch.stack(vectors), atol=1e-4)
    assert (out / "README.md").read_text() == "# card\n"
    # an encoder with other weights than the file's
    torch.manual_seed(1)
    torch.nn.init.normal_(base.get_input_embeddings().weight)
    other = onnx_export._OnnxEncoder(base if layers is None else truncate(base, layers), pooling)
    with pytest.raises(ModelError, match="onnxruntime's outputs differ from torch's by"):
        onnx_export._compare(other, out / "model.onnx")


def test_missing_packages_and_other_folders_are_refused(tmp_path, monkeypatch):
    (tmp_path / "mine").mkdir()
    with pytest.raises(ModelError, match=r"holds no model\.onnx"):
        export_onnx(tmp_path / "model", tmp_path / "mine", card="")
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(ModelError, match=r"pip install 'isoglot\[onnx\]'"):
        check_onnx_installed()
