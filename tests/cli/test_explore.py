"""`isoglot explore`: what it says before it serves a page."""

from __future__ import annotations

import socket
import sys
from typing import TYPE_CHECKING

import pytest

from isoglot.models.config import ModelConfig
from isoglot.models.encoder import Encoder
from isoglot.models.export import export_encoder

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def model(corpus, tmp_path_factory) -> Path:
    """A small random encoder."""
    settings = ModelConfig(size="tiny", num_layers=1, hidden_size=16, num_heads=2, max_positions=32)
    folder: Path = tmp_path_factory.mktemp("model") / "encoder"
    encoder = Encoder.build(settings, corpus.vocabulary)
    export_encoder(encoder, folder, tokenizer_folder=corpus.tokenizer_folder, card="")
    return folder


def test_without_gradio_it_says_how_to_install_it(isoglot, model, monkeypatch):
    monkeypatch.setitem(sys.modules, "gradio", None)
    said = isoglot("explore", model)
    assert said.code == 1
    assert said.err == "isoglot: isoglot explore needs Gradio: pip install 'isoglot[explore]'\n"


def test_a_port_in_use_and_what_would_be_shared(isoglot, model, workdir):
    (workdir / "sw.txt").write_text("Habari.\n", encoding="utf-8")
    with socket.create_server(("0.0.0.0", 0)) as other:  # noqa: S104
        port = other.getsockname()[1]
        local = isoglot("explore", model, "--port", port, "--no-browser")
        shared = isoglot(
            "explore",
            f"mine={model}",
            "--text",
            "sw.txt",
            "--port",
            port,
            "--host",
            "0.0.0.0",  # noqa: S104
        )
    assert local.code == shared.code == 1
    assert f"127.0.0.1:{port} cannot be opened" in local.err
    assert "--port" in local.err
    assert "anybody" not in local.err
    assert "anybody who can reach this machine" in shared.err
    assert "run mine with any text, and read sentences of sw.txt" in shared.err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--corpus", "nowhere"], "nowhere"),
        (["--pairs", "en-de.tsv"], "en-de.tsv"),
        (["--device", "tpu"], "neither cpu nor cuda"),
        (["--results", "results.json"], "results.json"),
    ],
)
def test_a_mistake_is_one_sentence(isoglot, model, workdir, options, said):
    found = isoglot("explore", model, *options)
    assert found.code == 1
    assert said in found.err
    assert found.err.count("\n") == 1
