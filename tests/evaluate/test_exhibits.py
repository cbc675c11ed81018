"""Exhibits are of the model's own vectors, and come out the same for the same seed."""

from __future__ import annotations

import pytest
import torch
from transformers import AutoModel

from isoglot.cli import main
from isoglot.errors import IsoglotError
from isoglot.evaluate import embed
from isoglot.evaluate.exhibits import ExhibitConfig, make_exhibits, pairs_of_tasks
from isoglot.evaluate.retrieval import accuracies
from isoglot.exhibits import Exhibits, ExhibitsError
from isoglot.results import Results
from tests.tiny_corpus import words

SENTENCES = 12


def texts(language: str) -> list[str]:
    return [" ".join(words(language)[start : start + 6]) for start in range(0, 4 * SENTENCES, 4)]


PAIRS = {
    "aa-bb": (texts("aa"), texts("bb")),
    "aa-cc": (texts("aa"), texts("cc")),
}


@pytest.fixture(scope="module")
def exhibits(encoder, tokenizer) -> Exhibits:
    return make_exhibits(encoder, tokenizer, PAIRS, fingerprint="f")


def test_every_sentence_has_a_place_and_the_same_one_again(exhibits, encoder, tokenizer, tmp_path):
    assert {language: len(p) for language, p in exhibits.space.points.items()} == {
        "aa": SENTENCES,
        "bb": SENTENCES,
        "cc": SENTENCES,
    }
    assert len({place for points in exhibits.space.points.values() for place in points}) > SENTENCES
    assert make_exhibits(encoder, tokenizer, PAIRS, fingerprint="f") == exhibits
    exhibits.write(tmp_path / "exhibits.json")
    assert Exhibits.read(tmp_path / "exhibits.json") == exhibits


def test_the_layer_is_the_one_that_retrieves_best(exhibits, encoder, tokenizer):
    found = {side: embed(encoder, tokenizer, texts(side)) for side in ("aa", "bb", "cc")}
    sums = [
        sum(accuracies(found["aa"][n], found[other][n], texts(other)) for other in ("bb", "cc"))
        for n in range(len(found["aa"]))
    ]
    assert exhibits.space.layer == sums.index(max(sums))
    fixed = ExhibitConfig(layer=2, sentences=5, grids=1)
    again = make_exhibits(encoder, tokenizer, PAIRS, fingerprint="f", settings=fixed)
    assert again.space is not None
    assert (again.space.layer, again.grids[0].layer, len(again.grids)) == (2, 2, 1)
    assert all(len(points) == 5 for points in again.space.points.values())


@torch.no_grad()
def test_grids_are_cosines_of_words(encoder, tokenizer, folder):
    settings = ExhibitConfig(layer=2, grids=1)
    (grid,) = make_exhibits(encoder, tokenizer, PAIRS, fingerprint="f", settings=settings).grids
    assert grid.first == tuple(PAIRS["aa-bb"][0][0].split())
    assert grid.second == tuple(PAIRS["aa-bb"][1][0].split())
    model = AutoModel.from_pretrained(folder, add_pooling_layer=False).eval()

    def word_vectors(sentence: str) -> torch.Tensor:
        """Without any of our code: the words of the tokenizer itself."""
        encoded = tokenizer(sentence, return_tensors="pt")
        states = model(**encoded, output_hidden_states=True).hidden_states[2][0]
        owners = encoded.word_ids(0)
        return torch.stack(
            [
                states[[i for i, owner in enumerate(owners) if owner == word]].mean(dim=0)
                for word in range(len(sentence.split()))
            ]
        )

    first, second = (word_vectors(side[0]) for side in PAIRS["aa-bb"])
    expected = torch.cosine_similarity(first[:, None], second[None], dim=-1)
    torch.testing.assert_close(torch.tensor(grid.cosines), expected, atol=6e-4, rtol=0)


def test_text_without_spaces_goes_by_its_pieces(encoder, tokenizer, monkeypatch):
    # the tiny tokenizer cuts what it has not seen into letters: more than one would read
    monkeypatch.setattr("isoglot.evaluate.exhibits._READABLE", range(1, 40))
    text = "".join(words("aa"))[:24]
    pieces = [piece for piece in tokenizer.tokenize(text) if piece != "▁"]
    assert 2 < len(pieces) < 40
    pairs = {"aa-bb": ([text] * 6, texts("bb")[:6])}
    (grid,) = make_exhibits(encoder, tokenizer, pairs, fingerprint="f").grids
    assert len(grid.first) == len(pieces)
    assert "".join(grid.first) == text


def test_exhibits_of_another_schema_are_refused(tmp_path):
    file = tmp_path / "exhibits.json"
    file.write_text('{"schema": 99}', encoding="utf-8")
    with pytest.raises(ExhibitsError, match="has schema 99, this version reads 1"):
        Exhibits.read(file)


def test_the_command_keeps_exhibits_beside_the_results(folder, tmp_path, monkeypatch, capsys):
    for name, sides in PAIRS.items():
        lines = "".join(f"{a}\t{b}\n" for a, b in zip(*sides, strict=True))
        (tmp_path / f"{name}.tsv").write_text(lines, encoding="utf-8")
    files = [part for name in PAIRS for part in ("--pairs", str(tmp_path / f"{name}.tsv"))]
    out = tmp_path / "scores" / "results.json"
    command = ["isoglot", "evaluate", str(folder), *files, "--out", str(out), "--exhibits"]
    monkeypatch.setattr("sys.argv", command)
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    assert capsys.readouterr().out.endswith(f"exhibits in {out.parent / 'exhibits.json'}\n")
    kept = Exhibits.read(out.parent / "exhibits.json")
    assert kept.fingerprint == Results.read(out).fingerprint
    assert [grid.language for grid in kept.grids] == ["aa-bb", "aa-cc"]


def test_pairs_are_those_of_the_retrieval_tasks(tmp_path):
    (tmp_path / "tatoeba").mkdir()
    rows = "Guten Tag\tGood day\nJa\tYes\n"
    (tmp_path / "tatoeba" / "de-en.tsv").write_text(rows, encoding="utf-8")
    found = pairs_of_tasks(["xnli", " tatoeba"], tmp_path)
    assert list(found.values()) == [(["Guten Tag", "Ja"], ["Good day", "Yes"])]
    with pytest.raises(IsoglotError, match="name a retrieval task"):
        pairs_of_tasks(["xnli"], tmp_path)
