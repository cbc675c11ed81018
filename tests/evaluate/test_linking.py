"""Links from vectors: each aligner against a slow version in plain Python."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from isoglot.evaluate import FeatureSettings
from isoglot.evaluate.linking import entropic, itermax, link, mutual, transport

ALIGNERS = ["transport", "entropic", "argmax", "itermax"]


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


def slow(aligner, first, second, settings):
    cosines = [[cosine(a, b) for b in second] for a in first]
    if aligner == "transport":
        dots = [[sum(x * y for x, y in zip(a, b, strict=True)) for b in second] for a in first]
        return both_choose(*slow_sinkhorn(dots, settings.sinkhorn))
    if aligner == "entropic":
        kernel = [[math.exp(c / settings.regularization) for c in row] for row in cosines]
        return both_choose(*slow_sinkhorn(kernel, settings.sinkhorn))
    if aligner == "argmax":
        return both_choose(cosines, cosines)
    return slow_itermax([[(c + 1) / 2 for c in row] for row in cosines])


@pytest.mark.parametrize("aligner", ALIGNERS)
@settings(max_examples=60, deadline=None)
@given(st.integers(1, 8), st.integers(1, 8), st.integers(0, 999), st.integers(1, 3))
def test_against_the_slow_one(aligner, m, n, seed, iterations):
    generator = torch.Generator().manual_seed(seed)
    first = torch.randn(m, 5, generator=generator, dtype=torch.double) + 1.0
    second = torch.randn(n, 5, generator=generator, dtype=torch.double) + 1.0
    asked = FeatureSettings(aligner=aligner, sinkhorn=iterations)
    found = {(i, j) for i, j in link(first, second, asked).nonzero().tolist()}
    assert found == slow(aligner, first.tolist(), second.tolist(), asked)


def test_transport_gives_each_word_its_share():
    plan, columns = transport(torch.rand(4, 6) + 0.1, 2)
    torch.testing.assert_close(plan.sum(dim=1), torch.ones(4))
    torch.testing.assert_close(columns.sum(dim=0), torch.ones(6))


def test_a_small_regularization_does_not_overflow():
    cosines = torch.rand(5, 5)
    plan, columns = entropic(cosines / 1e-4, 2)
    assert torch.isfinite(plan).all()
    assert torch.isfinite(columns).all()


def test_itermax_links_what_is_left():
    """Rows 0 and 3 both like column 0; row 3 is left, and so is column 3."""
    similar = torch.tensor(
        [[0.9, 0.1, 0.1, 0.1], [0.1, 0.9, 0.1, 0.1], [0.1, 0.1, 0.9, 0.5], [0.8, 0.1, 0.1, 0.3]]
    )
    assert mutual(similar, similar).nonzero().tolist() == [[0, 0], [1, 1], [2, 2]]
    assert [3, 3] not in itermax(similar).nonzero().tolist(), "0.8 x 0.9 is more than 0.3"
    similar[3, 0] = 0.2
    assert [3, 3] not in itermax(similar).nonzero().tolist(), "column 3 prefers row 2"
    similar[2, 3] = 0.1
    assert [3, 3] in itermax(similar).nonzero().tolist()
