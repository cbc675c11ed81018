"""Pooling against loops over the tokens of each sequence, and what it keeps in memory."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from typing_extensions import override

from isoglot.objectives.contrast.pooling import Projection, ProjectionConfig, _owners, pool
from isoglot.types import Rows

SEQUENCES = torch.tensor([[0, 0, 0, 1, 1, -1], [0, 1, 1, 1, 1, 2], [-1] * 6, [0] * 6])
PLACES = torch.tensor([11, 3, 18, 7])
"""The first tokens of four of the six sequences, in no order."""


def rows_of(sequences):
    zeros = torch.zeros_like(sequences)
    names = ("ids", "positions", "languages", "sentences", "roles", "rules")
    return Rows(**dict.fromkeys(names, zeros), sequences=sequences)


def slowly(states, places):
    found = []
    for place in places.tolist():
        row, column = divmod(place, states.shape[1])
        chosen = [i for i in range(6) if SEQUENCES[row, i] == SEQUENCES[row, column]]
        found.append(sum(states[row, i] for i in chosen) / len(chosen))
    return torch.stack(found)


def test_the_mean_is_over_all_tokens_of_the_sequence_and_no_others():
    states = torch.randn(4, 6, 5, dtype=torch.float64, requires_grad=True)
    found = pool(states, rows_of(SEQUENCES), PLACES, "mean")
    expected = slowly(states, PLACES)
    assert torch.allclose(found, expected, rtol=1e-12)
    weights = torch.randn_like(found)
    (one,), (other,) = (
        torch.autograd.grad((pooled * weights).sum(), [states]) for pooled in (found, expected)
    )
    assert torch.allclose(one, other, rtol=1e-12)


def test_no_number_is_added_to_by_more_than_one_sequence():
    """Deterministic kernels add the values of one index one after the other."""
    owners = _owners(SEQUENCES, PLACES)
    kept = owners[owners < len(PLACES)]
    assert kept.bincount().tolist() == [1, 2, 6, 4]
    others = owners[owners >= len(PLACES)]
    assert len(others.unique()) == len(others) == SEQUENCES.numel() - len(kept)
    assert int(owners.max()) < SEQUENCES.numel()


@pytest.mark.parametrize("how", ["cls", "mean"])
def test_no_sequences_give_no_vectors(how):
    states = torch.randn(4, 6, 5)
    found = pool(states, rows_of(SEQUENCES), torch.zeros(0, dtype=torch.int64), how)
    assert found.shape == (0, 5)


def test_the_mean_is_exact_under_autocast():
    states = torch.randn(4, 6, 5).bfloat16()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = pool(states, rows_of(SEQUENCES), PLACES, "mean")
    assert found.dtype == torch.float32
    assert torch.allclose(found, slowly(states.float(), PLACES), rtol=1e-6)


class Largest(TorchDispatchMode):
    """Notes the size of the largest tensor that is made."""

    def __init__(self):
        super().__init__()
        self.numbers = 0

    @override
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        found = func(*args, **(kwargs or {}))
        sizes = [one.numel() for one in tree_leaves(found) if isinstance(one, torch.Tensor)]
        self.numbers = max([self.numbers, *sizes])
        return found


def test_no_row_is_copied_for_each_of_its_sequences():
    sequences = (torch.arange(48) // 4).expand(5, -1)
    states = torch.randn(5, 48, 64, requires_grad=True)
    with Largest() as made:
        pool(states, rows_of(sequences), torch.arange(0, 5 * 48, 4), "mean").sum().backward()
    assert made.numbers <= states.numel() * (64 + 4) / 64  # four ones beside each state


def test_many_sequences_in_many_rows_are_kept_apart():
    sequences = torch.arange(6).repeat(5, 1)  # six sequences of one token in each of five rows
    states = torch.randn(5, 6, 3)
    places = torch.randperm(30)
    found = pool(states, rows_of(sequences), places, "mean")
    assert torch.equal(found, states.flatten(0, 1)[places])


@pytest.mark.parametrize("layers", [0, 1, 2])
@pytest.mark.parametrize("normalize", ["before", "after", "none"])
def test_the_projection_is_the_obvious_one(layers, normalize):
    torch.manual_seed(0)
    settings = ProjectionConfig(layers=layers, size=4, bias=True, normalize=normalize)
    projection = Projection(settings, 6)
    states = torch.randn(3, 6)
    expected = states / states.norm(dim=1, keepdim=True) if normalize == "before" else states
    for number, layer in enumerate(projection.linear()):
        before = expected.clamp(min=0) if number else expected
        expected = before @ layer.weight.T + layer.bias
    if normalize == "after":
        expected = expected / expected.norm(dim=1, keepdim=True)
    assert len(projection.linear()) == layers
    assert torch.allclose(projection(states), expected, atol=1e-6)
    assert projection(states).shape == (3, projection.size)


def test_a_projection_without_a_size_has_the_width_of_the_encoder():
    assert Projection(ProjectionConfig(size=None), 6).size == 6
    assert Projection(ProjectionConfig(size=4), 6).size == 4
