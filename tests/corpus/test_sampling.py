from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoglot.corpus.cells import Cell
from isoglot.corpus.clean import CleanConfig
from isoglot.corpus.cleaned import CleanTask, clean_cell
from isoglot.corpus.sampling import sample, shares

SIZES = {"en": 900, "sw": 100}


@pytest.fixture
def cleaned(tmp_path):
    results = []
    for language, size in SIZES.items():
        path = tmp_path / f"{language}.txt"
        path.write_text("".join(f"{language} {number}\n" for number in range(size)))
        cell = Cell(source="s", language=language, kind="text", format="lines", files=(path,))
        task = CleanTask(
            cell=cell,
            folder=tmp_path / language,
            config=CleanConfig(),
            heldout_share=0.0,
            heldout_seed=0,
        )
        results.append(clean_cell(task))
    return results


@pytest.mark.parametrize(
    ("alpha", "limit", "expected"),
    [
        (1.0, 1000, {"en": 900, "sw": 100}),
        (0.5, 1000, {"en": 750, "sw": 250}),
        (0.0, 1000, {"en": 500, "sw": 500}),
        (0.5, 100, {"en": 75, "sw": 25}),
    ],
)
def test_languages_are_sampled_by_their_size_to_the_power_of_alpha(cleaned, alpha, limit, expected):
    drawn = Counter(sample(cleaned, alpha=alpha, limit=limit, seed=0))
    by_language = Counter[str]()
    for text, number in drawn.items():
        by_language[text[:2]] += number
    assert by_language == expected
    # a language that is repeated is repeated evenly
    for language in SIZES:
        times = [number for text, number in drawn.items() if text.startswith(language)]
        assert max(times) - min(times) <= 1


def test_the_seed_decides_which_sentences(cleaned):
    draws = [list(sample(cleaned, alpha=0.5, limit=100, seed=seed)) for seed in (0, 0, 1)]
    assert draws[0] == draws[1] != draws[2]


@given(
    st.dictionaries(st.text(min_size=1, max_size=2), st.integers(0, 10**9), min_size=1),
    st.floats(0, 1),
    st.integers(100, 10**6),
)
def test_no_language_is_forgotten_and_the_limit_holds(sizes, alpha, limit):
    drawn = shares(sizes, alpha=alpha, limit=limit)
    assert set(drawn) == {language for language, size in sizes.items() if size}
    assert all(number >= 1 for number in drawn.values())
    assert sum(drawn.values()) <= limit + len(drawn)
