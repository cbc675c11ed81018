"""Words are linked where their pieces are; states are those of the plain model.

Links from vectors: each aligner against a slow version in plain Python.
"""

from __future__ import annotations

import copy
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import processors
from transformers import AutoModel

from isoglot.evaluation.settings import FeatureConfig
from isoglot.evaluation.tokenize_texts import special_tokens
from isoglot.evaluation.word_alignment import (
    align_words,
    alignment_matrix,
    itermax,
    log_sinkhorn,
    mutual_argmax,
    sinkhorn,
)
from isoglot.tasks.examples import AlignedPair
from tests.tiny_corpus import words


def pair(first, second):
    return AlignedPair(
        first=tuple(first), second=tuple(second), sure=frozenset(), possible=frozenset()
    )


PAIRS = [
    pair(words("aa")[start : start + m], words("bb")[start : start + n])
    for start, m, n in ((0, 3, 4), (5, 1, 2), (9, 4, 4))
]


@pytest.fixture(scope="module")
def model(folder):
    return AutoModel.from_pretrained(folder, add_pooling_layer=False).eval()


@torch.no_grad()
def expected(model, tokenizer, example, settings):
    """The word links of every layer from the plain model, one pair at a time."""
    sides = [[tokenizer(word, add_special_tokens=False)["input_ids"] for word in side]
             for side in (example.first, example.second)]  # fmt: skip
    flat = [[piece for word in side for piece in word] for side in sides]
    owner = [[index for index, word in enumerate(side) for _ in word] for side in sides]
    start, end = [tokenizer.cls_token_id], [tokenizer.sep_token_id]

    def layers(ids):
        return model(torch.tensor([ids]), output_hidden_states=True).hidden_states

    if settings.is_joint:
        states = [layer[0] for layer in layers(start + flat[0] + end + flat[1] + end)]
        m = len(flat[0])
        both = [(s[1 : 1 + m], s[2 + m : -1]) for s in states]
    else:
        both = [
            (one[0][1:-1], other[0][1:-1])
            for one, other in zip(*(layers(start + ids + end) for ids in flat), strict=True)
        ]
    return [
        {
            (owner[0][i], owner[1][j])
            for i, j in alignment_matrix(*vectors, settings).nonzero().tolist()
        }
        for vectors in both
    ]


@pytest.mark.parametrize("aligner", ["transport", "entropic", "argmax", "itermax", "softmax"])
@pytest.mark.parametrize("together", [None, True, False])
def test_against_the_plain_model(model, encoder, tokenizer, aligner, together):
    settings = FeatureConfig(aligner=aligner, encode_jointly=together)
    found = align_words(encoder, tokenizer, PAIRS, settings)
    assert len(found) == 4, "three layers and the embeddings"
    for number, example in enumerate(PAIRS):
        by_layer = [links[number] for links in found]
        assert by_layer == expected(model, tokenizer, example, settings)


def test_who_is_encoded_together():
    assert FeatureConfig().is_joint
    assert not FeatureConfig(aligner="itermax").is_joint
    assert FeatureConfig(aligner="argmax", encode_jointly=True).is_joint


def test_long_sentences_are_cut_and_empty_ones_have_no_links(encoder, tokenizer):
    long = pair(words("aa")[:60], words("bb")[:60])
    found = align_words(encoder, tokenizer, [long, pair([], ["x"])], FeatureConfig())
    assert all(links[0] for links in found)
    assert all(links[1] == set() for links in found)


def test_a_sentence_is_aligned_with_itself(encoder, tokenizer):
    same = pair(words("aa")[:6], words("aa")[:6])
    found = align_words(encoder, tokenizer, [same], FeatureConfig(aligner="argmax"))
    assert all(links[0] == {(i, i) for i in range(6)} for links in found)


@pytest.mark.parametrize("aligner", ["transport", "itermax"])
def test_special_tokens_may_have_any_name_and_none_is_needed(encoder, tokenizer, aligner):
    settings = FeatureConfig(aligner=aligner)
    usual = align_words(encoder, tokenizer, PAIRS, settings)
    renamed = copy.deepcopy(tokenizer)
    renamed.cls_token = renamed.sep_token = None
    assert special_tokens(renamed) == ([tokenizer.cls_token_id], [tokenizer.sep_token_id])
    assert align_words(encoder, renamed, PAIRS, settings) == usual
    renamed.backend_tokenizer.post_processor = processors.Sequence([])
    assert special_tokens(renamed) == ([], [])
    assert all(align_words(encoder, renamed, PAIRS, settings)[0])


ALIGNERS = ["transport", "entropic", "argmax", "itermax", "softmax"]


def cosine(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True)) / (math.hypot(*a) * math.hypot(*b))


def best(values):
    return max(range(len(values)), key=values.__getitem__)


def both_choose(rows, columns):
    m, n = len(rows), len(rows[0])
    forward = {(i, best(rows[i])) for i in range(m)}
    backward = {(best([columns[i][j] for i in range(m)]), j) for j in range(n)}
    return forward & backward


def slow_sinkhorn(matrix, iterations):
    plan = columns = [list(row) for row in matrix]
    for _ in range(iterations):
        sums = [sum(row[j] for row in plan) for j in range(len(plan[0]))]
        columns = [[value / sums[j] for j, value in enumerate(row)] for row in plan]
        plan = [[value / sum(row) for value in row] for row in columns]
    return plan, columns


def slow_itermax(matrix):
    m, n = len(matrix), len(matrix[0])
    links = both_choose(matrix, matrix)
    if min(m, n) <= 2:
        return links
    rows, columns = {i for i, _ in links}, {j for _, j in links}
    if len(rows) == m or len(columns) == n:
        return links
    weight = [[{0: 1.0, 1: 0.9, 2: 0.0}[(i in rows) + (j in columns)] for j in range(n)]
              for i in range(m)]  # fmt: skip
    again = [[matrix[i][j] * weight[i][j] for j in range(n)] for i in range(m)]
    return links | {(i, j) for i, j in both_choose(again, again) if weight[i][j]}


def slow_softmax(dots, threshold):
    """Links with a probability above the threshold in both directions."""
    weights = [[math.exp(dot) for dot in row] for row in dots]
    columns = [sum(row[j] for row in weights) for j in range(len(weights[0]))]
    return {
        (i, j)
        for i, row in enumerate(weights)
        for j, weight in enumerate(row)
        if weight / sum(row) > threshold and weight / columns[j] > threshold
    }


def slow(aligner, first, second, settings):
    cosines = [[cosine(a, b) for b in second] for a in first]
    dots = [[sum(x * y for x, y in zip(a, b, strict=True)) for b in second] for a in first]
    if aligner == "softmax":
        return slow_softmax(dots, settings.softmax_threshold)
    if aligner == "transport":
        return both_choose(*slow_sinkhorn(dots, settings.sinkhorn_iterations))
    if aligner == "entropic":
        kernel = [[math.exp(c / settings.regularization) for c in row] for row in cosines]
        return both_choose(*slow_sinkhorn(kernel, settings.sinkhorn_iterations))
    if aligner == "argmax":
        return both_choose(cosines, cosines)
    return slow_itermax([[(c + 1) / 2 for c in row] for row in cosines])


@pytest.mark.parametrize("aligner", ALIGNERS)
@settings(max_examples=30, deadline=None)
@given(st.integers(1, 8), st.integers(1, 8), st.integers(0, 999), st.integers(1, 3))
def test_against_the_slow_one(aligner, m, n, seed, iterations):
    generator = torch.Generator().manual_seed(seed)
    first = torch.randn(m, 5, generator=generator, dtype=torch.double) + 1.0
    second = torch.randn(n, 5, generator=generator, dtype=torch.double) + 1.0
    asked = FeatureConfig(
        aligner=aligner, sinkhorn_iterations=iterations, softmax_threshold=0.1 * iterations
    )
    found = {(i, j) for i, j in alignment_matrix(first, second, asked).nonzero().tolist()}
    assert found == slow(aligner, first.tolist(), second.tolist(), asked)


def test_transport_gives_each_word_its_share():
    plan, columns = sinkhorn(torch.rand(4, 6) + 0.1, 2)
    torch.testing.assert_close(plan.sum(dim=1), torch.ones(4))
    torch.testing.assert_close(columns.sum(dim=0), torch.ones(6))


def test_a_small_regularization_does_not_overflow():
    cosines = torch.rand(5, 5)
    plan, columns = log_sinkhorn(cosines / 1e-4, 2)
    assert torch.isfinite(plan).all()
    assert torch.isfinite(columns).all()


def test_itermax_links_what_is_left():
    """Rows 0 and 3 both like column 0; row 3 is left, and so is column 3."""
    similar = torch.tensor(
        [[0.9, 0.1, 0.1, 0.1], [0.1, 0.9, 0.1, 0.1], [0.1, 0.1, 0.9, 0.5], [0.8, 0.1, 0.1, 0.3]]
    )
    assert mutual_argmax(similar, similar).nonzero().tolist() == [[0, 0], [1, 1], [2, 2]]
    assert [3, 3] not in itermax(similar).nonzero().tolist(), "0.8 x 0.9 is more than 0.3"
    similar[3, 0] = 0.2
    assert [3, 3] not in itermax(similar).nonzero().tolist(), "column 3 prefers row 2"
    similar[2, 3] = 0.1
    assert [3, 3] in itermax(similar).nonzero().tolist()


def test_pairs_with_one_long_side_are_counted_as_cut(encoder, tokenizer):
    notes: list[str] = []
    long = pair(words("aa")[:1], words("bb")[:90])
    align_words(encoder, tokenizer, [long, PAIRS[0]], FeatureConfig(), note=notes.append)
    assert len(notes) == 1
    assert notes[0].startswith("1 of 2 pairs")
