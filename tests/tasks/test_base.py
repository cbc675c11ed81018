"""Data folders: several, one that is missing; a part of the examples."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from isoglot.errors import CorpusError
from isoglot.tasks import find_task
from isoglot.tasks.base import subsample

ROW = "sentence1\tsentence2\tlabel\n{}\tb\tneutral\n"


def write(folder: Path, **files: str) -> Path:
    place = folder / "nli/xnli"
    place.mkdir(parents=True)
    for name, text in files.items():
        (place / f"{name.replace('_', '.')}.tsv").write_text(ROW.format(text))
    return folder


def test_a_split_is_taken_from_the_first_folder_that_has_it(tmp_path):
    first = write(tmp_path / "one", en_train="one", de_test="one")
    second = write(tmp_path / "two", en_train="two", en_test="two")
    task = find_task("xnli")
    found = {(s.language, s.name) for s in task.splits_in((first, second))}
    assert found == {("en", "train"), ("de", "test"), ("en", "test")}
    folders = (first, second)
    read = {(s.language, s.name): task.read(s)[0].first for s in task.splits_in(folders)}
    assert read == {("en", "train"): "one", ("de", "test"): "one", ("en", "test"): "two"}
    assert task.find_split(folders, "en", "test").files[0].is_relative_to(second)
    with pytest.raises(CorpusError, match=r"one and .*two has no dev split of xnli for 'sw'"):
        task.find_split(folders, "sw", "dev")


def test_a_data_folder_that_does_not_exist_is_said_to_be_missing(tmp_path):
    there = write(tmp_path / "one", en_test="one")
    for data in (tmp_path / "none", (there, tmp_path / "none")):
        with pytest.raises(CorpusError, match=r"none: there is no such folder.*--data"):
            find_task("xnli").splits_in(data)
    assert find_task("xnli").splits_in((there, tmp_path)) == find_task("xnli").splits_in(there)
    # tasks without files need no folder
    assert find_task("testbed-nli").splits_in(tmp_path / "none")


@pytest.mark.parametrize(("number", "limit"), [(10, 4), (5010, 1670), (5010, 50), (7, 7), (9, 8)])
def test_a_few_examples_come_from_all_parts(number, limit):
    found = subsample(list(range(number)), limit)
    assert found == subsample(list(range(number)), limit)
    # in each of `limit` equal parts lies one
    assert [(index * limit + limit - 1) // number for index in found] == list(range(limit))
    assert subsample([1, 2], 2) == subsample([1, 2], 3) == subsample([1, 2], None) == [1, 2]


def test_labels_with_a_period_keep_their_shares():
    """XNLI has its three labels in turn; every third row would have one label alone."""
    counts = Counter(index % 3 for index in subsample(list(range(5010)), 1670))
    assert min(counts.values()) > 500
