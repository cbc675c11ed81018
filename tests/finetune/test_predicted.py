"""Predictions in files give the scores that the results have."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from isoglot.finetune.predicted import write_predictions
from isoglot.finetune.run import finetune_and_score
from isoglot.tasks.examples import Tagged
from isoglot.tasks.wikiann import WikiAnn
from tests.finetune.tasks import PairTask
from tests.finetune.test_run import asked
from tests.finetune.test_scored import AnswerableTask


def test_answers(folder, tmp_path):
    task = AnswerableTask()
    settings = asked(max_length=24)
    (scores,) = finetune_and_score(folder, task, tmp_path, settings, write=tmp_path / "said")
    (file,) = (tmp_path / "said").rglob("aa.json")
    assert file.parent.name == "seed-0"
    assert file.parent.parent.name.startswith("zero-shot-from-aa-testbed-batch_size=4")
    said = json.loads(file.read_text(encoding="utf-8"))
    examples = task.read(task.part(tmp_path, "aa", "test"))
    values = task.score(examples, [said[example.id] for example in examples], "aa")
    assert values == {score.metric: score.value for score in scores}
    n_best = json.loads((file.parent / "aa.n-best.json").read_text(encoding="utf-8"))
    assert all(n_best[example.id][0]["text"] == said[example.id] for example in examples)


def test_labels_and_what_is_written_already(folder, tmp_path):
    task, place = PairTask(), tmp_path / "said"
    (scores,) = finetune_and_score(folder, task, tmp_path, asked(), write=place)
    for score in scores:
        (file,) = place.rglob(f"{score.language}.txt")
        said = file.read_text(encoding="utf-8").splitlines()
        examples = task.read(task.part(Path(), score.language, "test"))
        assert task.score(examples, said, score.language) == {"accuracy": score.value}
    again = {"finished": scores, "write": place}
    assert not list(finetune_and_score(folder, task, tmp_path, asked(), **again))
    next(place.rglob("bb.txt")).unlink()
    assert list(finetune_and_score(folder, task, tmp_path, asked(), **again))


def test_tags_are_conlls_columns(tmp_path):
    first = Tagged(id="1", words=("Anna", "1 000"), tags=("B-PER", "O"))
    second = Tagged(id="2", words=("Bern",), tags=("B-LOC",))
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
