"""Extractive question answering in SQuAD's format: reader and scorer, SQuAD 1.1 and 2.0.

`squad_percentages` and `squad_v2_percentages` give what the official scripts print, to the last
digit: predictions and answers are lower-cased; ASCII punctuation, English articles and extra white
space are removed; each question counts with its best answer. A task's `score` has the same numbers
divided by 100.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from typing_extensions import override

from isoglot.tasks.base import Metric, TaskSplit, f1_scores
from isoglot.tasks.data_files import file_error, hf_rows, is_hf_file, read_json
from isoglot.tasks.examples import Answer, PredictedAnswer, Question
from isoglot.tasks.layouts import FileTask, Layout, hf_layouts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    Normalize = Callable[[str], str]

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


class QuestionAnsweringTask(FileTask[Question, str]):
    """A task in SQuAD's format, scored as SQuAD 1.1."""

    kind = "question-answering"
    version = 1
    metrics: ClassVar[tuple[Metric, ...]] = (Metric(name="f1"), Metric(name="exact"))

    def normalizer(self, language: str) -> Normalize:
        """The normalization of predictions and answers before they are compared."""
        del language
        return normalize_english

    @override
    def read(self, split: TaskSplit) -> list[Question]:
        return [question for path in split.files for question in read_questions(path)]

    @override
    def score(
        self, examples: Sequence[Question], predictions: Sequence[str], language: str
    ) -> dict[str, float]:
        found = squad_percentages(examples, predictions, self.normalizer(language))
        return {metric: percent / 100 for metric, percent in found.items()}


class Squad(QuestionAnsweringTask):
    """SQuAD 1.1 (Rajpurkar et al. 2016): 87,599 train and 10,570 dev questions.

    In other languages, its machine translations for translate-train: MLQA's (ar de es hi vi zh) and
    XTREME's. Questions keep the ids of their originals. Answers that the translation no longer has
    in the paragraph are left out, with their questions.
    """

    name = "squad"
    languages = "en, and translated"
    summary = "answers in a paragraph"
    paper = "Rajpurkar et al. 2016"
    license = "CC BY-SA 4.0"
    layouts: ClassVar = (
        Layout("squad/{split}-v1.1.json", ("en",)),
        *hf_layouts("squad", "plain_text", ("en",)),
        Layout("mlqa-translate-train/{language}_squad-translate-train-{split}-v1.1.json"),
        Layout("squad/translate-train/squad.translate.{split}.en-{language}.json"),
        *hf_layouts("mlqa", "mlqa-translate-train.{language}"),
    )

    @override
    def read(self, split: TaskSplit) -> list[Question]:
        if split.language == "en":
            return super().read(split)
        return [question for path in split.files for question in read_translated(path)]


class SquadV2(QuestionAnsweringTask):
    """SQuAD 2.0 (Rajpurkar et al. 2018): 130,319 train and 11,873 dev questions.

    A third of the train questions and half of dev have no answer. Scored as the official v2.0
    script does: an empty prediction means no answer. For predictions of a model, `best_exact` and
    `best_f1` are the scores with the best threshold of `null_odds`, chosen on the scored questions,
    as the script prints them for best answers and a file of probabilities of no answer; their
    thresholds (`best_exact_thresh`, `best_f1_thresh`) are written with the predictions.
    """

    name = "squad-v2"
    languages = "en"
    summary = "answers in a paragraph, or none"
    paper = "Rajpurkar et al. 2018"
    license = "CC BY-SA 4.0"
    metrics = tuple(
        Metric(name=f"{group}{metric}")
        for group in ("", "HasAns_", "NoAns_", "best_")
        for metric in ("f1", "exact")
    )
    layouts: ClassVar = (
        Layout("squad/{split}-v2.0.json", ("en",)),
        *hf_layouts("squad_v2", "squad_v2", ("en",)),
    )

    @override
    def score(
        self, examples: Sequence[Question], predictions: Sequence[str], language: str
    ) -> dict[str, float]:
        found = squad_v2_percentages(examples, predictions)
        scores = {metric: percent / 100 for metric, percent in found.items()}
        answers = [answer for answer in predictions if isinstance(answer, PredictedAnswer)]
        if len(answers) == len(examples):
            best = best_thresholds(examples, answers)
            scores |= {name: each.percent / 100 for name, each in best.items()}
        return scores


def normalize_english(text: str) -> str:
    """Lower case, no ASCII punctuation, no English articles, single spaces."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


def overlap_f1(prediction: list[str], answer: list[str]) -> float:
    """F1 of the words that a prediction shares with an answer."""
    shared = sum((Counter(prediction) & Counter(answer)).values())
    return f1_scores(shared, num_predicted=len(prediction), num_gold=len(answer))["f1"]


def squad_percentages(
    examples: Sequence[Question], predictions: Sequence[str], normalize: Normalize
) -> dict[str, float]:
    """F1 and exact match over all questions, in percent, as the v1.1 script computes them."""
    exact, f1 = 0, 0.0
    for example, prediction in zip(examples, predictions, strict=True):
        predicted = normalize(prediction)
        answers = [normalize(answer.text) for answer in example.answers]
        exact += predicted in answers
        words = predicted.split()
        f1 += max((overlap_f1(words, answer.split()) for answer in answers), default=0.0)
    number = len(examples) or 1
    return {"f1": 100.0 * f1 / number, "exact": 100.0 * exact / number}


def squad_v2_percentages(
    examples: Sequence[Question], predictions: Sequence[str]
) -> dict[str, float]:
    """What the v2.0 script prints: all questions, those with an answer, those without.

    An answer that is empty after normalization does not count.
    """
    groups: dict[str, list[tuple[int, float]]] = {"": [], "HasAns_": [], "NoAns_": []}
    for example, prediction in zip(examples, predictions, strict=True):
        scores = _v2_scores(example, prediction)
        groups[""].append(scores)
        groups["HasAns_" if example.answers else "NoAns_"].append(scores)
    return {
        f"{group}{metric}": 100.0 * sum(pair[index] for pair in pairs) / len(pairs)
        for group, pairs in groups.items()
        for index, metric in ((1, "f1"), (0, "exact"))
        if pairs
    }


class BestThreshold(NamedTuple):
    """The best score that a threshold of `null_odds` reaches."""

    percent: float
    threshold: float
    """No answer is predicted for questions whose `null_odds` are above it."""


def best_thresholds(
    examples: Sequence[Question], predictions: Sequence[PredictedAnswer]
) -> dict[str, BestThreshold]:
    """`best_exact` and `best_f1` of the v2.0 script, over best answers and their `null_odds`.

    At first no question is answered. Questions are then answered in the order of their odds, and
    the first threshold that gives the most points is kept.
    """
    scores = [
        _v2_scores(example, prediction.best)
        for example, prediction in zip(examples, predictions, strict=True)
    ]
    order = sorted(range(len(examples)), key=lambda number: predictions[number].null_odds)
    found = {}
    for index, name in ((0, "best_exact"), (1, "best_f1")):
        points: float = sum(not example.answers for example in examples)
        best, threshold = points, 0.0
        for number in order:
            if examples[number].answers:
                points += scores[number][index]
            elif predictions[number].best:
                points -= 1
            if points > best:
                best, threshold = points, predictions[number].null_odds
        found[name] = BestThreshold(100.0 * best / (len(examples) or 1), threshold)
    return found


def _v2_scores(example: Question, prediction: str) -> tuple[int, float]:
    """Exact match and F1 of one question."""
    answers = [normalize_english(answer.text) for answer in example.answers]
    predicted = normalize_english(prediction)
    usable = [answer for answer in answers if answer] or [""]
    best_f1 = max(_v2_f1(predicted.split(), answer.split()) for answer in usable)
    return int(predicted in usable), best_f1


def _v2_f1(prediction: list[str], answer: list[str]) -> float:
    if not prediction or not answer:
        return float(prediction == answer)
    return overlap_f1(prediction, answer)


def read_questions(path: Path) -> Iterator[Question]:
    """The questions of a file; refused if an answer is not at its place in the context."""
    for question, place in _read_with_places(path):
        for answer in question.answers:
            if not _is_in_context(answer, question):
                raise file_error(
                    path, place, f"the context has no {answer.text!r} at character {answer.start}."
                )
        yield question


def read_translated(path: Path) -> Iterator[Question]:
    """The questions of a machine-translated file that still have an answer in the context."""
    for question, _ in _read_with_places(path):
        answers = tuple(answer for answer in question.answers if _is_in_context(answer, question))
        if answers:
            yield replace(question, answers=answers)


def _is_in_context(answer: Answer, question: Question) -> bool:
    return answer.start >= 0 and question.context.startswith(answer.text, answer.start)


def _read_with_places(path: Path) -> Iterator[tuple[Question, str]]:
    """Each question, and its place in the file for error messages."""
    if is_hf_file(path):
        for row in hf_rows(path, "context", "answers"):
            answers = _hf_answers(row["answers"])
            yield _parse(row, answers, row["context"], path, f"line {row.number}")
        return
    content = read_json(path)
    try:
        questions = [
            (number, paragraph["context"], question)
            for number, article in enumerate(content["data"], start=1)
            for paragraph in article["paragraphs"]
            for question in paragraph["qas"]
        ]
    except (KeyError, TypeError) as error:
        raise file_error(path, 1, f"is not SQuAD's JSON ({error}).") from error
    for number, context, question in questions:
        if not isinstance(question, dict):
            raise file_error(path, f"article {number}", f"{question!r} is not a question.")
        yield _parse(question, question.get("answers"), context, path, f"article {number}")


def _hf_answers(columns: Any) -> Any:
    """The answers of a Hugging Face row (a list of texts, a list of starts) in SQuAD's format."""
    if not isinstance(columns, dict):
        return None
    texts, starts = columns.get("text"), columns.get("answer_start")
    if texts is None or starts is None or len(texts) != len(starts):
        return None
    pairs = zip(texts, starts, strict=True)
    return [{"text": text, "answer_start": start} for text, start in pairs]


def _parse(
    row: dict[str, Any], answers: Any, context: Any, path: Path, place: str
) -> tuple[Question, str]:
    place = f"{place}, question {row.get('id')!r}"
    try:
        found = tuple(Answer(text=str(a["text"]), start=int(a["answer_start"])) for a in answers)
        question = Question(
            id=str(row["id"]), question=row["question"], context=context, answers=found
        )
    except (KeyError, TypeError, ValueError) as error:
        raise file_error(path, place, f"lacks a value or has another type ({error}).") from error
    if not isinstance(context, str) or not isinstance(question.question, str):
        raise file_error(path, place, "has no context, or no question.")
    return question, place
