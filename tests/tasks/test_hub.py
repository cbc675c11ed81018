"""Hugging Face dataset folders: Parquet files of a repository and Arrow files saved to disk."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from pyarrow import ipc, parquet

from isoglot.errors import CorpusError
from isoglot.tasks import find_task

LABELS = {"_type": "ClassLabel", "names": ["entailment", "neutral", "contradiction"]}
TAGS = {"_type": "ClassLabel", "names": ["O", "B-PER", "I-PER"]}
ANSWERS = {"text": ["Aare", "Aare"], "answer_start": [4, 4]}


def table(rows, features):
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    return pa.Table.from_pylist(rows).replace_schema_metadata(metadata)


def save(content, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        parquet.write_table(content, path)
        return
    with ipc.new_stream(str(path), content.schema) as writer:
        writer.write_table(content)


@pytest.mark.parametrize("file", ["test-00000-of-00001.parquet", "test/data-00000-of-00001.arrow"])
def test_numbers_become_labels(tmp_path, file):
    rows = [
        {"premise": "A.", "hypothesis": "B.", "label": 2},
        {"premise": "C.", "hypothesis": "D.", "label": 0},
    ]
    save(table(rows, {"label": LABELS}), tmp_path / "xnli/sw" / file)
    task = find_task("xnli")
    examples = task.read(task.part(tmp_path, "sw", "test"))
    assert [(e.first, e.second, e.label) for e in examples] == [
        ("A.", "B.", "contradiction"), ("C.", "D.", "entailment"),
    ]  # fmt: skip


@pytest.mark.parametrize("wrapped", [{"_type": "List", "feature": TAGS}, {"feature": TAGS}])
def test_lists_of_numbers_become_tags(tmp_path, wrapped):
    rows = [{"tokens": ["Anna", "Li", "calls"], "ner_tags": [1, 2, 0]}]
    for shard in range(2):
        file = tmp_path / f"conll2003/conll2003/validation-0000{shard}-of-00002.parquet"
        save(table(rows, {"ner_tags": wrapped}), file)
    task = find_task("conll")
    examples = task.read(task.part(tmp_path, "en", "dev"))
    assert [e.id for e in examples] == ["1", "2"], "the shards of a split make one part"
    assert examples[0].tags == ("B-PER", "I-PER", "O")


def test_questions(tmp_path):
    row = {"id": "1", "context": "The Aare", "question": "Which?", "answers": ANSWERS}
    save(table([row], {}), tmp_path / "xquad/xquad.de/validation-00000-of-00001.parquet")
    save(table([row], {}), tmp_path / "mlqa/mlqa.en.de/test-00000-of-00001.parquet")
    xquad, mlqa = find_task("xquad"), find_task("mlqa")
    (question,) = xquad.read(xquad.part(tmp_path, "de", "test"))
    assert [a.start for a in question.answers] == [4, 4]
    assert mlqa.part(tmp_path, "de-en", "test").language == "de-en", "question, then paragraph"


@pytest.mark.parametrize(
    ("name", "place", "language"),
    [("germeval2014", "germeval_14/germeval_14", "de"), ("uner", "universal_ner/zh_gsd", "zh")],
)
def test_names_of_single_languages_and_treebanks(tmp_path, name, place, language):
    rows = [{"tokens": ["Anna", "ruft"], "ner_tags": [1, 0]}]
    save(table(rows, {"ner_tags": {"feature": TAGS}}), tmp_path / place / "test-0.parquet")
    task = find_task(name)
    (example,) = task.read(task.part(tmp_path, language, "test"))
    assert example.tags == ("B-PER", "O")


def test_captions(tmp_path):
    row = {"id": "7", "sentence_A": "A dog.", "sentence_B": "No dog.", "label": 2}
    save(table([row], {"label": LABELS}), tmp_path / "sick/default/validation-0.parquet")
    task = find_task("sick")
    (example,) = task.read(task.part(tmp_path, "en", "dev"))
    assert (example.id, example.first, example.label) == ("7", "A dog.", "contradiction")


def test_a_damaged_file_is_named(tmp_path):
    file = tmp_path / "xnli/sw/test-00000-of-00001.parquet"
    save(table([{"premise": "A.", "hypothesis": "B.", "label": 1}], {"label": LABELS}), file)
    file.write_bytes(file.read_bytes()[:-20])
    task = find_task("xnli")
    with pytest.raises(CorpusError, match="is damaged") as caught:
        task.read(task.part(tmp_path, "sw", "test"))
    assert str(file) in str(caught.value)


@pytest.mark.parametrize(
    ("task", "place", "rows", "message"),
    [
        ("xnli", "xnli/sw", {"premise": None, "hypothesis": "B.", "label": "neutral"},
         "line 1: has nothing in column premise"),
        ("wikiann", "wikiann/sw", {"words": ["a"], "tags": ["O"]}, "has no column tokens or ner"),
        ("wikiann", "wikiann/sw", {"tokens": ["a"], "ner_tags": [0]}, "line 1: has 0 where a tag"),
        ("wikiann", "wikiann/sw", {"tokens": ["a"], "ner_tags": ["O", "O"]}, "line 1: does not"),
        ("xquad", "xquad/xquad.sw", {"id": "1", "context": "a"}, "has no column answers"),
        ("xquad", "xquad/xquad.sw", {"id": "1", "context": "a", "question": "q",
         "answers": {"text": ["a", "a"], "answer_start": [0]}}, "line 1, question '1'"),
    ],
)  # fmt: skip
def test_columns_that_are_not_what_they_should_be(tmp_path, task, place, rows, message):
    split = "validation" if task == "xquad" else "test"
    save(table([rows], {}), tmp_path / place / f"{split}-00000-of-00001.parquet")
    reader = find_task(task)
    with pytest.raises(CorpusError, match=message):
        reader.read(reader.part(tmp_path, "sw", "test"))
