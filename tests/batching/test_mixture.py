import numpy as np
import pytest
from typing_extensions import override

from isoglot.batching.language_shares import smoothed_shares
from isoglot.batching.mixture import evenly_spaced
from isoglot.batching.streams import LanguageSlice
from tests.batching import naive
from tests.batching.fakes import FakeSlice, Plain, WithAux, mixture, open_stream


def test_every_example_of_joined_slices_is_found_in_its_slice():
    slices: list[LanguageSlice] = [FakeSlice("a", [3] * 4), FakeSlice("b", [5] * 2)]
    mixed = mixture(open_stream([*slices, FakeSlice("c", [7] * 3)], Plain(), sampling="epochs"))
    (component,) = mixed.components
    found = [component.locate(index) for index in range(component.num_examples)]
    assert [(one.language, index) for one, index in found] == [
        *(("a", index) for index in range(4)),
        *(("b", index) for index in range(2)),
        *(("c", index) for index in range(3)),
    ]


def test_the_draw_of_a_counter_is_that_of_python_integers():
    parts: list[LanguageSlice] = [FakeSlice("a", [3] * 5), FakeSlice("b", [5, 9, 2])]
    for sampling in ("languages", "epochs"):
        mixed = mixture(open_stream(parts, Plain(), sampling=sampling), seed=3, stage=1)
        for number, component in enumerate(mixed.components):
            counters = np.arange(4 * component.num_examples, dtype=np.int64)
            draws = [naive.look_up(mixed, {}, number, int(c)) for c in counters]
            examples, chances = component.indices(counters), component.uniforms(counters)
            assert examples.tolist() == [draw.example for draw in draws]
            assert chances.tolist() == [draw.uniform for draw in draws]
            lengths = [draw.sequences[0][1] for draw in draws]
            assert component.sizes(examples, chances)[:, 0].tolist() == lengths
        drawn = mixed.draw_components(7, 200).tolist()
        expected = [naive.component_of(mixed, n, seed=3, stage=1) for n in range(7, 207)]
        assert drawn == expected


def test_names_of_components():
    parts: list[LanguageSlice] = [FakeSlice("a", [3]), FakeSlice("b", [5])]
    alone = open_stream(parts[:1], Plain(), sampling="epochs")
    joined = open_stream(parts, Plain(), sampling="epochs")
    mixed = mixture(open_stream(parts, Plain()), alone, joined)
    names = [component.name for component in mixed.components]
    assert names == ["0:text/fake/a", "0:text/fake/b", "1:text/fake/a", "2:text/union"]
    assert [component.stream for component in mixed.components] == [0, 0, 1, 2]


def test_probabilities_are_the_naive_ones():
    """Shares are of tokens, languages by N^alpha, sources of one language by their size."""
    first = [
        FakeSlice("en", [4] * 60, source="a"),
        FakeSlice("en", [9] * 20, source="b"),
        FakeSlice("sw", [2, 4] * 10),
    ]
    second = [FakeSlice("en", [7] * 5), FakeSlice("ha", [3] * 50)]
    streams = (
        open_stream([*first], Plain(), share=0.3, alpha=0.5),
        open_stream([*second], Plain(copies=2), WithAux(), share=2.0, alpha=0.0),
    )
    # the tokens of a draw in the main rows: WithAux has one sequence there, Plain its copies
    expected = naive.probabilities(
        [
            (0.3, 0.5, [("en", 60, 4), ("en", 20, 9), ("sw", 20, 3)]),
            (2.0, 0.0, [("en", 5, 21), ("ha", 50, 9)]),
        ]
    )
    assert mixture(*streams).probabilities == pytest.approx(expected, rel=1e-12)
    by_tokens = open_stream([*first], Plain(), alpha=0.5, alpha_unit="tokens")
    expected = naive.probabilities([(1.0, 0.5, [("en", 240, 4), ("en", 180, 9), ("sw", 60, 3)])])
    assert mixture(by_tokens).probabilities == pytest.approx(expected, rel=1e-12)


def test_the_union_of_slices_has_their_mean_length():
    """Weighted by their examples: it decides how often a stream is drawn beside others."""
    parts: list[LanguageSlice] = [FakeSlice("a", [2] * 30), FakeSlice("b", [11] * 10)]
    union = open_stream(parts, Plain(), sampling="epochs")
    other = open_stream([FakeSlice("c", [5] * 9)], Plain(), share=3.0)
    mean = (30 * 2 + 10 * 11) / 40
    assert union.mean_length(union.slices) == pytest.approx(mean)
    odds = (1 / mean) / (3 / 5)
    assert mixture(union, other).probabilities == pytest.approx([odds / (1 + odds), 1 / (1 + odds)])


def test_an_objective_reads_only_languages_it_accepts():
    class Swahili(Plain):
        @override
        def accepts_language(self, language: str) -> bool:
            return language == "sw"

    parts: list[LanguageSlice] = [FakeSlice("en", [3]), FakeSlice("sw", [3])]
    mixed = mixture(open_stream(parts, Plain(), Swahili()))
    assert [[name for name, _ in one.objectives] for one in mixed.components] == [
        ["m0"],
        ["m0", "m1"],
    ]
    (union,) = mixture(open_stream(parts, Plain(), Swahili(), sampling="epochs")).components
    assert [name for name, _ in union.objectives] == ["m0", "m1"]


@pytest.mark.parametrize(
    ("number", "limit", "expected"),
    [(5, 9, [0, 1, 2, 3, 4]), (9, 3, [0, 4, 8]), (1, 4, [0]), (100, 2, [0, 99])],
)
def test_evenly_spaced(number, limit, expected):
    assert evenly_spaced(number, limit).tolist() == expected
    assert mixture(open_stream([FakeSlice("a", list(range(1, number + 1)))], Plain())).components[
        0
    ].sample_sizes(limit)[:, 0].tolist() == [one + 1 for one in expected]


def test_smoothed_shares():
    assert smoothed_shares(np.array([8.0, 1.0]), 1 / 3) == pytest.approx([2 / 3, 1 / 3])
    assert smoothed_shares(np.array([8.0, 1.0]), 0.0) == pytest.approx([0.5, 0.5])
