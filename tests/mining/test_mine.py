"""Mining end to end: pairs against float64 by hand, files, interruption, models, languages."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch

import isoglot
from isoglot.errors import CorpusError, IsoglotError, LockedError
from isoglot.locks import lock_folder
from isoglot.mining import mine as module
from isoglot.mining import vectors
from isoglot.mining.config import Index, MineConfig
from isoglot.mining.vectors import SentenceEncoder
from isoglot.models.language_embeddings import save as save_languages

EVERYTHING = MineConfig(threshold=0.0)


def mined(sides: tuple[list[str], list[str]], model, out=None, **named) -> list[module.MinedPair]:
    return isoglot.mine(sides[0], sides[1], model, out, **named)


def proposals_by_hand(first, second, k):
    """Vectors of both sides -> {(i, j): margin} that each side proposes, in pure Python."""

    def cosine(a, b):
        dot = math.fsum(x * y for x, y in zip(a, b, strict=True))
        return dot / math.hypot(*a) / math.hypot(*b)

    table = [[cosine(a, b) for b in second] for a in first]
    columns = [list(column) for column in zip(*table, strict=True)]

    def nearest(row):
        return sorted(range(len(row)), key=lambda n: -row[n])[:k]

    def around(row):
        return math.fsum(row[n] for n in nearest(row)) / len(nearest(row))

    def margin(i, j):
        return table[i][j] / ((around(table[i]) + around(columns[j])) / 2)

    ahead = [(i, max(nearest(row), key=lambda j: margin(i, j))) for i, row in enumerate(table)]
    back = [(max(nearest(col), key=lambda i: margin(i, j)), j) for j, col in enumerate(columns)]
    return {pair: margin(*pair) for pair in ahead}, {pair: margin(*pair) for pair in back}


def mined_by_hand(first, second, k, strategy):
    """{(i, j): margin} that the strategy mines."""
    ahead, back = proposals_by_hand(first, second, k)
    if strategy in ("forward", "backward"):
        return ahead if strategy == "forward" else back
    if strategy == "intersection":
        return {pair: ahead[pair] for pair in ahead if pair in back}
    taken, used = {}, set()
    for (i, j), score in sorted({**ahead, **back}.items(), key=lambda item: -item[1]):
        if ("a", i) not in used and ("b", j) not in used:
            taken[i, j] = score
            used |= {("a", i), ("b", j)}
    return taken


@pytest.mark.parametrize("strategy", ["max", "intersection", "forward", "backward"])
@pytest.mark.parametrize("folder", ["model", "sentence-transformers"])
def test_pairs_are_those_of_the_slow_version(run, sides, strategy, folder):
    config = MineConfig(threshold=0.0, strategy=strategy, num_neighbors=3)
    pairs = mined(sides, run / folder, config=config)
    library = pytest.importorskip("sentence_transformers")
    model = library.SentenceTransformer(str(run / "sentence-transformers"), device="cpu")
    first, second = (list(dict.fromkeys(side)) for side in sides)
    one, other = (model.encode(texts).astype("float64").tolist() for texts in (first, second))
    expected = mined_by_hand(one, other, 3, strategy)
    named = {(first[i], second[j]): score for (i, j), score in expected.items()}
    assert {(pair.source, pair.target) for pair in pairs} == set(named)
    for score, source, target in pairs:
        assert score == pytest.approx(named[source, target], rel=1e-3)
    scores = [pair.score for pair in pairs]
    assert scores == sorted(scores, reverse=True)


def test_a_plain_folder_gives_mean_states(plain, run, sides):
    expected = mined(sides, run / "model", config=EVERYTHING)
    found = mined(sides, plain, config=EVERYTHING)
    assert found != expected, "the run's folder projects"
    encoder = SentenceEncoder(plain)
    tokens = encoder.encode(["x"]).shape
    assert tokens == (1, 32)


def test_the_file_has_scores_sources_and_targets(plain, sides, tmp_path):
    first, second = tmp_path / "a.txt", tmp_path / "b.txt"
    lines = [*sides[0], "", sides[0][3], "with\ttab"]
    first.write_text("\n".join(lines) + "\n", encoding="utf-8")
    second.write_text("\n".join(sides[1]), encoding="utf-8")
    notes: list[str] = []
    stages: list[tuple[str, int, int | None]] = []
    out = tmp_path / "new/pairs.tsv"
    pairs = isoglot.mine(
        first, second, plain, out, config=EVERYTHING, note=notes.append,
        progress=lambda *news: stages.append(news),
    )  # fmt: skip
    rows = [line.split("\t") for line in out.read_text("utf-8").splitlines()]
    assert {len(row) for row in rows} == {3}
    assert [(s.replace("\t", " "), t) for _, s, t in pairs] == [(s, t) for _, s, t in rows]
    assert [float(row[0]) for row in rows] == pytest.approx([p.score for p in pairs], abs=1e-5)
    assert f"{first}: 63 lines, 61 sentences (1 repeated, 1 blank)" in notes
    assert stages[-1] == ("search", 61, 61)
    assert ("encode a.txt", 61, 61) in stages
    assert sorted(path.name for path in out.parent.iterdir()) == ["pairs.tsv"]


@pytest.mark.parametrize(("threshold", "top"), [(1.02, None), (0.0, 5), (1.02, 3), (99.0, None)])
def test_threshold_and_top(plain, sides, threshold, top):
    whole = mined(sides, plain, config=EVERYTHING)
    config = MineConfig(threshold=threshold, top=top)
    expected = [pair for pair in whole if pair.score >= threshold][:top]
    assert mined(sides, plain, config=config) == expected


def test_an_interrupted_mining_continues(plain, sides, tmp_path, monkeypatch):
    expected = mined(sides, plain, config=EVERYTHING)
    monkeypatch.setattr(vectors, "_CHUNK", 16)
    out = tmp_path / "pairs.tsv"
    encoded: list[int] = []
    encode = SentenceEncoder.encode

    def failing(self, texts, *more, **named):
        if len(encoded) == 5:
            raise KeyboardInterrupt
        encoded.append(len(texts))
        return encode(self, texts, *more, **named)

    monkeypatch.setattr(SentenceEncoder, "encode", failing)
    with pytest.raises(KeyboardInterrupt):
        mined(sides, plain, out, config=EVERYTHING)
    assert encoded == [16, 16, 16, 12, 16]
    state = json.loads((tmp_path / "pairs.tsv.vectors/second.json").read_text())
    assert state["done"] == 16
    # a chunk that was being written is cut off
    with (tmp_path / "pairs.tsv.vectors/second.vectors").open("ab") as file:
        file.write(b"\0" * 100)
    encoded[:] = [0]
    assert mined(sides, plain, out, config=EVERYTHING) == expected
    assert encoded == [0, 16, 16, 16, 6]
    assert [path.name for path in tmp_path.iterdir()] == ["pairs.tsv"]


def test_kept_vectors_are_used_again_unless_something_changed(plain, sides, tmp_path, monkeypatch):
    calls: list[int] = []
    encode = SentenceEncoder.encode

    def counting(self, texts, *more, **named):
        calls.append(len(texts))
        return encode(self, texts, *more, **named)

    monkeypatch.setattr(SentenceEncoder, "encode", counting)

    def called(first, second, **changes) -> list[int]:
        calls.clear()
        isoglot.mine(first, second, plain, config=MineConfig(**changes), vectors=tmp_path / "work")
        return list(calls)

    first, second = sides
    assert called(first, second) == [60, 70]
    assert called(first, second, strategy="forward", threshold=1.1, num_neighbors=2) == []
    assert called(first[:-1], second) == [59]
    assert called(first[:-1], second, vector_type="float16") == [59, 70]
    (tmp_path / "work/second.json").write_text("{")
    assert called(first[:-1], second, vector_type="float16") == [70]


def test_float16_vectors_give_nearly_the_same_margins(plain, sides):
    whole = {(s, t): m for m, s, t in mined(sides, plain, config=EVERYTHING)}
    config = MineConfig(threshold=0.0, vector_type="float16")
    half = mined(sides, plain, config=config)
    shared = [(margin, whole[s, t]) for margin, s, t in half if (s, t) in whole]
    assert len(shared) > 0.8 * len(whole)
    for margin, exact in shared:
        assert margin == pytest.approx(exact, abs=2e-3)


def test_faiss_finds_the_same_pairs_when_all_clusters_are_searched(plain, sides):
    pytest.importorskip("faiss")
    expected = mined(sides, plain, config=EVERYTHING)
    config = MineConfig(threshold=0.0, index="faiss", num_clusters=4, num_probes=4)
    found = mined(sides, plain, config=config)
    assert {pair[1:] for pair in found} == {pair[1:] for pair in expected}


def test_above_a_million_sentences_faiss_is_used(plain, sides, monkeypatch):
    used: list[str] = []

    def search_faiss(*_, **__):
        used.append("faiss")
        raise IsoglotError("stop")

    monkeypatch.setattr(module, "search_faiss", search_faiss)
    monkeypatch.setattr(module, "EXACT_SENTENCES", 69)
    tried: list[tuple[Index, int]] = [("exact", 0), ("auto", 1)]
    for index, expected in tried:
        try:
            mined(sides, plain, config=MineConfig(index=index))
        except IsoglotError as error:
            assert str(error) == "stop"  # noqa: PT017
        assert len(used) == expected


def test_a_model_with_language_embeddings_needs_languages(plain, sides, tmp_path):
    import shutil

    folder = tmp_path / "model"
    shutil.copytree(plain, folder)
    table = torch.nn.Embedding(2, 32)
    save_languages(folder, table, ["aa", "bb"], used_on="all")
    with pytest.raises(IsoglotError, match=r"language embeddings \(aa, bb\): name the languages"):
        mined(sides, folder)
    without = MineConfig(threshold=0.0, language_embeddings=False)
    assert mined(sides, folder, config=without) == mined(sides, plain, config=EVERYTHING)
    one = mined(sides, folder, languages=("aa", "bb"), config=EVERYTHING)
    other = mined(sides, folder, languages=("bb", "aa"), config=EVERYTHING)
    assert one != other
    notes: list[str] = []
    mined(sides, folder, languages=("aa", "sw"), note=notes.append)
    assert any("no language embedding of sw" in note for note in notes)


def test_long_sentences_are_told(run, sides):
    notes: list[str] = []
    isoglot.mine([" ".join(sides[0])], sides[1], run / "model", note=notes.append)
    assert any("1 sentences fill the model's positions" in note for note in notes)


def test_what_cannot_be_mined_is_refused(plain, sides, tmp_path):
    with pytest.raises(CorpusError, match=r"the second side: has no sentences \(2 lines\)"):
        isoglot.mine(sides[0], ["", " "], plain)
    with pytest.raises(CorpusError, match=r"no\.txt"):
        isoglot.mine(sides[0], tmp_path / "no.txt", plain)
    (tmp_path / "a.csv").write_text("text\na\n")
    with pytest.raises(CorpusError, match=r"a\.csv: is CSV by its ending, .* a sentence on each"):
        isoglot.mine(sides[0], tmp_path / "a.csv", plain)
    with pytest.raises(IsoglotError, match="num_neighbors must be from 1 to 1,000"):
        MineConfig(num_neighbors=0)
    with lock_folder(tmp_path / "pairs.tsv.vectors"):
        import threading

        raised: list[BaseException] = []

        def other() -> None:
            try:
                mined(sides, plain, tmp_path / "pairs.tsv")
            except LockedError as error:
                raised.append(error)

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert "is being written by another command" in str(raised[0])
    assert not Path(tmp_path / "pairs.tsv").exists()
