"""Answers scored as the official scripts do, to the last digit, on all scripts of the data pack."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache

import pytest
import torch
from torchmetrics.functional.text import squad as torchmetrics_squad

from isoglot.errors import CorpusError
from isoglot.tasks import find_task
from isoglot.tasks.examples import Answer, PredictedAnswer, Question
from isoglot.tasks.multilingual_qa import normalize_mlqa
from isoglot.tasks.squad import (
    best_thresholds,
    normalize_english,
    squad_percentages,
    squad_v2_percentages,
)
from tests.tasks import guesses, references

XQUAD = "ar de el en es hi ro ru th tr vi zh".split()
TYDIQA = "ar en fi ko ru sw".split()


@cache
def questions(data_folder, task, language, split):
    """Every third question of a split: 397 of XQuAD's 1,190."""
    task = find_task(task)
    return task.read(task.find_split(data_folder, language, split))[::3]


@pytest.mark.parametrize(
    ("task", "language", "split"),
    [*(("xquad", code, "test") for code in XQUAD), *(("tydiqa", code, "dev") for code in TYDIQA)],
)
def test_squad_1(data_folder, task, language, split):
    asked = questions(data_folder, task, language, split)
    said = guesses.answers(asked)
    found = squad_percentages(asked, said, normalize_english)
    assert found == references.squad(asked, said), "bit for bit"
    assert 20 < found["exact"] < found["f1"] < 90
    shares = find_task(task).score(asked, said, language)
    assert shares == {name: percent / 100 for name, percent in found.items()}


def test_squad_1_against_torchmetrics(data_folder):
    asked = [q for code in XQUAD for q in questions(data_folder, "xquad", code, "test")[:100]]
    said = guesses.answers(asked, seed=1)
    targets = [
        {
            "id": str(number),
            "answers": {
                "text": [answer.text for answer in question.answers],
                "answer_start": [answer.start for answer in question.answers],
            },
        }
        for number, question in enumerate(asked)
    ]
    predictions = [{"id": str(n), "prediction_text": text} for n, text in enumerate(said)]
    theirs = torchmetrics_squad(predictions, targets)
    ours = squad_percentages(asked, said, normalize_english)
    assert torch.isclose(theirs["f1"].double(), torch.tensor(ours["f1"]).double(), rtol=1e-6)
    assert torch.isclose(
        theirs["exact_match"].double(), torch.tensor(ours["exact"]).double(), rtol=1e-6
    )


@pytest.mark.parametrize("language", [*XQUAD])
def test_squad_2(data_folder, language):
    """Every third question loses its answers, as SQuAD 2.0's unanswerable ones have none."""
    asked = [
        replace(question, answers=()) if number % 3 == 0 else question
        for number, question in enumerate(questions(data_folder, "xquad", language, "test"))
    ]
    said = guesses.answers(asked)
    found = squad_v2_percentages(asked, said)
    assert found == references.squad_v2(asked, said), "bit for bit"
    of_models = {"best_f1", "best_exact"}
    assert set(found) | of_models == {metric.name for metric in find_task("squad-v2").metrics}
    shares = find_task("squad-v2").score(asked, said, "en")
    assert shares["NoAns_f1"] == found["NoAns_f1"] / 100


def test_squad_2_without_one_kind_of_question(data_folder):
    asked = questions(data_folder, "xquad", "en", "test")
    said = guesses.answers(asked)
    assert not any("NoAns" in name for name in squad_v2_percentages(asked, said))


@pytest.mark.parametrize("language", ["en", "es", "de", "ar", "hi", "vi", "zh"])
def test_mlqa(data_folder, language):
    asked = questions(data_folder, "xquad", language, "test")
    said = guesses.answers(asked)
    task = find_task("mlqa")
    found = squad_percentages(asked, said, lambda text: normalize_mlqa(text, language=language))
    expected = references.squad(asked, said, lambda text: references.mlqa_words(text, language))
    assert found == expected, "bit for bit"
    assert found != squad_percentages(asked, said, normalize_english), "the language's own rules"
    assert task.score(asked, said, language)["f1"] == found["f1"] / 100
    assert task.score(asked, said, f"xx-{language}") == task.score(asked, said, language)


@pytest.mark.parametrize(
    ("language", "text", "normal"),
    [
        ("zh", "《北京》2008年 奥运", "北 京 2008 年 奥 运"),
        ("de", "Die „Aare“ und das Haus", "aare und haus"),
        ("es", "¿Los ríos?", "ríos"),
        ("ar", "الكتاب،", "كتاب"),
        ("vi", "những Con Mèo", "con mèo"),
        ("hi", "नमस्ते।", "नमस्ते"),
    ],
)
def test_mlqa_by_hand(language, text, normal):
    assert normalize_mlqa(text, language=language) == normal


def test_mlqa_has_rules_for_its_languages_only():
    with pytest.raises(CorpusError, match="no rules for 'sw'"):
        find_task("mlqa").score([], [], "en-sw")


@pytest.mark.parametrize("seed", range(6))
def test_thresholds_of_no_answer(seed):
    rng = random.Random(seed)
    said = ["rot", "blau", "grün gelb", "die See"]
    asked, answers = [], []
    for number in range(40):
        text = rng.choice(said)
        known = () if rng.random() < 0.5 else (Answer(text=text, start=0),)
        asked.append(Question(id=str(number), question="?", context=text, answers=known))
        best = text if rng.random() < 0.6 else rng.choice([*said, ""])
        odds = round(rng.gauss(1.5 if not known else -1.5, 2.0), 4) + number * 1e-6
        answers.append(PredictedAnswer("", best=best, start=0, end=len(best), null_odds=odds))
    found = best_thresholds(asked, answers)
    expected = references.squad_v2_best(
        asked, [answer.best for answer in answers], [answer.null_odds for answer in answers]
    )
    assert {name: pytest.approx(tuple(each)) for name, each in found.items()} == expected
    scores = find_task("squad-v2").score(asked, answers, "en")
    assert scores["best_f1"] == pytest.approx(expected["best_f1"][0] / 100)
    assert scores["best_exact"] >= scores["exact"]
    assert "best_f1" not in find_task("squad-v2").score(asked, [""] * 40, "en"), "texts alone"


def test_no_threshold_helps_a_model_that_is_always_wrong():
    asked = [Question(id="1", question="?", context="a", answers=(Answer(text="a", start=0),))]
    wrong = PredictedAnswer("b", best="b", start=0, end=1, null_odds=-3.0)
    assert best_thresholds(asked, [wrong])["best_f1"] == (0.0, 0.0)
