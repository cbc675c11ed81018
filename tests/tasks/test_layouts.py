"""Files are found in all layouts that the documentation names, and it names them all."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from isoglot.errors import CorpusError
from isoglot.tasks import all_tasks, find_task
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


def test_codes_of_all_kinds_become_one(tmp_path):
    touch(
        tmp_path, *(f"x/{code}.test" for code in ("lvs", "cor", "nob", "esp", "zh-TW", "eng_Latn"))
    )
    touch(tmp_path, "y/swh-eng.tsv")
    layouts = Layout("x/{language}.{split}"), Layout("y/{language}-{other}.tsv", split="test")
    found = {part.language for part in find_splits(tmp_path, layouts)}
    assert found == {"lv", "kw", "no", "es", "zh_TW", "en", "sw-en"}


@pytest.mark.parametrize("names", [("nob", "nb"), ("no", "nob"), ("swa", "sw")])
def test_two_files_of_one_language_are_not_joined(tmp_path, names):
    touch(tmp_path, *(f"x/{name}.test" for name in names))
    layout = Layout("x/{language}.{split}")
    with pytest.raises(CorpusError, match=r"are both the test split of (no|sw)\. Keep one"):
        find_splits(tmp_path, (layout,))
    touch(tmp_path, "y/en.test", "y/en.test.xz")
    with pytest.raises(CorpusError, match=r"en\.test and .*en\.test\.xz are both"):
        find_splits(tmp_path, (Layout("y/{language}.{split}"),))


def test_wikipedias_codes_are_read_as_such(tmp_path):
    names = "als sq simple zh-min-nan bat-smg en".split()
    touch(tmp_path, *(f"wikiann/{code}/test" for code in names))
    (tmp_path / "wikiann/als/test").write_text("als:Basel\tB-LOC\nals:\tO\nsq:Basel\tO\n\n")
    task = find_task("wikiann")
    parts = {part.language: part for part in task.splits(tmp_path)}
    assert set(parts) == {"gsw", "sq", "en_simple", "nan", "sgs", "en"}
    assert task.read(parts["gsw"])[0].words == ("Basel", "als:", "sq:Basel")


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
