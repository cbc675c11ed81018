"""The sample of a tokenizer: its languages, and the same words whatever the parts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoglot.corpus.cleaning import clean_text
from isoglot.corpus.cleaning.clean_text import CleanedGroup, DuplicateRows
from isoglot.corpus.cleaning.cleaner import CleanConfig
from isoglot.corpus.cleaning.slices import whole_texts
from isoglot.corpus.cleaning.stage import CleanTask, clean_files
from isoglot.corpus.deduplication.hashing import DuplicatesConfig
from isoglot.corpus.reading.sources import FileGroup, Subset
from isoglot.corpus.tokenization.build import TokenizerConfig
from isoglot.corpus.tokenization.sample import (
    count_drawn_words,
    count_sentences,
    sample_sizes,
    sample_tasks,
)
from isoglot.corpus.tokenization.word_counts import count_words, read_words

SIZES = {"en": 900, "sw": 100}


def cleaned(folder: Path, subset: Subset, number: int, texts: list[str]) -> CleanedGroup:
    folder.mkdir()
    raw = folder / "raw.txt"
    raw.write_text("".join(f"{text}\n" for text in texts))
    task = CleanTask(
        group=FileGroup(subset=subset, number=number, files=(raw,)),
        inputs=("",),
        folder=folder,
        config=CleanConfig(),
        heldout_share=0.0,
        heldout_seed=0,
        pretokenize={},
        duplicates=DuplicatesConfig(scope="none"),
        buckets=1,
        excluded=None,
        excluded_files=(),
        dropped_file=None,
    )
    return CleanedGroup(task, clean_files(task), None)


def subset(language: str, kind: str = "text") -> Subset:
    return Subset(
        source="s",
        language=language,
        spelled=tuple(language.split("-")),
        kind="pairs" if kind == "pairs" else "text",
        format="tsv" if kind == "pairs" else "lines",
        options={},
        split="lines",
        files=(),
    )


def sample(groups: list[CleanedGroup], folder: Path, **settings: object) -> Counter[str]:
    config = TokenizerConfig(**settings)  # type: ignore[arg-type]
    tasks = sample_tasks(
        list(whole_texts(groups, "train")), count_sentences(groups), config, folder
    )
    for task in reversed(tasks):
        count_drawn_words(task)
    return read_words([task.output for task in tasks])


@pytest.fixture
def groups(tmp_path, monkeypatch) -> list[CleanedGroup]:
    # an offset every few lines, as in large files
    monkeypatch.setattr(clean_text, "OFFSET_BYTES", 500)
    found = []
    for language, size in SIZES.items():
        texts = [f"{language}-sentence-{number}" for number in range(size)]
        for number, start in enumerate((0, 70)):
            part = texts[start : 70 if start == 0 else None]
            name = tmp_path / f"{language}-{number}"
            found.append(cleaned(name, subset(language), number, part))
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
    groups, tmp_path, alpha, limit, expected
):
    drawn = sample(groups, tmp_path / "sample", alpha=alpha, max_sentences=limit)
    by_language = Counter[str]()
    for text, number in drawn.items():
        by_language[text[:2]] += number
    assert by_language == expected
    # a language that is repeated is repeated evenly
    for language in SIZES:
        times = [number for text, number in drawn.items() if text.startswith(language)]
        assert max(times) - min(times) <= 1


def test_the_seed_decides_which_sentences(groups, tmp_path):
    draws = [
        sample(groups, tmp_path / "sample", max_sentences=100, seed=seed) for seed in (0, 0, 1)
    ]
    assert draws[0] == draws[1] != draws[2]


def test_the_words_are_those_that_reading_one_sentence_after_another_counts(groups, tmp_path):
    """Duplicates are passed over, pairs have two columns, and parts change nothing."""
    pairs = [f"en here {number}\tsw there {number}" for number in range(60)]
    groups.append(cleaned(tmp_path / "pairs", subset("en-sw", "pairs"), 0, pairs))
    dropped = np.array([0, 3, 4, 5, 41, 59])
    np.savez(tmp_path / "dropped.npz", duplicate=dropped[::2], other=dropped[1::2])
    rows = {"train": {"duplicate": 3, "other": 3}, "heldout": {}}
    repeated = DuplicateRows(path=tmp_path / "dropped.npz", sha256="", rows=rows)  # type: ignore[arg-type]
    groups[1] = groups[1]._replace(duplicates=repeated)
    groups[4] = groups[4]._replace(duplicates=repeated)
    texts: dict[str, list[str]] = {"en": [], "sw": []}
    for group in groups:
        lines = group.task.path("train").read_text().splitlines()
        for row, line in enumerate(lines):
            if group.duplicates is None or row not in dropped:
                for language, text in zip(
                    group.task.group.subset.languages, line.split("\t"), strict=True
                ):
                    texts[language].append(text)
    sizes = sample_sizes({"en": 948, "sw": 154}, alpha=0.1, limit=800)
    assert {language: len(found) for language, found in texts.items()} == {"en": 948, "sw": 154}
    expected = []
    for language in ("en", "sw"):
        available = texts[language]
        often, rest = divmod(sizes[language], len(available))
        rng = np.random.default_rng([7, *language.encode()])
        extra = set(rng.choice(len(available), rest, replace=False).tolist())
        for number, text in enumerate(available):
            expected += [text] * (often + (number in extra))
    found = sample(groups, tmp_path / "sample", alpha=0.1, max_sentences=800, seed=7)
    assert found == count_words(expected)


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
