"""Retrieval against a slow reference in pure Python; what counts as right; the best layer.

Blocked neighbours against brute force; margins against their formula; mining by hand.
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
from isoglot.evaluation.data import ScoringJob
from isoglot.evaluation.retrieval import (
    best_neighbors,
    mine_pairs,
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


def test_the_best_layer_is_best_on_average_over_languages():
    scores = [
        score(0, "en-de", 0.9), score(0, "en-de", 0.7), score(0, "en-sw", 0.1),
        score(1, "en-de", 0.5), score(1, "en-de", 0.6), score(1, "en-sw", 0.5),
    ]  # fmt: skip
    assert best_layer(scores) == (1, {"en-de": pytest.approx(0.55), "en-sw": 0.5})


def test_of_equal_layers_the_lower_one():
    scores = [score(layer, "en-de", 0.5) for layer in (2, 0, 1)]
    assert best_layer(scores)[0] == 0


def test_where_less_is_better_the_best_layer_has_least():
    scores = [replace(score(layer, "en-de", value), higher_is_better=False)
              for layer, value in enumerate((0.4, 0.2, 0.3))]  # fmt: skip
    assert best_layer(scores)[0] == 1


def test_all_layers_and_both_directions(encoder, tokenizer):
    first = [f"{a} {b}" for a, b in zip(words("aa")[:9], words("aa")[9:18], strict=True)]
    pairs = [SentencePair(first=text, second=text) for text in first]
    centred = FeatureConfig(center=True)
    scores = score_retrieval(
        ScoringJob(encoder, tokenizer, UserPairs(), TaskSplit("aa-xx", "test", ()), centred), pairs
    )
    ways = ("", " aa→xx", " xx→aa")
    assert [(s.layer, s.metric) for s in scores] == [
        (layer, f"accuracy@1{way}") for layer in range(4) for way in ways
    ]
    assert {(s.task, s.scenario) for s in scores} == {("retrieval", "centred")}
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
    """Accuracy in float64 from all similarities; by the ratio margin over k neighbours, or none."""
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
    assert {score.metric: score.value for score in scores} == {
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


def test_the_margin_is_a_ratio_to_both_neighbourhoods():
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


def test_each_sentence_is_mined_once():
    generator = torch.Generator().manual_seed(2)
    first = torch.randn(40, 64, generator=generator)
    second = torch.cat([first[:25] + 0.3 * torch.randn(25, 64, generator=generator),
                        torch.randn(10, 64, generator=generator)])  # fmt: skip
    found = mine_pairs(first, second, k=4)
    assert len({i for i, _, _ in found}) == len({j for _, j, _ in found}) == len(found)
    assert [margin for *_, margin in found] == sorted((m for *_, m in found), reverse=True)
    assert {(i, j) for i, j, _ in found[:20]} <= {(i, i) for i in range(25)}
