"""NaN and infinity are found wherever they are, and large finite numbers are not taken for them."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from isoglot.errors import ModelError
from isoglot.models.finite import (
    check_states,
    check_tensors,
    check_vectors,
    check_weights,
    is_finite,
    num_zero_vectors,
)

BAD = [float("nan"), float("inf"), float("-inf")]


@pytest.mark.parametrize("value", BAD)
@pytest.mark.parametrize("place", [0, 5, 11])
def test_one_bad_number_is_found(value, place):
    numbers = torch.zeros(3, 4)
    assert is_finite(numbers)
    numbers.view(-1)[place] = value
    assert not is_finite(numbers)


def test_what_is_finite():
    assert is_finite(torch.full((4,), 3e38)), "the sum overflows, the numbers do not"
    assert is_finite(torch.tensor([3e38, 3e38, -3e38]))
    assert is_finite(torch.tensor([1, 2])), "integers always are"
    assert is_finite(torch.zeros(0))
    assert not is_finite(torch.tensor([float("inf"), float("-inf")]))


def test_the_weights_are_named_with_their_number():
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    check_weights(model, "folder")
    model.state_dict()["1.weight"][0, :2] = float("nan")
    with pytest.raises(ModelError, match=r"folder: the weights 1\.weight .* \(2 of 3 numbers"):
        check_weights(model, "folder")
    with pytest.raises(ModelError, match="the weights b are not finite"):
        check_tensors([("a", torch.ones(1)), ("b", torch.tensor([float("inf")]))], "file")


@pytest.mark.parametrize("value", BAD)
def test_states_are_refused_with_the_number_of_the_sentence(value):
    """Batches are sorted by length: the row is not the sentence."""
    states = [torch.zeros(3, 4, 2), torch.zeros(3, 4, 2)]
    real = torch.tensor([[True] * 4, [True, True, False, False], [True] * 3 + [False]])
    check_states(states, real, [7, 2, 5])
    states[1][1, 2, 0] = value
    check_states(states, real, [7, 2, 5])  # padding may be anything
    states[1][2, 2, 1] = value
    with pytest.raises(ModelError, match="states of sentence 6 are not finite"):
        check_states(states, real, [7, 2, 5])
    states[1][0, 0, 0] = value
    with pytest.raises(ModelError, match="states of sentence 6 "):
        check_states(states, real, [7, 2, 5])
    check_states(states[:1], real, [7, 2, 5])


def test_states_whose_sum_alone_overflows_pass():
    check_states([torch.full((1, 2, 3), 3e38)], torch.ones(1, 2, dtype=torch.bool), [0])


def test_vectors_are_refused_by_number_and_zeros_counted():
    vectors = torch.tensor([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
    check_vectors(vectors, "of one side")
    assert num_zero_vectors(vectors) == 2
    vectors[2, 1] = float("nan")
    with pytest.raises(ModelError, match="Vector 3 of 3 of one side is not finite"):
        check_vectors(vectors, "of one side")
