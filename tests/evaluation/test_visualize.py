"""Visualizations have the model's own vectors, and are the same for the same seed."""

from __future__ import annotations

import json

import pytest
import torch
from transformers import AutoModel

from isoglot.cli import main
from isoglot.errors import IsoglotError
from isoglot.evaluation.embed import embed
from isoglot.evaluation.retrieval import retrieval_accuracy
from isoglot.evaluation.visualize import (
    VisualizationConfig,
    sentence_pairs_of_tasks,
    visualize_encoder,
    word_pairs_of_tasks,
)
from isoglot.results import Results
from isoglot.visualizations import Visualizations, VisualizationsError
from tests.tiny_corpus import words

SENTENCES = 12


def texts(language: str) -> list[str]:
    return [" ".join(words(language)[start : start + 6]) for start in range(0, 4 * SENTENCES, 4)]


PAIRS = {
    "aa-bb": (texts("aa"), texts("bb")),
    "aa-cc": (texts("aa"), texts("cc")),
}


@pytest.fixture(scope="module")
def shown(encoder, tokenizer) -> Visualizations:
    return visualize_encoder(encoder, tokenizer, PAIRS, fingerprint="f")


@pytest.fixture(scope="module")
def at_layer_2(encoder, tokenizer) -> Visualizations:
    settings = VisualizationConfig(layer=2, sentences_per_language=5, max_grids=1)
    return visualize_encoder(encoder, tokenizer, PAIRS, fingerprint="f", settings=settings)


def test_every_sentence_has_a_place_and_the_same_one_again(shown, encoder, tokenizer, tmp_path):
    assert {language: len(p) for language, p in shown.sentence_map.points.items()} == {
        "aa": SENTENCES,
        "bb": SENTENCES,
        "cc": SENTENCES,
    }
    assert (
        len({place for points in shown.sentence_map.points.values() for place in points})
        > SENTENCES
    )
    assert visualize_encoder(encoder, tokenizer, PAIRS, fingerprint="f") == shown
    shown.write(tmp_path / "visualizations.json")
    assert Visualizations.read(tmp_path / "visualizations.json") == shown


def test_the_layer_is_the_one_that_retrieves_best(shown, at_layer_2, encoder, tokenizer):
    found = {side: embed(encoder, tokenizer, texts(side)) for side in ("aa", "bb", "cc")}
    sums = [
        sum(
            retrieval_accuracy(found["aa"][n], found[other][n], texts(other))
            for other in ("bb", "cc")
        )
        for n in range(len(found["aa"]))
    ]
    assert shown.sentence_map.layer == sums.index(max(sums))
    (grid,) = at_layer_2.grids
    assert (at_layer_2.sentence_map.layer, grid.layer) == (2, 2)
    assert all(len(points) == 5 for points in at_layer_2.sentence_map.points.values())


@torch.no_grad()
def test_grids_are_cosines_of_words(at_layer_2, tokenizer, folder):
    (grid,) = at_layer_2.grids
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
    monkeypatch.setattr("isoglot.evaluation.visualize._READABLE", range(1, 40))
    text = "".join(words("aa"))[:24]
    pieces = [piece for piece in tokenizer.tokenize(text) if piece != "▁"]
    assert 2 < len(pieces) < 40
    pairs = {"aa-bb": ([text] * 6, texts("bb")[:6])}
    (grid,) = visualize_encoder(encoder, tokenizer, pairs, fingerprint="f").grids
    assert len(grid.first) == len(pieces)
    assert "".join(grid.first) == text


def test_another_schema_is_refused(tmp_path):
    file = tmp_path / "visualizations.json"
    file.write_text('{"schema": 99}', encoding="utf-8")
    with pytest.raises(VisualizationsError, match="has schema 99, this version reads 2"):
        Visualizations.read(file)


def test_the_command_writes_them_next_to_the_results(folder, tmp_path, monkeypatch, capsys):
    for name, sides in PAIRS.items():
        lines = "".join(f"{a}\t{b}\n" for a, b in zip(*sides, strict=True))
        (tmp_path / f"{name}.tsv").write_text(lines, encoding="utf-8")
    files = [part for name in PAIRS for part in ("--pairs", str(tmp_path / f"{name}.tsv"))]
    out = tmp_path / "scores" / "results.json"
    command = ["isoglot", "evaluate", str(folder), *files, "--out", str(out), "--visualizations"]
    monkeypatch.setattr("sys.argv", command)
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    assert capsys.readouterr().out.endswith(
        f"visualizations in {out.parent / 'visualizations.json'}\n"
    )
    kept = Visualizations.read(out.parent / "visualizations.json")
    assert kept.fingerprint == Results.read(out).fingerprint
    assert [grid.language for grid in kept.grids] == ["aa-bb", "aa-cc"]


def test_pairs_are_those_of_the_retrieval_tasks(tmp_path):
    (tmp_path / "tatoeba").mkdir()
    rows = "Guten Tag\tGood day\nJa\tYes\n"
    (tmp_path / "tatoeba" / "de-en.tsv").write_text(rows, encoding="utf-8")
    found = sentence_pairs_of_tasks(["xnli", "tatoeba"], tmp_path)
    assert list(found.values()) == [(["Guten Tag", "Ja"], ["Good day", "Yes"])]
    with pytest.raises(IsoglotError, match="name a retrieval task"):
        sentence_pairs_of_tasks(["xnli"], tmp_path)


def dictionary(folder) -> None:
    place = folder / "muse"
    place.mkdir(parents=True)
    rows = [f"{a} {b}" for a, b in zip(words("aa")[:9], words("bb")[:9], strict=True)]
    rows.append(f"{words('aa')[0]} {words('bb')[9]}")
    (place / "en-de.5000-6500.txt").write_text("\n".join(rows), encoding="utf-8")


def test_words_of_dictionaries_are_mapped_from_the_embedding_table(
    encoder, tokenizer, tmp_path, monkeypatch
):
    """Figure 2 of MLM-GC: every word once, in its language, by PCA to 3 dimensions."""
    dictionary(tmp_path)
    pairs = word_pairs_of_tasks(["muse", "tatoeba"], (tmp_path,))
    assert pairs == {
        "en-de": ([*words("aa")[:9]], [words("bb")[0], words("bb")[9], *words("bb")[1:9]])
    }
    reduced = []

    def pca(components, **_):
        class Kept:
            def fit_transform(self, vectors):
                reduced.append((components, torch.tensor(vectors)))
                return vectors[:, :components]

        return Kept()

    monkeypatch.setattr("sklearn.decomposition.PCA", pca)
    shown = visualize_encoder(encoder, tokenizer, {}, fingerprint="f", words=pairs)
    assert shown.sentence_map is None
    assert shown.word_map is not None
    assert shown.word_map.layer is None
    assert shown.word_map.method == "PCA to 3 dimensions, then t-SNE"
    assert {code: len(places) for code, places in shown.word_map.points.items()} == {
        "en": 9, "de": 10,
    }  # fmt: skip
    ((components, vectors),) = reduced
    assert components == 3
    table = encoder.model.get_input_embeddings().weight.detach()
    order = [*words("aa")[:9], words("bb")[0], words("bb")[9], *words("bb")[1:9]]
    for word, vector in zip(order, vectors, strict=True):
        ids = tokenizer(word, add_special_tokens=False)["input_ids"]
        torch.testing.assert_close(vector, table[ids].mean(dim=0))
    few = VisualizationConfig(max_sentences=8)
    shown = visualize_encoder(encoder, tokenizer, {}, fingerprint="f", words=pairs, settings=few)
    assert shown.word_map is not None
    assert [len(places) for places in shown.word_map.points.values()] == [4, 4]


def test_a_file_of_an_earlier_version_has_no_map_of_words(tmp_path, shown):
    file = tmp_path / "visualizations.json"
    shown.write(file)
    content = json.loads(file.read_text())
    assert content["schema"] == 3
    del content["word_map"]
    file.write_text(json.dumps({**content, "schema": 2}))
    assert Visualizations.read(file) == shown
