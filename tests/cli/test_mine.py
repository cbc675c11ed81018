"""`isoglot mine`: files in, a table of pairs out; wrong options in a sentence."""

from __future__ import annotations

import lzma

import pytest
import torch

from isoglot.models.config import ModelConfig
from isoglot.models.encoder import Encoder
from isoglot.models.export import export_encoder
from tests.tiny_corpus import words


@pytest.fixture
def files(workdir, corpus):
    torch.manual_seed(0)
    settings = ModelConfig(size="tiny", num_layers=1, hidden_size=32, num_heads=2, max_positions=40)
    encoder = Encoder.build(settings, corpus.vocabulary).eval()
    model = workdir / "runs/mine/model"
    export_encoder(encoder, model, tokenizer_folder=corpus.tokenizer_folder, card="")
    first = [f"{a} {b}" for a, b in zip(words("aa"), words("aa")[7:], strict=False)][:30]
    (workdir / "a.txt").write_text("\n".join(first), encoding="utf-8")
    with lzma.open(workdir / "b.txt.xz", "wt", encoding="utf-8") as file:
        file.write("\n".join(f"{text} {text.split()[0]}" for text in first))
    return workdir


def test_pairs_are_written_and_counted(isoglot, files):
    said = isoglot("mine", "a.txt", "b.txt.xz", "-m", "runs/mine", "--out", "pairs.tsv",
                   "--threshold", "0", "--top", "10")  # fmt: skip
    assert said.code == 0, said.err
    rows = [line.split("\t") for line in (files / "pairs.tsv").read_text("utf-8").splitlines()]
    assert len(rows) == 10
    scores = [float(row[0]) for row in rows]
    assert scores == sorted(scores, reverse=True)
    assert said.out.startswith(f"10 pairs in pairs.tsv, margins {scores[0]:.3f} to ")
    assert "a.txt: 30 lines, 30 sentences" in said.err
    assert "encode b.txt.xz" in said.err
    assert not (files / "pairs.tsv.vectors").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--strategy", "best"],
            "'best' is not possible: write max, intersection, forward or backward",
        ),
        (["--index", "hnsw"], "'hnsw' is not possible: write auto, exact or faiss"),
        (["--languages", "en"], "'en' has 1 languages"),
        (["--vector-type", "int8"], "'int8' is not possible: write float32 or float16"),
        (["--threshold", "nan"], "threshold must be from -1,000,000 to 1,000,000, not nan"),
        (["--neighbors", "0"], "Invalid value for '--neighbors'"),
    ],
)
def test_wrong_options_are_told(isoglot, files, options, message):
    said = isoglot("mine", "a.txt", "a.txt", "-m", "runs/mine", "-o", "p.tsv", *options)
    assert said.code != 0
    assert message in " ".join(said.err.replace("│", " ").split())
    assert not (files / "p.tsv").exists()


def test_a_file_that_is_not_there(isoglot, files):
    said = isoglot("mine", "a.txt", "c.txt", "-m", "runs/mine", "-o", "p.tsv")
    assert said.code == 1
    assert "c.txt" in said.err
    assert "Traceback" not in said.err
    assert not (files / "p.tsv.vectors").exists()
