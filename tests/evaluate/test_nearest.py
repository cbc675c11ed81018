"""Blocked neighbours against brute force; margins against their formula; mining by hand."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from isoglot.evaluate.mining import mine
from isoglot.evaluate.nearest import chosen, margins, nearest


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
        patch.setitem(nearest.__globals__, "_BLOCK", block)
        there, back = nearest(first, second, k=k)
    for found, expected in ((there, brute(first, second, k)), (back, brute(second, first, k))):
        assert torch.equal(found.indices, expected.indices)
        torch.testing.assert_close(found.cosines.double(), expected.values, atol=1e-6, rtol=1e-5)


def test_thousands_of_vectors():
    generator = torch.Generator().manual_seed(0)
    first = torch.randn(3000, 64, generator=generator)
    second = first + torch.randn(3000, 64, generator=generator)
    there, back = nearest(first, second)
    assert torch.equal(there.indices, brute(first, second, 1).indices)
    assert torch.equal(back.indices, brute(second, first, 1).indices)


def test_the_margin_is_a_ratio_to_both_neighbourhoods():
    generator = torch.Generator().manual_seed(1)
    first, second = torch.randn(9, 5, generator=generator), torch.randn(11, 5, generator=generator)
    there, back = nearest(first, second, k=3)
    cosines = F.normalize(first, dim=-1) @ F.normalize(second, dim=-1).T
    found = margins(there, back)
    for i in range(9):
        for rank, j in enumerate(there.indices[i].tolist()):
            around_i = cosines[i].sort(descending=True).values[:3].mean()
            around_j = cosines[:, j].sort(descending=True).values[:3].mean()
            torch.testing.assert_close(found[i, rank], cosines[i, j] / ((around_i + around_j) / 2))


def test_a_hub_is_chosen_by_cosine_and_not_by_margin():
    """The second candidate is near everything; the margin takes that into account."""
    first = torch.tensor([[0.0, 2.0, 2.0], [2.0, 2.0, 1.0], [1.0, 1.0, 0.0]])
    second = torch.tensor([[-1.0, 2.0, 0.0], [0.0, 2.0, 0.0], [2.0, 2.0, -3.0]])
    there, back = nearest(first, second, k=2)
    assert chosen(there, back, margin=False)[0].tolist() == [1, 1, 1]
    assert chosen(there, back, margin=True)[0].tolist() == [0, 1, 2]


def test_each_sentence_is_mined_once():
    generator = torch.Generator().manual_seed(2)
    first = torch.randn(40, 64, generator=generator)
    second = torch.cat([first[:25] + 0.3 * torch.randn(25, 64, generator=generator),
                        torch.randn(10, 64, generator=generator)])  # fmt: skip
    found = mine(first, second, k=4)
    assert len({i for i, _, _ in found}) == len({j for _, j, _ in found}) == len(found)
    assert [margin for *_, margin in found] == sorted((m for *_, m in found), reverse=True)
    assert {(i, j) for i, j, _ in found[:20]} <= {(i, i) for i in range(25)}
