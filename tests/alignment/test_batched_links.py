"""Links of many padded pairs against the aligners of evaluation, one pair at a time."""

from __future__ import annotations

from typing import get_args

import pytest
import torch

from isoglot.alignment.batched_links import token_links
from isoglot.evaluation.settings import Aligner, FeatureConfig
from isoglot.evaluation.word_alignment import alignment_matrix


def settings_of(aligner):
    # a threshold at which random vectors have some links
    return FeatureConfig(aligner=aligner, softmax_threshold=0.1)


@pytest.mark.parametrize("aligner", get_args(Aligner))
def test_against_one_pair_at_a_time(aligner):
    torch.manual_seed(0)
    settings = settings_of(aligner)
    sizes = [(1, 1), (2, 5), (3, 3), (7, 4), (12, 12), (5, 1), (9, 11), (2, 2), (8, 8)] * 4
    lengths = torch.tensor(sizes)
    # dot products of positive vectors, so that the sums of transport are not near zero
    first, second = (torch.rand(len(sizes), 12, 6) for _ in range(2))
    found = token_links(first, second, lengths, settings)
    assert found.shape == (len(sizes), 12, 12)
    for pair, (m, n) in enumerate(sizes):
        expected = alignment_matrix(first[pair, :m], second[pair, :n], settings)
        assert torch.equal(found[pair, :m, :n], expected), (m, n)
        assert not found[pair, m:].any()
        assert not found[pair, :, n:].any()
    assert found.any(dim=(1, 2)).all() or aligner == "softmax"


@pytest.mark.parametrize("aligner", get_args(Aligner))
def test_padding_may_hold_anything(aligner):
    torch.manual_seed(1)
    settings = settings_of(aligner)
    lengths = torch.tensor([[4, 6], [5, 3]])
    first, second = torch.rand(2, 5, 6), torch.rand(2, 6, 6)
    expected = token_links(first, second, lengths, settings)
    other = first.clone(), second.clone()
    for pair, (m, n) in enumerate(lengths.tolist()):
        other[0][pair, m:] = 1e4
        other[1][pair, n:] = -1e4
    assert torch.equal(token_links(*other, lengths, settings), expected)


def test_itermax_adds_links_of_tokens_that_are_left():
    torch.manual_seed(2)
    lengths = torch.tensor([[9, 9]] * 20)
    vectors = torch.randn(20, 9, 8), torch.randn(20, 9, 8)
    fewer, more = (
        token_links(*vectors, lengths, FeatureConfig(aligner=aligner))
        for aligner in ("argmax", "itermax")
    )
    assert bool((more | ~fewer).all())
    assert more.sum() > fewer.sum()
