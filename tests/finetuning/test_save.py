"""Predictions in files give the scores that the results have."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from isoglot.finetuning.save import write_predictions
from isoglot.tasks.examples import TaggedSentence
from isoglot.tasks.ner import WikiAnn
from tests.finetuning.tasks import PairTask, finetuned
from tests.finetuning.test_data import AnswerableTask
from tests.finetuning.test_finetune import request


def test_answers(folder, tmp_path):
    task = AnswerableTask()
    settings = request(max_length=24)
    (scores,) = finetuned(folder, task, tmp_path, settings, save_predictions=tmp_path / "said")
    (file,) = (tmp_path / "said").rglob("aa.json")
    assert file.parent.name == "seed-0"
    assert file.parent.parent.name.startswith("zero-shot-from-aa-testbed-batch_size=4")
    said = json.loads(file.read_text(encoding="utf-8"))
    examples = task.read(task.find_split(tmp_path, "aa", "test"))
    values = task.score(examples, [said[example.id] for example in examples], "aa")
    assert values == {score.metric: score.value for score in scores}
    n_best = json.loads((file.parent / "aa.n-best.json").read_text(encoding="utf-8"))
    assert all(n_best[example.id][0]["text"] == said[example.id] for example in examples)


def test_labels_and_what_is_written_already(folder, tmp_path):
    task, place = PairTask(), tmp_path / "said"
    (scores,) = finetuned(folder, task, tmp_path, request(), save_predictions=place)
    for score in scores:
        (file,) = place.rglob(f"{score.language}.txt")
        said = file.read_text(encoding="utf-8").splitlines()
        examples = task.read(task.find_split(Path(), score.language, "test"))
        assert task.score(examples, said, score.language) == {"accuracy": score.value}
    again = {"finished": scores, "save_predictions": place}
    assert not list(finetuned(folder, task, tmp_path, request(), **again))
    next(place.rglob("bb.txt")).unlink()
    assert list(finetuned(folder, task, tmp_path, request(), **again))


def test_tags_are_conlls_columns(tmp_path):
    first = TaggedSentence(id="1", words=("Anna", "1 000"), tags=("B-PER", "O"))
    second = TaggedSentence(id="2", words=("Bern",), tags=("B-LOC",))
    said = [("B-PER", "B-LOC"), ("B-LOC",)]
    write_predictions(tmp_path / "en.conll", "tag", [first, second], said)
    text = (tmp_path / "en.conll").read_text(encoding="utf-8")
    assert text == "Anna B-PER B-PER\n1_000 O B-LOC\n\nBern B-LOC B-LOC\n\n"
    sentences = [[line.split(" ") for line in part.split("\n")] for part in text.split("\n\n")[:-1]]
    read = [[row[2] for row in rows] for rows in sentences]
    assert WikiAnn().score([first, second], read, "en") == WikiAnn().score(
        [first, second], said, "en"
    )


@pytest.mark.parametrize("kind", ["classify", "choice"])
def test_one_a_line(tmp_path, kind):
    write_predictions(tmp_path / "en.txt", kind, ["a", "b"], [1, 0])
    assert (tmp_path / "en.txt").read_text(encoding="utf-8") == "1\n0\n"
