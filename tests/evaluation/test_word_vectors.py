"""Dictionaries, analogies and similarity: each against a slow version on the plain vectors."""

from __future__ import annotations

import math

import pytest
import torch

from isoglot.evaluation.data import ScoringJob
from isoglot.evaluation.settings import FeatureConfig
from isoglot.evaluation.tokenize_texts import tokenize_words
from isoglot.evaluation.word_vectors import (
    csls,
    score_analogy,
    score_lexicon,
    score_similarity,
    word_vectors,
)
from isoglot.intervals import correlation_interval
from isoglot.tasks import find_task
from isoglot.tasks.base import TaskSplit
from tests.tiny_corpus import words

SETTINGS = FeatureConfig()


def cosine(a, b):
    dot = math.fsum(x * y for x, y in zip(a, b, strict=True))
    return dot / (math.hypot(*a) * math.hypot(*b))


def vectors(encoder, tokenizer, wanted):
    """Depth (None for the table) -> word -> vector."""
    unique = list(dict.fromkeys(wanted))
    return {
        found.layer: dict(zip(unique, found.raw(unique, "aa").double().tolist(), strict=True))
        for found in word_vectors(encoder, tokenizer, [(word, "aa") for word in unique])
    }


def by_metric(scores):
    return {(score.metric.removesuffix(" table"), score.layer): score for score in scores}


def test_the_table_is_the_mean_of_a_words_pieces(encoder, tokenizer):
    word = words("aa")[0]
    ids = tokenizer(word, add_special_tokens=False)["input_ids"]
    table = encoder.model.get_input_embeddings().weight.detach()
    found = next(iter(word_vectors(encoder, tokenizer, [(word, "aa")])))
    assert found.layer is None
    torch.testing.assert_close(found.raw([word], "aa")[0], table[ids].mean(dim=0))
    assert tokenize_words(tokenizer, [word, "x"])[0] == ids
    assert tokenize_words(tokenizer, []) == []


def test_pieces_of_a_tokenizer_that_tells_spaces():
    def tokenizer(text, add_special_tokens):
        texts = [text] if isinstance(text, str) else text
        ids = [[ord(c) for c in t.replace(" a", "A").replace(" b", "B")] for t in texts]
        return {"input_ids": ids[0] if isinstance(text, str) else ids}

    assert tokenize_words(tokenizer, ["a", "bc"]) == [[ord("A")], [ord("B"), ord("c")]]


@pytest.fixture
def lexicon(tmp_path):
    (tmp_path / "muse").mkdir()
    pairs = [f"{a} {b}" for a, b in zip(words("aa")[:14], words("bb")[:14], strict=True)]
    pairs.append(f"{words('aa')[0]} {words('bb')[20]}")
    (tmp_path / "muse/en-de.5000-6500.txt").write_text("\n".join(pairs), encoding="utf-8")
    return find_task("muse"), find_task("muse").find_split(tmp_path, "en-de", "test")


def test_dictionaries(encoder, tokenizer, lexicon):
    task, part = lexicon
    entries = task.read(part)
    targets = [word for entry in entries for word in entry.translations]
    found = by_metric(score_lexicon(ScoringJob(encoder, tokenizer, task, part, SETTINGS)))
    depths = vectors(encoder, tokenizer, [entry.word for entry in entries] + targets)
    assert set(depths) == {None, 0, 1, 2, 3}
    for layer, vector in depths.items():
        right = 0
        pairs = []
        for entry in entries:
            near = {word: cosine(vector[entry.word], vector[word]) for word in targets}
            right += max(near, key=lambda word: near[word]) in entry.translations
            pairs += [near[word] for word in entry.translations]
        assert found["p@1", layer].value == right / len(entries)
        assert found["cosine", layer].value == pytest.approx(sum(pairs) / len(pairs), abs=1e-5)
        assert {"p@5", "p@1 csls", "p@5 csls"} <= {metric for metric, at in found if at == layer}
    assert found["p@1", None].metric == "p@1 table"
    assert found["p@1", 1].count == 14


def test_csls_by_hand(monkeypatch):
    monkeypatch.setitem(csls.__globals__, "_CSLS_NEIGHBORS", 2)
    cosines = torch.tensor([[0.9, 0.5, 0.1], [0.8, 0.3, 0.2]])
    found = csls(cosines)
    assert float(found[0, 0]) == pytest.approx(2 * 0.9 - (0.9 + 0.5) / 2 - (0.9 + 0.8) / 2)
    assert float(found[1, 2]) == pytest.approx(2 * 0.2 - (0.8 + 0.3) / 2 - (0.1 + 0.2) / 2)


def test_analogies(encoder, tokenizer, tmp_path):
    (tmp_path / "analogy").mkdir()
    some = words("aa")[:10]
    rows = [f"{some[i]} {some[i + 1]} {some[i + 2]} {some[i + 3]}" for i in range(7)]
    text = "\n".join([": one", *rows[:4], ": two", *rows[4:]])
    (tmp_path / "analogy/questions-words.txt").write_text(text, encoding="utf-8")
    task = find_task("analogy")
    part = task.find_split(tmp_path, "en", "test")
    examples = task.read(part)
    found = by_metric(score_analogy(ScoringJob(encoder, tokenizer, task, part, SETTINGS)))
    for layer, vector in vectors(encoder, tokenizer, some).items():
        unit = {w: [x / math.hypot(*v) for x in v] for w, v in vector.items()}
        right, cosines = 0, []
        for e in examples:
            sought = [b - a + c for a, b, c in zip(unit[e.a], unit[e.b], unit[e.c], strict=True)]
            near = {w: cosine(sought, v) for w, v in unit.items() if w not in (e.a, e.b, e.c)}
            right += max(near, key=lambda w: near[w]) == e.d
            raw = zip(vector[e.a], vector[e.b], vector[e.c], strict=True)
            cosines.append(cosine([b - a + c for a, b, c in raw], vector[e.d]))
        assert found["accuracy", layer].value == pytest.approx(right / 7)
        assert found["cosine", layer].value == pytest.approx(sum(cosines) / 7, abs=1e-5)
        assert found["cosine one", layer].value == pytest.approx(sum(cosines[:4]) / 4, abs=1e-5)


def test_the_royal_table_has_its_sixteen_cosines(encoder, tokenizer, tmp_path):
    task = find_task("analogy-royal")
    found = score_analogy(ScoringJob(encoder, tokenizer, task, task.splits(tmp_path)[0], SETTINGS))
    rows = [s for s in found if s.metric.startswith("cosine ") and s.metric.endswith(" table")]
    names = {score.metric for score in rows}
    assert "cosine King-Man+Woman Queen table" in names
    assert "cosine König-Mann+Frau Königin table" in names
    assert len(names) == 17, "sixteen and their mean"


def test_similarity(encoder, tokenizer, tmp_path):
    (tmp_path / "word_similarity").mkdir()
    some = words("aa")[:12]
    rows = [f"{some[i]}\t{some[i + 6]}\t{i}.5" for i in range(6)]
    (tmp_path / "word_similarity/en.mine.txt").write_text("\n".join(rows), encoding="utf-8")
    other = "\n".join(f"{some[i]}\t{some[i + 5]}\t{-i}.5" for i in range(5))
    (tmp_path / "word_similarity/en.other.txt").write_text(other, encoding="utf-8")
    task = find_task("word-similarity")
    part = task.find_split(tmp_path, "en", "test")
    found = by_metric(score_similarity(ScoringJob(encoder, tokenizer, task, part, SETTINGS)))
    for layer, vector in vectors(encoder, tokenizer, some).items():
        cosines = [cosine(vector[some[i]], vector[some[i + 6]]) for i in range(6)]
        cosines += [cosine(vector[some[i]], vector[some[i + 5]]) for i in range(5)]
        expected = task.score(task.read(part), cosines, "en")
        assert found["spearman", layer].value == pytest.approx(expected["spearman"])
        below, above = [], []
        for name, count in (("mine", 6), ("other", 5)):
            one = found[f"spearman {name}", layer]
            assert one.count == count
            assert (one.low, one.high) == correlation_interval(one.value, count)
            assert one.low is not None
            assert one.high is not None
            below.append(one.value - one.low)
            above.append(one.high - one.value)
        mean = found["spearman", layer]
        ends = mean.value - math.hypot(*below) / 2, mean.value + math.hypot(*above) / 2
        assert (mean.low, mean.high) == pytest.approx(ends)
        assert mean.high is not None
        assert mean.high <= 1


def test_most_takes_the_top(encoder, tokenizer, lexicon):
    task, part = lexicon
    few = FeatureConfig(limit=3)
    found = score_lexicon(ScoringJob(encoder, tokenizer, task, part, few))
    assert {score.scenario for score in found} == {"limit=3"}
    counts = {score.metric: score.count for score in found}
    assert {name: count for name, count in counts.items() if "cosine" not in name} == {
        name: 3 for name in counts if "cosine" not in name
    }
    assert counts["cosine"] == counts["cosine table"] == 4, "one word has two translations"
    assert isinstance(part, TaskSplit)
