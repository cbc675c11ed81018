"""Predictions in files give the scores that the results have."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from isoglot.finetuning.save import file_name, prediction_files, write_predictions
from isoglot.tasks.examples import Answer, PredictedAnswer, Question, TaggedSentence
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
    told = {score.metric: score.value for score in scores}
    assert values == {name: told[name] for name in values}
    assert set(told) - set(values) == {"best_f1", "best_exact"}, "from odds, not from texts"
    n_best = json.loads((file.parent / "aa.n-best.json").read_text(encoding="utf-8"))
    assert all(n_best[example.id][0]["text"] == said[example.id] for example in examples)


def test_odds_of_no_answer_give_the_best_scores(tmp_path):
    asked = [
        Question(id="1", question="?", context="ab", answers=(Answer(text="a", start=0),)),
        Question(id="2", question="?", context="ab", answers=()),
    ]
    said = [
        PredictedAnswer("", best="a", start=0, end=1, null_odds=1.5),
        PredictedAnswer("", best="b", start=1, end=2, null_odds=2.5),
    ]
    write_predictions(tmp_path / "en.json", "question-answering", asked, said)

    def read(name):
        return json.loads((tmp_path / f"en.{name}json").read_text(encoding="utf-8"))

    assert read("") == {"1": "", "2": ""}
    assert read("best.") == {"1": "a", "2": "b"}
    assert read("null-odds.") == {"1": 1.5, "2": 2.5}
    assert read("thresholds.") == {
        "best_exact": 100.0, "best_exact_thresh": 1.5, "best_f1": 100.0, "best_f1_thresh": 1.5,
    }  # fmt: skip
    write_predictions(tmp_path / "de.json", "question-answering", asked[:1], said[:1])
    assert not (tmp_path / "de.best.json").exists(), "every question has an answer"


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
    write_predictions(tmp_path / "en.conll", "token-classification", [first, second], said)
    text = (tmp_path / "en.conll").read_text(encoding="utf-8")
    assert text == "Anna B-PER B-PER\n1_000 O B-LOC\n\nBern B-LOC B-LOC\n\n"
    sentences = [[line.split(" ") for line in part.split("\n")] for part in text.split("\n\n")[:-1]]
    read = [[row[2] for row in rows] for rows in sentences]
    assert WikiAnn().score([first, second], read, "en") == WikiAnn().score(
        [first, second], said, "en"
    )


@pytest.mark.parametrize("kind", ["text-classification", "multiple-choice"])
def test_one_a_line(tmp_path, kind):
    write_predictions(tmp_path / "en.txt", kind, ["a", "b"], [1, 0])
    assert (tmp_path / "en.txt").read_text(encoding="utf-8") == "1\n0\n"


def test_names_of_tasks_and_languages_of_ones_own_stay_in_the_folder(tmp_path):
    class Odd(PairTask):
        name = "../../x"

    files = prediction_files(tmp_path, Odd(), "zero-shot from en, xtreme", 0, ["../y", "en"])
    for file in files.values():
        assert file.resolve().is_relative_to(tmp_path)
    assert len(set(files.values())) == 2
    long = [f"pooled on {'ar bg de ' * 40}, xtreme, seed {seed}" for seed in (0, 1)]
    assert len({file_name(label) for label in long}) == 2
    assert all(len(file_name(label)) < 200 for label in long)
    assert file_name("x" * 180) == "x" * 180
    assert len(file_name("x" * 181)) == 180 + len("-") + 8
    assert file_name("xnli zero-shot from en seed 0") == "xnli-zero-shot-from-en-seed-0"
