"""A file that is there and not read is named, and nothing else is."""

from __future__ import annotations

from pathlib import Path

import pytest

from isoglot.errors import CorpusError
from isoglot.evaluation.data import splits_to_score
from isoglot.finetuning.plan import FinetunePlan
from isoglot.finetuning.settings import FinetuneRequest
from isoglot.tasks import all_tasks, find_task
from isoglot.tasks.unread import unread_files, unread_note


def touch(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("premise\thypo\tlabel\na\tb\tneutral\n", encoding="utf-8")


def names(task: str, folder: Path) -> list[str]:
    return [path.relative_to(folder).as_posix() for path in unread_files(find_task(task), folder)]


def test_a_file_of_another_format_is_named(tmp_path):
    touch(tmp_path, "nli/xnli/en.test.tsv", "nli/xnli/hr.test.json", "nli/xnli/README.md")
    assert names("xnli", tmp_path) == ["nli/xnli/hr.test.json"]
    note = unread_note(find_task("xnli"), tmp_path)
    assert note is not None
    assert note.startswith(f"There, and not read as xnli: {tmp_path}/nli/xnli/hr.test.json. ")
    touch(tmp_path, *(f"nli/xnli/{number}.dat" for number in range(9)))
    assert "and 7 more." in str(unread_note(find_task("xnli"), tmp_path))


def test_files_of_other_tasks_and_companions_are_not(tmp_path):
    touch(tmp_path, "squad/train-v1.1.json", "squad/dev-v2.0.json", "squad/dev-v1.1.json")
    touch(tmp_path, "tatoeba/de-en.de", "tatoeba/de-en.en", "COPA/test.jsonl", "COPA/train.jsonl")
    touch(tmp_path, "xnli/en/test-0.parquet", "xnli/en/dataset_info.json")
    for task in ("squad", "squad-v2", "tatoeba", "copa", "xnli"):
        assert names(task, tmp_path) == []


def test_of_two_layouts_one_is_read_and_the_other_is_no_surprise(tmp_path):
    touch(tmp_path, "xquad/de.json", "xquad/xquad.de.json", "xquad/xquad.de.jsonl")
    assert names("xquad", tmp_path) == ["xquad/xquad.de.jsonl"]


def test_a_language_without_its_companions_is_named(tmp_path):
    touch(tmp_path, "lama/xfactr_templates/relations.bn.jsonl")
    assert names("xfactr", tmp_path) == ["lama/xfactr_templates/relations.bn.jsonl"]


def test_the_data_pack_has_only_known_files(data_folder):
    found = {path.name for kind in all_tasks() for path in unread_files(kind(), data_folder)}
    without_names = {f"relations.{code}.jsonl.xz" for code in ("bn", "hun", "mr", "yo")}
    assert found == without_names, "X-FACTR's templates of languages without aliases"


def test_where_nothing_is_found_the_message_names_what_is_there(tmp_path):
    touch(tmp_path, "nli/xnli/hr.test.json", "tatoeba/de_en.tsv")
    with pytest.raises(CorpusError, match=r"no files of xnli to score.*hr\.test\.json"):
        FinetunePlan(find_task("xnli"), tmp_path, FinetuneRequest())
    with pytest.raises(CorpusError, match=r"no files of tatoeba.*de_en\.tsv"):
        splits_to_score(find_task("tatoeba"), tmp_path, None)
    touch(tmp_path, "nli/xnli/en.test.tsv")
    with pytest.raises(CorpusError, match=r"no files of xnli to train on.*hr\.test\.json"):
        FinetunePlan(find_task("xnli"), tmp_path, FinetuneRequest())
