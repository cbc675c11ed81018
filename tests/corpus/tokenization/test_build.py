from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoglot.corpus.cleaning.clean_text import Offset, TextSlice
from isoglot.corpus.reading.sources import Subset
from isoglot.corpus.tokenization.build import sample_sentences, sample_sizes

SIZES = {"en": 900, "sw": 100}


@pytest.fixture
def stretches(tmp_path):
    found = []
    for language, size in SIZES.items():
        path = tmp_path / f"{language}.txt"
        lines = "".join(f"{number + 1}\t0\t{language} {number}\n" for number in range(size))
        path.write_text(lines)
        subset = Subset(
            source="s",
            language=language,
            spelled=(language,),
            kind="text",
            format="lines",
            options={},
            split="lines",
            files=(path,),
        )
        cut = Offset(row=70, byte=sum(len(line) + 1 for line in lines.split("\n")[:70]))
        marks = [Offset(row=0, byte=0), cut, Offset(row=size, byte=len(lines))]
        found += [
            TextSlice(
                subset=subset,
                key="",
                file=path,
                text=path,
                split="train",
                start=start,
                end=end,
                documents_before=0,
                duplicates=None,
            )
            for start, end in pairwise(marks)
        ]
    return found


@pytest.mark.parametrize(
    ("alpha", "limit", "expected"),
    [
        (1.0, 1000, {"en": 900, "sw": 100}),
        (0.5, 1000, {"en": 750, "sw": 250}),
        (0.0, 1000, {"en": 500, "sw": 500}),
        (0.5, 100, {"en": 75, "sw": 25}),
    ],
)
def test_languages_are_sampled_by_their_size_to_the_power_of_alpha(
    stretches, alpha, limit, expected
):
    drawn = Counter(sample_sentences(stretches, SIZES, alpha=alpha, limit=limit, seed=0))
    by_language = Counter[str]()
    for text, number in drawn.items():
        by_language[text[:2]] += number
    assert by_language == expected
    # a language that is repeated is repeated evenly
    for language in SIZES:
        times = [number for text, number in drawn.items() if text.startswith(language)]
        assert max(times) - min(times) <= 1


def test_the_seed_decides_which_sentences(stretches):
    draws = [
        list(sample_sentences(stretches, SIZES, alpha=0.5, limit=100, seed=seed))
        for seed in (0, 0, 1)
    ]
    assert draws[0] == draws[1] != draws[2]


@given(
    st.dictionaries(st.text(min_size=1, max_size=2), st.integers(0, 10**9), min_size=1),
    st.floats(0, 1),
    st.integers(100, 10**6),
)
def test_no_language_is_forgotten_and_the_limit_holds(sizes, alpha, limit):
    drawn = sample_sizes(sizes, alpha=alpha, limit=limit)
    assert set(drawn) == {language for language, size in sizes.items() if size}
    assert all(number >= 1 for number in drawn.values())
    assert sum(drawn.values()) <= limit + len(drawn)
