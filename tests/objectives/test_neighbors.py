"""Neighbors within a window: the same sentence, adjacent positions, candidates only."""

import torch

from isoglot.objectives.neighbors import TokenLayout, find_neighbors, layout_of_rows
from isoglot.types import Rows


def found_places(near):
    return [
        [place for place, there in zip(*row, strict=True) if there]
        for row in zip(near.places.tolist(), near.exists.tolist(), strict=True)
    ]


def test_neighbors_of_any_batch():
    """Two padded sentences a row of their own: all that is needed is where tokens stand."""
    layout = TokenLayout(
        sentences=torch.tensor([0, 0, 0, 0, 1, 1, 1, 1]), positions=torch.tensor([0, 1, 2, 3] * 2)
    )
    ordinary = torch.tensor([True] * 6 + [False] * 2)
    near = find_neighbors(layout, torch.tensor([0, 3, 4, 5]), ordinary, 2)
    assert found_places(near) == [[1, 2], [1, 2], [5], [4]]


def test_a_sentence_of_a_row_is_one_of_a_sequence_and_a_role():
    """Numbers are equal where row, sequence, sentence and role are, and nowhere else."""
    columns = {
        "sequences": [[0, 0, 0, 1, 1, -1], [0, 0, 0, 0, 0, 0]],
        "sentences": [[0, 1, 1, 0, 0, 0], [0, 0, 5, 5, 1, 1]],
        "roles": [[0, 0, 1, 0, 0, 0], [0, 1, 0, 0, 0, 1]],
        "positions": [[0, 1, 2, 0, 1, 0], [0, 1, 2, 3, 4, 5]],
    }
    tensors = {name: torch.tensor(values) for name, values in columns.items()}
    nothing = torch.zeros(2, 6, dtype=torch.int64)
    rows = Rows(ids=nothing, languages=nothing, rules=nothing, **tensors)
    layout = layout_of_rows(rows)
    places = [
        (row, *(columns[name][row][place] for name in ("sequences", "sentences", "roles")))
        for row in range(2)
        for place in range(6)
    ]
    for one, mine in zip(layout.sentences.tolist(), places, strict=True):
        for other, theirs in zip(layout.sentences.tolist(), places, strict=True):
            assert (one == other) == (mine == theirs)
    assert layout.positions.tolist() == tensors["positions"].flatten().tolist()


def test_slots_that_stand_side_by_side_are_no_neighbors():
    layout = TokenLayout(sentences=torch.zeros(3).long(), positions=torch.tensor([2, 5, 6]))
    near = find_neighbors(layout, torch.arange(3), torch.ones(3, dtype=torch.bool), 1)
    assert found_places(near) == [[], [2], [1]]
