"""The sentence vectors of a folder, against sentence-transformers itself where it is installed."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from isoglot.errors import ModelError
from isoglot.evaluation.data import ScoringJob
from isoglot.evaluation.embed import embed
from isoglot.evaluation.exported import exported_vectors
from isoglot.evaluation.retrieval import retrieval_accuracy, score_retrieval
from isoglot.evaluation.settings import FeatureConfig
from isoglot.models.sentence_export import SentenceHead, export_sentence_transformers
from isoglot.tasks.base import TaskSplit
from isoglot.tasks.bitext import UserPairs
from isoglot.tasks.examples import SentencePair
from tests.tiny_corpus import words

PAIRS = [
    SentencePair(first=f"{a} {b}", second=f"{c} {a}")
    for a, b, c in zip(words("aa")[:12], words("aa")[12:24], words("bb")[:12], strict=True)
]


@pytest.fixture
def run(folder, tmp_path) -> Path:
    """A run with its model, and without a sentence-transformers folder yet."""
    shutil.copytree(folder, tmp_path / "run/model")
    return tmp_path / "run"


def head(**changes) -> SentenceHead:
    torch.manual_seed(1)
    layers = nn.Linear(32, 16), nn.Linear(16, 8, bias=False)
    return replace(SentenceHead(pooling="cls", normalize="before", layers=layers), **changes)


def export(run: Path, found: SentenceHead) -> Path:
    place = run / "sentence-transformers"
    export_sentence_transformers(run / "model", place, found, max_length=40)
    return place


def test_a_plain_folder_gives_the_mean_of_the_last_layer(folder):
    found = exported_vectors(folder)
    assert found.is_plain
    assert found.name == "mean of the last layer"


@pytest.mark.parametrize(
    ("found", "name"),
    [
        (head(), "first token of the last layer, projected"),
        (head(pooling="mean", layers=(), normalize="none"), "mean of the last layer"),
        (head(normalize="after"), "first token of the last layer, projected"),
    ],
)
def test_vectors_are_those_of_the_head(run, encoder, tokenizer, found, name):
    place = export(run, found)
    texts = [pair.first for pair in PAIRS]
    for folder in (run / "model", place):
        exported = exported_vectors(folder)
        assert exported.name == name
        assert exported.pooling == found.pooling
        (pooled,) = embed(encoder, tokenizer, texts, first_token=found.pooling == "cls", layers=[3])
        expected = pooled.double()
        if found.normalize == "before":
            expected = expected / expected.norm(dim=1, keepdim=True)
        for number, layer in enumerate(found.layers, start=1):
            expected = expected @ layer.weight.double().T
            if layer.bias is not None:
                expected = expected + layer.bias.double()
            if number < len(found.layers):
                expected = expected.clamp(min=0)
        if found.normalize == "after":
            expected = expected / expected.norm(dim=1, keepdim=True)
        torch.testing.assert_close(exported(pooled).double(), expected, atol=1e-6, rtol=1e-5)


def test_they_are_what_sentence_transformers_gives(run, encoder, tokenizer):
    library = pytest.importorskip("sentence_transformers")
    place = export(run, head())
    texts = [pair.first for pair in PAIRS]
    exported = exported_vectors(place)
    (pooled,) = embed(encoder, tokenizer, texts, first_token=True, layers=[3])
    expected = library.SentenceTransformer(str(place), device="cpu").encode(texts)
    torch.testing.assert_close(exported(pooled), torch.tensor(expected), atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("center", [False, True])
def test_what_is_delivered_is_scored_without_a_layer(run, encoder, tokenizer, center):
    export(run, head())
    split = TaskSplit("aa-bb", "test", ())
    job = ScoringJob(encoder, tokenizer, UserPairs(), split, FeatureConfig(center=center))
    plain = score_retrieval(job, PAIRS)
    last = [score.value for score in plain if score.layer == 3]
    assert [score.value for score in plain if score.layer is None] == last
    exported = exported_vectors(run / "model")
    scores = score_retrieval(replace(job, exported=exported), PAIRS)
    assert [s for s in scores if s.layer is not None] == [s for s in plain if s.layer is not None]
    sides = []
    for texts in ([p.first for p in PAIRS], [p.second for p in PAIRS]):
        vectors = exported(embed(encoder, tokenizer, texts, first_token=True, layers=[3])[0])
        sides.append(vectors - vectors.mean(dim=0) if center else vectors)
    there = retrieval_accuracy(sides[0], sides[1], [p.second for p in PAIRS])
    back = retrieval_accuracy(sides[1], sides[0], [p.first for p in PAIRS])
    assert [score.value for score in scores if score.layer is None] == [
        (there + back) / 2, there, back,
    ]  # fmt: skip


def change(file: Path, **content: object) -> None:
    file.write_text(json.dumps({**json.loads(file.read_text()), **content}))


def test_what_cannot_be_read_is_refused_by_name(run):
    place = export(run, head())
    modules = json.loads((place / "modules.json").read_text())
    pooling = place / "1_Pooling/config.json"
    change(pooling, pooling_mode_cls_token=False, pooling_mode_max_tokens=True)
    with pytest.raises(ModelError, match=r"1_Pooling.*pools by pooling_mode_max_tokens"):
        exported_vectors(place)
    change(pooling, pooling_mode="mean")
    assert exported_vectors(place).pooling == "mean"
    change(place / "3_Dense/config.json", activation_function="torch.nn.Softsign")
    with pytest.raises(ModelError, match=r"3_Dense.*Softsign cannot be scored"):
        exported_vectors(place)
    modules[1]["type"] = "sentence_transformers.models.WordWeights"
    (place / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(ModelError, match="a module WordWeights, which cannot be scored"):
        exported_vectors(place)
    (place / "modules.json").write_text("[")
    with pytest.raises(ModelError, match="Export the model again"):
        exported_vectors(place)
