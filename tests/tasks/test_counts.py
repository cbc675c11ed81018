"""Every task with files in the data pack reads them all: as many examples as its README says."""

from __future__ import annotations

import subprocess
import sys
from functools import cache

import pytest

from isoglot.errors import IsoglotError
from isoglot.tasks import TASKS, all_tasks, find_task

XNLI = {"dev": 2490, "test": 5010}
COUNTS = {
    "xnli": dict.fromkeys(("en", "es", "sw", "ur"), XNLI),
    "esxnli": {"es": {"test": 2490}, "en": {"test": 2490}},
    "sick": {
        "en": {"train": 4500, "dev": 500, "test": 4927},
        "ja": {"train": 5000, "test": 4927},
        "nl": {"train": 4439, "dev": 495, "test": 4906},
    },
    "paws-x": {"de": {"dev": 2000, "test": 2000}},
    "wikiann": {
        "en": {"train": 20000, "dev": 10000, "test": 10000},
        "de": {"dev": 10000, "test": 10000},
        "nl": {"dev": 10000, "test": 10000},
    },
    "masakhaner": {
        "sw": {"train": 2109, "dev": 300, "test": 604},
        "ha": {"train": 1912, "dev": 276, "test": 552},
        "yo": {"train": 2171, "dev": 305, "test": 645},
    },
    "germeval2014": {"de": {"dev": 2200, "test": 5100}},
    "uner": {"en": {"dev": 2001, "test": 2077}, "zh": {"train": 3997, "dev": 500, "test": 500}},
    "xquad": {code: {"test": 1190} for code in "ar de el en es hi ro ru th tr vi zh".split()},
    "tydiqa": {
        "ar": {"dev": 921},
        "en": {"train": 3696, "dev": 440},
        "fi": {"dev": 782},
        "ko": {"train": 1625, "dev": 276},
        "ru": {"dev": 812},
        "sw": {"train": 2755, "dev": 499},
    },
    "xcopa": {code: {"dev": 100, "test": 500} for code in ("sw", "th", "tr", "vi", "zh")},
    "alignment": {
        "de-en": {"test": 508}, "en-fr": {"test": 447}, "en-hi": {"test": 90},
        "ro-en": {"test": 199},
    },
    "alignment-awesome": {"zh-en": {"test": 450}, "ro-en": {"test": 248}, "en-fr": {"test": 447}},
    "analogy": {
        "en": {"test": 19544}, "de": {"test": 18552}, "es": {"test": 14764}, "fr": {"test": 31688},
        "zh": {"test": 953},
    },
    "word-similarity": {"en": {"test": 4417}},
}  # fmt: skip
"""Task -> language -> split -> examples, from the tables of the pack's README."""
LARGE = {"wikiann", "germeval2014", "sick", "tydiqa", "analogy"}
"""Tasks whose files take longest to read."""


@cache
def counted(data_folder, name):
    task = find_task(name)
    found: dict[str, dict[str, int]] = {}
    for part in task.splits(data_folder):
        found.setdefault(part.language, {})[part.name] = len(task.read(part))
    return found


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in LARGE)) for name in COUNTS]
)
def test_all_examples_are_there(data_folder, name):
    assert counted(data_folder, name) == COUNTS[name]


@pytest.mark.parametrize(
    ("name", "parts", "examples"),
    [pytest.param("ud-pos", 24, 32_302, marks=pytest.mark.slow), ("tatoeba", 21, 19_938)],
)
def test_the_sums(data_folder, name, parts, examples):
    found = [number for splits in counted(data_folder, name).values() for number in splits.values()]
    assert (len(found), sum(found)) == (parts, examples)


def test_words_with_several_translations_are_one_entry(data_folder):
    task = find_task("xling")
    counts = {}
    for part in task.splits(data_folder):
        entries = task.read(part)
        counts[part.language, part.name] = len(entries), sum(len(e.translations) for e in entries)
    assert counts["fr-en", "test"] == (1936, 2000)
    assert all(
        pairs == (2000 if split == "test" else 5000) for (_, split), (_, pairs) in counts.items()
    )
    assert len(counts) == 16


@pytest.mark.slow
def test_all_english_facts(data_folder):
    task = find_task("xfactr")
    english = task.read(task.find_split(data_folder, "en", "test"))
    assert len(english) == 46_000
    assert len({fact.relation for fact in english}) == 46
    assert all("[Y]" in fact.prompt and "[X" not in fact.prompt for fact in english)


def test_facts(data_folder):
    task = find_task("xfactr")
    russian = task.read(task.find_split(data_folder, "ru", "test"))
    assert len(russian) == 16_440
    born = next(fact for fact in russian if fact.relation == "P19")
    assert " родился в [Y]" in born.prompt, "the first of several forms, no marks of grammar"
    assert {fact.group for fact in russian} == {"X-FACTR 1-1", "X-FACTR N-1", "X-FACTR N-M"}
    assert not any("[" in fact.prompt.replace("[Y]", "") for fact in russian)
    assert all(
        not fact.candidates or not set(fact.candidates).isdisjoint(fact.answers) for fact in russian
    )


def test_a_pair_of_xnli_has_one_id_and_one_label_in_all_languages(data_folder):
    """Some files have ids of their own, others do not; the row joins them."""
    task = find_task("xnli")
    english, *others = (
        {
            example.id: example.label
            for example in task.read(task.find_split(data_folder, code, "test"))
        }
        for code in ("en", "es", "sw", "ur")
    )
    assert len(english) == 5010
    assert all(other == english for other in others)


def test_prefixes_of_words_are_taken_off(data_folder):
    task = find_task("wikiann")
    examples = task.read(task.find_split(data_folder, "de", "dev"))
    assert examples[0].words == ("Anton", "Wilhelm", "von", "Zuccalmaglio", ".")
    assert not any(word.startswith("de:") for example in examples for word in example.words)


def test_a_part_that_is_not_there_is_named(data_folder):
    with pytest.raises(IsoglotError, match=r"no train split of masakhaner for 'de': .*sw test"):
        find_task("masakhaner").find_split(data_folder, "de", "train")


def test_names_are_unique_and_found():
    names = [task.name for task in all_tasks()]
    assert len(set(names)) == len(names)
    assert names == list(TASKS)
    for task in all_tasks():
        assert isinstance(find_task(task.name), task)
        assert task.__doc__
        assert task.license
        assert task.languages
        assert task.summary
        assert task.metrics
        assert task.version >= 1
    with pytest.raises(IsoglotError, match="did you mean 'tatoeba'"):
        find_task("tatoba")


def test_tasks_of_your_own_are_named_by_their_place():
    assert find_task("isoglot.tasks.bitext:Tatoeba").name == "tatoeba"
    for name, message in (
        ("no_such.module:Task", "cannot be imported"),
        ("isoglot.tasks.bitext:Tato", "cannot be imported"),
        ("isoglot.tasks.base:Metric", "is not a subclass of isoglot.Task"),
    ):
        with pytest.raises(IsoglotError, match=message):
            find_task(name)


def test_a_task_imports_one_file_of_tasks_and_no_torch():
    code = (
        "import sys; from isoglot.tasks import find_task; find_task('tatoeba'); print(*sys.modules)"
    )
    command = [sys.executable, "-c", code]
    modules = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    assert "torch" not in modules
    assert "isoglot.tasks.bitext" in modules
    assert not {f"isoglot.tasks.{file}" for file in ("squad", "tagging", "lama")} & {*modules}
