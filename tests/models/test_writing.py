"""What is asked of `generate`, and where hypotheses end."""

from types import SimpleNamespace

import pytest
import torch

from isoglot.models.writing import WritingConfig, write

END, PAD = 2, 1


class Says:
    """A model that has said all it will say."""

    config = SimpleNamespace(eos_token_id=END, pad_token_id=PAD)

    def __init__(self, *said):
        self.said = torch.tensor(said)
        self.asked = {}

    def generate(self, **asked):
        self.asked = asked
        return self.said


def written(model, limits, settings=None, never=()):
    number = len(model.said)
    return write(
        model,
        torch.zeros(number, 3, 4),
        torch.ones(number, 3, dtype=torch.bool),
        model.said[:, 0],
        torch.tensor(limits),
        settings or WritingConfig(),
        never=never,
    )


def test_where_hypotheses_end():
    model = Says(
        [50, 10, 11, END, PAD],
        [51, END, PAD, PAD, PAD],
        [50, 10, 11, 12, 13],
        [50, 10, 11, 12, END],
        [50, 10, 11, END, PAD],
    )
    found = written(model, [4, 4, 4, 2, 2])
    assert found.lengths.tolist() == [2, 0, 4, 2, 2]
    assert found.cut.tolist() == [False, False, True, True, False]
    assert found.ids.tolist() == [
        [10, 11, PAD, PAD],
        [PAD, PAD, PAD, PAD],
        [10, 11, 12, 13],
        [10, 11, PAD, PAD],
        [10, 11, PAD, PAD],
    ]


def test_what_is_asked_for():
    model = Says([50, 10, END], [51, END, PAD])
    written(model, [7, 5], never=(0, 3))
    assert model.asked["max_length"] == 8, "the first token, and the longest"
    assert model.asked["decoder_start_token_id"] == [50, 51]
    assert model.asked["suppress_tokens"] == [0, 3]
    assert (model.asked["num_beams"], model.asked["do_sample"]) == (1, False)


@pytest.mark.parametrize(
    ("settings", "asked"),
    [
        (WritingConfig(method="beam", beams=3, length_penalty=0.6), (3, False, 0.6, None, None)),
        (WritingConfig(method="sample", temperature=0.7), (1, True, None, 0.7, 0)),
    ],
)
def test_beams_and_drawing(settings, asked):
    model = Says([50, 10, END])
    written(model, [4], settings)
    names = ("num_beams", "do_sample", "length_penalty", "temperature", "top_k")
    assert tuple(model.asked.get(name) for name in names) == asked


def test_the_limit_and_the_settings_in_words():
    assert WritingConfig().limit(torch.tensor([1, 10, 7])).tolist() == [6, 18, 14]
    assert WritingConfig().in_words() == "greedy"
    assert WritingConfig(method="beam", beams=3).in_words() == "beam, beams=3"
