"""Language embeddings outlive an export: opened again, they are found by language code."""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import save_file

from isoglot.errors import ModelError
from isoglot.models import language_embeddings
from isoglot.models.config import ModelConfig
from isoglot.models.encoder import Encoder
from isoglot.models.export import export_encoder
from isoglot.models.language_embeddings import FILE
from tests.models.tiny import LANGUAGES, SHAPE, mixed_rows, replace, tiny_encoder


@pytest.fixture
def tokenizer_folder(tmp_path):
    (tmp_path / "vocab.txt").write_text("a\nb\n", encoding="utf-8")
    return tmp_path


def trained(architecture, where):
    """An encoder whose languages have moved away from zero, and from each other."""
    encoder = tiny_encoder(architecture, language_embeddings=where)
    assert encoder.languages is not None
    torch.nn.init.normal_(encoder.languages.weight)
    return encoder


def test_the_same_table_gives_the_same_bytes(tmp_path):
    """Several keys of metadata would be written in a random order."""
    table = torch.nn.Embedding(2, 4)
    written = set()
    for number in range(20):
        folder = tmp_path / str(number)
        folder.mkdir()
        language_embeddings.save(folder, table, ["en", "de"], used_on="all")
        written.add((folder / FILE).read_bytes())
    assert len(written) == 1


def reopened(folder, where, languages):
    settings = ModelConfig(init_from=str(folder), language_embeddings=where)
    return Encoder.from_pretrained(str(folder), settings, languages=languages).eval()


@torch.no_grad()
@pytest.mark.parametrize(
    ("architecture", "where"),
    [("xlm-r", "all"), ("xlm-r", "slots"), ("albert", "all"), ("modernbert", "slots")],
)
def test_the_same_outputs_when_opened_again(tmp_path, tokenizer_folder, architecture, where):
    encoder = trained(architecture, where)
    export_encoder(encoder, tmp_path / "m", tokenizer_folder=tokenizer_folder, card="")
    _, rows = mixed_rows()
    before = encoder(rows).hidden
    assert not torch.equal(before, tiny_encoder(architecture)(rows).hidden)

    again = reopened(tmp_path / "m", where, LANGUAGES)
    assert again.language_codes == LANGUAGES
    assert torch.equal(again(rows).hidden, before)


@torch.no_grad()
def test_languages_are_found_by_code(tmp_path, tokenizer_folder):
    encoder = trained("xlm-r", "all")
    export_encoder(encoder, tmp_path / "m", tokenizer_folder=tokenizer_folder, card="")
    again = reopened(tmp_path / "m", "all", ("new", "cc", "newer", "aa", "bb"))
    assert encoder.languages is not None
    assert again.languages is not None
    aa, bb, cc = encoder.languages.weight
    zero = torch.zeros_like(aa)
    assert torch.equal(again.languages.weight, torch.stack([zero, cc, zero, aa, bb]))
    _, rows = mixed_rows()
    renumbered = replace(rows, languages=torch.tensor([3, 4, 1])[rows.languages])
    assert torch.equal(again(renumbered).hidden, encoder(rows).hidden)


@torch.no_grad()
def test_without_them_the_plain_model_is_opened(tmp_path, tokenizer_folder):
    export_encoder(
        trained("xlm-r", "all"), tmp_path / "m", tokenizer_folder=tokenizer_folder, card=""
    )
    plain = reopened(tmp_path / "m", "none", LANGUAGES)
    assert plain.languages is None
    assert plain.language_codes == ()
    _, rows = mixed_rows()
    assert torch.equal(plain(rows).hidden, tiny_encoder("xlm-r")(rows).hidden)


def test_how_they_were_used(tmp_path, tokenizer_folder):
    assert language_embeddings.used_on(tmp_path) is None
    export_encoder(
        trained("bert", "slots"), tmp_path / "m", tokenizer_folder=tokenizer_folder, card=""
    )
    assert language_embeddings.used_on(tmp_path / "m") == "slots"


WIDTH = SHAPE["hidden_size"]


@pytest.mark.parametrize(
    ("rows", "width", "metadata"),
    [
        (3, WIDTH, None),
        (3, WIDTH, {"languages": '["aa", "bb"]'}),
        (1, WIDTH + 1, {"languages": '["aa"]'}),
    ],
)
def test_a_file_that_does_not_fit(tmp_path, rows, width, metadata):
    tiny_encoder("bert").model.save_pretrained(tmp_path)
    save_file({"weight": torch.zeros(rows, width)}, tmp_path / FILE, metadata=metadata)
    with pytest.raises(ModelError, match=rf"{FILE} has vectors of shape \({rows}, {width}\)"):
        reopened(tmp_path, "all", LANGUAGES)


def test_a_file_that_is_damaged(tmp_path):
    tiny_encoder("bert").model.save_pretrained(tmp_path)
    (tmp_path / FILE).write_bytes(b"cut short")
    with pytest.raises(ModelError, match=f"{FILE} cannot be read"):
        reopened(tmp_path, "all", LANGUAGES)
