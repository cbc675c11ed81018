"""The choice of a pooling: accuracies against a slow version, and the rule for lower layers."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn
from typing_extensions import override

from isoglot.errors import ModelError
from isoglot.exporting.pooling import PoolingChoice, choose_pooling
from tests.models.tiny import VOCABULARY, tiny_model


def sequences(number: int, seed: int) -> list[list[int]]:
    chance = np.random.default_rng(seed)
    return [
        [0, *chance.integers(4, VOCABULARY, chance.integers(2, 9)).tolist(), 2]
        for _ in range(number)
    ]


def noisy(texts: list[list[int]], seed: int) -> list[list[int]]:
    """A "translation": one token of each text is another."""
    chance = np.random.default_rng(seed)
    found = [list(text) for text in texts]
    for text in found:
        text[chance.integers(1, len(text) - 1)] = int(chance.integers(4, VOCABULARY))
    return found


def slow_states(base, texts):
    """(layer, text) -> (L, D): one sentence at a time, in float64 after the encoder."""
    found = []
    for text in texts:
        with torch.no_grad():
            output = base(input_ids=torch.tensor([text]), output_hidden_states=True)
        found.append([states[0].double().numpy() for states in output.hidden_states])
    return list(zip(*found, strict=True))


def slow_accuracy(first, second, how):
    sides = []
    for states in (first, second):
        vectors = [one[0] if how == "cls" else one.mean(axis=0) for one in states]
        sides.append(np.array([vector / np.linalg.norm(vector) for vector in vectors]))
    cosines = sides[0] @ sides[1].T
    there = np.mean(cosines.argmax(axis=1) == np.arange(len(first)))
    back = np.mean(cosines.argmax(axis=0) == np.arange(len(first)))
    return (there + back) / 2


def test_accuracies_are_those_of_the_slow_version():
    base = tiny_model("xlm-r", attention="sdpa").base_model
    one, two = sequences(60, 0), sequences(45, 1)
    pairs = {"aa-bb": (one, noisy(one, 2)), "aa-cc": (two, noisy(two, 3))}
    choice = choose_pooling(base, 1, pairs, source="mine")
    assert len(choice.tried) == 6
    states = [[slow_states(base, side) for side in sides] for sides in pairs.values()]
    for score in choice.tried:
        expected = [
            slow_accuracy(first[score.layer], second[score.layer], score.pooling)
            for first, second in states
        ]
        assert score.accuracy == pytest.approx(np.mean(expected), abs=1e-9)
    assert "105 held-out pairs (mine; aa-bb, aa-cc)" in choice.reason


class Layered(nn.Module):
    """An encoder whose layers hold the meaning of a text with more or less noise.

    A text is `[0, meaning, side, 2]`; the first token of layer n has noise `first[n]`, the others
    `mean[n]`.
    """

    def __init__(self, first: list[float], mean: list[float]) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(400, 16, generator=torch.Generator().manual_seed(0)))
        self.noise = first, mean
        self.config = SimpleNamespace(num_hidden_layers=len(first), hidden_size=16)

    @override
    def forward(self, input_ids, attention_mask, output_hidden_states):
        states = [torch.zeros(*input_ids.shape, 16)]
        for number, (first, mean) in enumerate(zip(*self.noise, strict=True)):
            one = self.table[input_ids[:, 1]][:, None].repeat(1, input_ids.shape[1], 1)
            for row, (meaning, side) in enumerate(input_ids[:, 1:3].tolist()):
                chance = torch.Generator().manual_seed(1000 * number + 2 * meaning + side)
                noise = torch.randn(2, 16, generator=chance)
                one[row, 0] += first * noise[0]
                one[row, 1:] += (mean * 4 / 3 * noise[1]) - first * noise[0] / 3
            states.append(one)
        return SimpleNamespace(hidden_states=tuple(states), last_hidden_state=states[-1])


def choose(first, mean, number=300, **options):
    texts = [[[0, meaning, side, 2] for meaning in range(number)] for side in (0, 1)]
    return choose_pooling(
        Layered(first, mean), 1, {"aa-bb": (texts[0], texts[1])}, source="x", **options
    )


@pytest.mark.parametrize(
    ("first", "mean", "number", "expected"),
    [
        ([9.0, 9.0, 0.3], [9.0, 9.0, 2.0], 300, ("cls", 3)),
        ([9.0, 9.0, 2.0], [9.0, 9.0, 0.3], 300, ("mean", 3)),
        ([9.0, 0.3, 2.0], [9.0, 9.0, 2.0], 300, ("cls", 2)),
        ([0.3, 0.3, 0.31], [9.0, 9.0, 9.0], 300, ("cls", 3)),  # lower layers are no better
        ([0.9, 0.9, 0.92], [9.0, 9.0, 9.0], 300, ("cls", 3)),  # or not clearly
        ([9.0, 0.3, 2.0], [9.0, 9.0, 9.0], 60, ("cls", 3)),  # or there are few pairs
    ],
)
def test_a_lower_layer_must_be_clearly_better(first, mean, number, expected):
    choice = choose(first, mean, number)
    assert (choice.pooling, choice.layer) == expected
    assert ("This layer is better" in choice.reason) == (expected[1] < 3)


def test_only_the_last_layer_if_asked():
    choice = choose([9.0, 0.3, 2.0], [9.0, 9.0, 3.0], layers="last")
    assert (choice.pooling, choice.layer, len(choice.tried)) == ("cls", 3, 2)
    assert choice.describe() == "the state of the first token of the last layer"


def test_the_card_says_what_was_tried():
    choice = choose([9.0, 0.3, 2.0], [9.0, 9.0, 2.0])
    card = choice.card()
    assert "the state of the first token of layer 2 of 3" in card
    assert "development data, not a test" in card
    (line,) = [line for line in card.splitlines() if line.startswith("| 2 |")]
    assert line.endswith("(chosen) |")
    plain = PoolingChoice.of_last(Layered([1.0], [1.0]), "mean", "It was asked for.")
    assert "|" not in plain.card()


def test_states_that_are_not_finite_are_refused():
    base = tiny_model("xlm-r", attention="sdpa").base_model
    torch.nn.init.constant_(base.embeddings.LayerNorm.weight, torch.inf)
    texts = sequences(5, 0)
    with pytest.raises(ModelError, match="are not finite"):
        choose_pooling(base, 1, {"aa-bb": (texts, texts)}, source="x")
