"""Retrieval against a slow reference in pure Python; what counts as right; the best layer.

Blocked neighbors against brute force; margins against their formula.
"""

from __future__ import annotations

import math
import zlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from isoglot.averaging import best_layer
from isoglot.errors import ModelError
from isoglot.evaluation.data import ScoringJob
from isoglot.evaluation.retrieval import (
    IDENTICAL,
    best_neighbors,
    nearest_neighbors,
    ratio_margins,
    retrieval_accuracy,
    score_retrieval,
)
from isoglot.evaluation.settings import FeatureConfig
from isoglot.results import Score
from isoglot.tasks import find_task
from isoglot.tasks.base import TaskSplit
from isoglot.tasks.bitext import UserPairs
from isoglot.tasks.examples import SentencePair
from tests.tiny_corpus import words


def _cosine(first, second):
    dot = math.fsum(a * b for a, b in zip(first, second, strict=True))
    return dot / (math.hypot(*first) * math.hypot(*second))


def reference(queries, candidates, texts):
    """The accuracy, and the smallest gap between a best and a second best candidate."""
    right, gap = 0, math.inf
    for number, query in enumerate(queries):
        similar = [_cosine(query, candidate) for candidate in candidates]
        best = max(range(len(candidates)), key=similar.__getitem__)
        right += texts[best] == texts[number]
        others = [s for s, text in zip(similar, texts, strict=True) if text != texts[best]]
        gap = min([gap, *(similar[best] - other for other in others)])
    return right / len(queries), gap


@st.composite
def sides(draw):
    number, width = draw(st.integers(1, 7)), draw(st.integers(1, 4))
    vector = st.lists(st.integers(-9, 9), min_size=width, max_size=width).filter(any)
    vectors = st.lists(vector, min_size=number, max_size=number)
    texts = draw(st.lists(st.sampled_from("abcd"), min_size=number, max_size=number))
    return draw(vectors), draw(vectors), texts


@settings(max_examples=60, deadline=None)
@given(sides(), st.integers(1, 3))
def test_against_the_reference(sides, block):
    queries, candidates, texts = sides
    expected, gap = reference(queries, candidates, texts)
    assume(gap > 1e-6)  # with a tie either answer is right
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(score_retrieval.__globals__, "_BLOCK", block)
        found = retrieval_accuracy(
            torch.tensor(queries).float(), torch.tensor(candidates).float(), texts
        )
    assert found == expected


def test_length_does_not_matter():
    queries = torch.eye(3)
    candidates = torch.eye(3) * torch.tensor([0.1, 5.0, 100.0])[:, None]
    assert retrieval_accuracy(queries, candidates, ["a", "b", "c"]) == 1.0


def test_the_same_text_is_a_right_answer():
    queries = torch.eye(3)
    swapped = torch.eye(3)[[1, 0, 2]]
    assert retrieval_accuracy(queries, swapped, ["a", "b", "c"]) == pytest.approx(1 / 3)
    assert retrieval_accuracy(queries, swapped, ["a", "a", "c"]) == 1.0


def score(layer, language, value):
    return Score(
        task="retrieval", version=1, language=language, metric="accuracy@1", value=value, count=9,
        layer=layer,
    )  # fmt: skip


def test_centering_is_over_sentences_against_a_reference_in_float64(monkeypatch):
    """Each language has a large vector of its own; without it the translations are nearest."""
    rng = np.random.default_rng(4)
    shared = rng.normal(size=(2, 30, 6))
    noise = rng.normal(size=(2, 2, 30, 6)) * 0.4
    offsets = rng.normal(size=(2, 2, 1, 6)) * 5
    sides = shared + noise + offsets  # (language, layer, sentence, D)
    texts = [[f"{side}{n}" for n in range(30)] for side in "ab"]
    by_text = {text: sides[s][:, n] for s in (0, 1) for n, text in enumerate(texts[s])}

    def embedded(encoder, tokenizer, some, **_):
        return torch.tensor(np.stack([by_text[text] for text in some], axis=1)).float()

    def groups(encoder, number):
        assert number == 60, "the vectors of both sides are in memory"
        return [range(2)]

    monkeypatch.setitem(score_retrieval.__globals__, "layer_groups", groups)
    monkeypatch.setitem(score_retrieval.__globals__, "embed", embedded)
    pairs = [SentencePair(first=a, second=b) for a, b in zip(*texts, strict=True)]
    nobody: Any = None
    split = TaskSplit("aa-bb", "test", ())
    for center in (False, True):
        job = ScoringJob(nobody, nobody, UserPairs(), split, FeatureConfig(center=center))
        found = {(s.layer, s.metric): s.value for s in score_retrieval(job, pairs)}
        for layer in (0, 1):
            first, second = sides[:, layer]
            if center:
                first, second = first - first.mean(axis=0), second - second.mean(axis=0)
            there, back = (
                brute_force(first, second, texts[1], 0),
                brute_force(second, first, texts[0], 0),
            )
            assert found[layer, "accuracy@1 aa→bb"] == there
            assert found[layer, "accuracy@1 bb→aa"] == back
            assert found[layer, "accuracy@1"] == (there + back) / 2
            assert (there > 0.5) == center, "the offset hides what is shared"


def test_identical_texts_are_another_metric(monkeypatch):
    """Two of four pairs are names; only they are found."""
    texts = ["Paris", "one", "NATO", "two"], ["Paris", "uno", "nato", "dos"]
    vectors = {"Paris": [1.0, 0, 0, 0], "one": [0, 1.0, 0, 0], "NATO": [0, 0, 1.0, 0],
               "two": [0, 0, 0, 1.0], "uno": [0, 0, 0, 1.0], "nato": [0, 0, 1.0, 0],
               "dos": [0, 1.0, 0, 0]}  # fmt: skip
    monkeypatch.setitem(score_retrieval.__globals__, "layer_groups", lambda *_: [range(1)])
    monkeypatch.setitem(
        score_retrieval.__globals__,
        "embed",
        lambda encoder, tokenizer, some, **_: torch.tensor([[vectors[text] for text in some]]),
    )
    pairs = [SentencePair(first=a, second=b) for a, b in zip(*texts, strict=True)]
    nobody: Any = None
    job = ScoringJob(nobody, nobody, UserPairs(), TaskSplit("en-es", "test", ()), FeatureConfig())
    found = {s.metric: s for s in score_retrieval(job, pairs) if s.layer is None}
    assert found["accuracy@1"].value == 0.5
    without = found[f"accuracy@1 {IDENTICAL}"]
    assert (without.value, without.count) == (0.0, 2)
    assert IDENTICAL not in " ".join(s.metric for s in score_retrieval(job, pairs[1::2]))


def halves(layer, language, even, odd):
    return replace(score(layer, language, (even + odd) / 2), halves=(even, odd))


def test_the_best_layer_is_chosen_on_one_half_and_scored_on_the_other():
    scores = [
        halves(0, "en-de", 0.9, 0.2), halves(0, "en-sw", 0.5, 0.1),
        halves(1, "en-de", 0.5, 0.8), halves(1, "en-sw", 0.6, 0.4),
        halves(2, "en-de", 0.1, 0.7), halves(2, "en-sw", 0.2, 0.3),
    ]  # fmt: skip
    found = best_layer(scores)
    assert found is not None
    assert found.layers == (0, 1), "0 on the even examples, 1 on the odd ones"
    assert found.by_language == pytest.approx({"en-de": (0.2 + 0.5) / 2, "en-sw": (0.1 + 0.6) / 2})
    assert found.average == pytest.approx((0.35 + 0.35) / 2)
    assert found.name == "layers 0, 1"


def test_a_language_without_scores_at_a_chosen_layer_is_left_out():
    scores = [halves(0, "en-de", 0.9, 0.1), halves(0, "en-sw", 0.9, 0.1),
              halves(1, "en-de", 0.1, 0.9)]  # fmt: skip
    found = best_layer(scores)
    assert found is not None
    assert found.by_language == {"en-de": pytest.approx(0.1)}


def test_the_best_layer_is_best_on_average_over_languages():
    scores = [
        halves(0, "en-de", 0.9, 0.9), halves(0, "en-de", 0.7, 0.7), halves(0, "en-sw", 0.1, 0.1),
        halves(1, "en-de", 0.5, 0.5), halves(1, "en-de", 0.6, 0.6), halves(1, "en-sw", 0.5, 0.5),
        replace(score(1, "en-de", 0.9), layer=None),
    ]  # fmt: skip
    found = best_layer(scores)
    assert found is not None
    assert (found.name, found.by_language) == (
        "layer 1", {"en-de": pytest.approx(0.55), "en-sw": 0.5},
    )  # fmt: skip


def test_a_layer_that_would_have_to_be_chosen_on_the_test_is_not():
    assert best_layer([halves(0, "en-de", 0.9, 0.9), score(1, "en-de", 0.5)]) is None
    assert best_layer([replace(score(1, "en-de", 0.9), layer=None)]) is None


def test_of_equal_layers_the_lower_one():
    found = best_layer([halves(layer, "en-de", 0.5, 0.5) for layer in (2, 0, 1)])
    assert found is not None
    assert found.layers == (0,)


def test_where_less_is_better_the_best_layer_has_least():
    scores = [replace(halves(layer, "en-de", value, value), higher_is_better=False)
              for layer, value in enumerate((0.4, 0.2, 0.3))]  # fmt: skip
    found = best_layer(scores)
    assert found is not None
    assert found.layers == (1,)


def test_all_layers_and_both_directions(encoder, tokenizer):
    first = [f"{a} {b}" for a, b in zip(words("aa")[:9], words("aa")[9:18], strict=True)]
    pairs = [SentencePair(first=text, second=text) for text in first]
    centered = FeatureConfig(center=True)
    scores = score_retrieval(
        ScoringJob(encoder, tokenizer, UserPairs(), TaskSplit("aa-xx", "test", ()), centered), pairs
    )
    ways = ("", " aa→xx", " xx→aa")
    assert [(s.layer, s.metric) for s in scores] == [
        (layer, f"accuracy@1{way}") for layer in (*range(4), None) for way in ways
    ]
    assert {(s.task, s.scenario) for s in scores} == {("retrieval", "centered")}
    assert {(s.value, s.count, s.language) for s in scores} == {(1.0, 9, "aa-xx")}


def hashed(texts):
    """(N, 256) vectors of texts: which groups of three letters they have."""
    vectors = np.zeros((len(texts), 256))
    for row, text in zip(vectors, texts, strict=True):
        for start in range(len(text) + 2):
            number = zlib.crc32(f"  {text}  "[start : start + 3].encode())
            row[number % 256] += number / 2**32 - 0.5  # no two sums are alike: no ties
    return vectors


def brute_force(first, second, texts, k):
    """Accuracy in float64 from all similarities; by the ratio margin over k neighbors, or none."""
    first, second = (side / np.linalg.norm(side, axis=1, keepdims=True) for side in (first, second))
    similar = first @ second.T
    if k:
        of_first = np.sort(similar, axis=1)[:, -k:].mean(axis=1)
        of_second = np.sort(similar, axis=0)[-k:].mean(axis=0)
        near = similar >= np.sort(similar, axis=1)[:, -k][:, None]
        similar = np.where(near, similar / (of_first[:, None] + of_second) * 2, -np.inf)
    said = similar.argmax(axis=1)
    return sum(texts[best] == text for best, text in zip(said, texts, strict=True)) / len(texts)


@pytest.mark.parametrize("margin", [False, True])
@pytest.mark.parametrize("code", ["de", "sw"])
def test_real_sentences_against_brute_force(data_folder, monkeypatch, code, margin):
    monkeypatch.setitem(score_retrieval.__globals__, "layer_groups", lambda *_: [range(1)])
    monkeypatch.setitem(
        score_retrieval.__globals__,
        "embed",
        lambda encoder, tokenizer, texts, **_: torch.tensor(hashed(texts)).float()[None],
    )
    task = find_task("tatoeba")
    part = task.find_split(data_folder, f"{code}-en", "test")
    nobody: Any = None
    scores = score_retrieval(ScoringJob(nobody, nobody, task, part, FeatureConfig(margin=margin)))
    pairs = task.read(part)
    texts = [pair.first for pair in pairs], [pair.second for pair in pairs]
    first, second = map(hashed, texts)
    k = 4 if margin else 0
    there, back = brute_force(first, second, texts[1], k), brute_force(second, first, texts[0], k)
    assert {s.metric: s.value for s in scores if IDENTICAL not in s.metric} == {
        "accuracy@1": (there + back) / 2,
        f"accuracy@1 {code}→en": there,
        f"accuracy@1 en→{code}": back,
    }
    assert max(there, back) > 3 / len(pairs), "better than chance, or nothing was compared"


def brute(first, second, k):
    cosines = F.normalize(first.double(), dim=-1) @ F.normalize(second.double(), dim=-1).T
    return cosines.topk(min(k, len(second)), dim=1)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 23), st.integers(1, 23), st.integers(1, 5), st.integers(1, 9), st.integers(0, 99)
)
def test_both_directions_whatever_the_blocks(rows, columns, k, block, seed):
    generator = torch.Generator().manual_seed(seed)
    first = torch.randn(rows, 6, generator=generator)
    second = torch.randn(columns, 6, generator=generator)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(nearest_neighbors.__globals__, "_BLOCK", block)
        there, back = nearest_neighbors(first, second, k=k)
    for found, expected in ((there, brute(first, second, k)), (back, brute(second, first, k))):
        assert torch.equal(found.indices, expected.indices)
        torch.testing.assert_close(found.cosines.double(), expected.values, atol=1e-6, rtol=1e-5)


def test_thousands_of_vectors():
    generator = torch.Generator().manual_seed(0)
    first = torch.randn(3000, 64, generator=generator)
    second = first + torch.randn(3000, 64, generator=generator)
    there, back = nearest_neighbors(first, second)
    assert torch.equal(there.indices, brute(first, second, 1).indices)
    assert torch.equal(back.indices, brute(second, first, 1).indices)


def test_the_margin_is_a_ratio_to_both_neighborhoods():
    generator = torch.Generator().manual_seed(1)
    first, second = torch.randn(9, 5, generator=generator), torch.randn(11, 5, generator=generator)
    there, back = nearest_neighbors(first, second, k=3)
    cosines = F.normalize(first, dim=-1) @ F.normalize(second, dim=-1).T
    found = ratio_margins(there, back)
    for i in range(9):
        for rank, j in enumerate(there.indices[i].tolist()):
            around_i = cosines[i].sort(descending=True).values[:3].mean()
            around_j = cosines[:, j].sort(descending=True).values[:3].mean()
            torch.testing.assert_close(found[i, rank], cosines[i, j] / ((around_i + around_j) / 2))


def test_a_hub_is_chosen_by_cosine_and_not_by_margin():
    """The second candidate is near everything; the margin takes that into account."""
    first = torch.tensor([[0.0, 2.0, 2.0], [2.0, 2.0, 1.0], [1.0, 1.0, 0.0]])
    second = torch.tensor([[-1.0, 2.0, 0.0], [0.0, 2.0, 0.0], [2.0, 2.0, -3.0]])
    there, back = nearest_neighbors(first, second, k=2)
    assert best_neighbors(there, back, margin=False)[0].tolist() == [1, 1, 1]
    assert best_neighbors(there, back, margin=True)[0].tolist() == [0, 1, 2]


@pytest.mark.parametrize("side", ["first", "second"])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_vector_that_is_not_finite_is_refused(side, value):
    """One NaN candidate would be the nearest of every query."""
    vectors = {"first": torch.randn(3, 4), "second": torch.randn(5, 4)}
    vectors[side][1, 2] = value
    with pytest.raises(ModelError, match=f"Vector 2 of . of the {side} side is not finite"):
        nearest_neighbors(vectors["first"], vectors["second"])
