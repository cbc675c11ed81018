"""Data folders: several, one that is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from isoglot.errors import CorpusError
from isoglot.tasks import find_task

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
