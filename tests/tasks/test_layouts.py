"""Files are found in all layouts that the documentation names, and it names them all."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from isoglot.tasks import all_tasks
from isoglot.tasks.layouts import FileTask, Layout, find_splits

PAGE = Path(__file__).parent.parent.parent / "docs/tasks.md"
LAYOUTS = [
    layout.pattern
    for task in all_tasks()
    if issubclass(task, FileTask) and task.name != "alignment-awesome"
    for layout in task.layouts
]


@pytest.mark.parametrize("pattern", LAYOUTS)
def test_the_documentation_has_it(pattern):
    named = re.sub(r"[^/]+(-\*\.parquet|/data-\*\.arrow)$", "", pattern)
    assert f"`{named}`" in PAGE.read_text(encoding="utf-8")


def touch(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


def test_languages_and_splits_are_read_from_names(tmp_path):
    touch(tmp_path, "x/swa.testb.gz", "x/de.val", "x/deu.train.tmp", "x/Nope.test", "x/en.other")
    parts = find_splits(tmp_path, (Layout("x/{language}.{split}"),))
    assert {(part.language, part.name) for part in parts} == {("sw", "test"), ("de", "dev")}


def test_a_place_named_twice_says_the_same_twice(tmp_path):
    touch(tmp_path, "dev/dev-en", "dev/test-en")
    (part,) = find_splits(tmp_path, (Layout("{split}/{split}-{language}"),))
    assert part.files == (tmp_path / "dev/dev-en",)


def test_files_of_one_language_are_one_part_and_the_first_layout_wins(tmp_path):
    touch(tmp_path, "a/en_x.test", "a/en_y.test", "b/en_z.test", "b/de_z.test")
    layouts = Layout("a/{language}_*.{split}"), Layout("b/{language}_*.{split}")
    found = {
        part.language: [path.name for path in part.files] for part in find_splits(tmp_path, layouts)
    }
    assert found == {"en": ["en_x.test", "en_y.test"], "de": ["de_z.test"]}


def test_a_folder_of_evaluation_data_inside(tmp_path):
    touch(tmp_path, "eval/x/en.test", "x/de.test")
    (part,) = find_splits(tmp_path, (Layout("x/{language}.{split}"),))
    assert part.language == "en"
