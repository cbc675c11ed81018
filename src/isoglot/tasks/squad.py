"""SQuAD: questions whose answers are spans of a paragraph. The reader and scorer of all QA tasks.

`percentages` gives what the official v1.1 script prints, to the last digit: predictions and answers
are lower-cased, English articles, ASCII punctuation and white space are taken out, and each
question counts with its best answer. A task's `score` has the same numbers as shares.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from typing_extensions import override

from isoglot.tasks.base import Metric, Part
from isoglot.tasks.examples import Answer, Question
from isoglot.tasks.finding import FileTask, Layout, hub
from isoglot.tasks.hub import hub_rows, is_hub_file
from isoglot.tasks.lines import damaged, whole_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from isoglot.tasks.base import Kind

    Normalize = Callable[[str], str]

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalize_english(text: str) -> str:
    """Lower case, no ASCII punctuation, no English articles, single spaces."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


def overlap_f1(prediction: list[str], answer: list[str]) -> float:
    """F1 of the words that a prediction shares with an answer."""
    shared = sum((Counter(prediction) & Counter(answer)).values())
    if shared == 0:
        return 0.0
    precision = 1.0 * shared / len(prediction)
    recall = 1.0 * shared / len(answer)
    return (2 * precision * recall) / (precision + recall)


def percentages(
    examples: Sequence[Question], predictions: Sequence[str], normalize: Normalize
) -> dict[str, float]:
    """Exact match and F1 of all questions, in percent, as the v1.1 script has them."""
    exact, f1 = 0, 0.0
    for example, prediction in zip(examples, predictions, strict=True):
        said = normalize(prediction)
        answers = [normalize(answer.text) for answer in example.answers]
        exact += said in answers
        f1 += max((overlap_f1(said.split(), answer.split()) for answer in answers), default=0.0)
    number = len(examples) or 1
    return {"f1": 100.0 * f1 / number, "exact": 100.0 * exact / number}


def read_questions(path: Path) -> Iterator[Question]:
    """The questions of a SQuAD file, or of a dataset folder's.

    Raises:
        CorpusError: the file is damaged, or an answer is not where the file says.
    """
    for question, place in _questions(path):
        for answer in question.answers:
            if not _stands(answer, question):
                raise damaged(
                    path, place, f"the context has no {answer.text!r} at character {answer.start}."
                )
        yield question


def read_translated(path: Path) -> Iterator[Question]:
    """The questions of a file that a machine translated, without answers whose place was lost.

    A question that has none left is passed over: there is nothing to learn from it.
    """
    for question, _ in _questions(path):
        answers = tuple(answer for answer in question.answers if _stands(answer, question))
        if answers:
            yield replace(question, answers=answers)


def _stands(answer: Answer, question: Question) -> bool:
    return answer.start >= 0 and question.context.startswith(answer.text, answer.start)


def _questions(path: Path) -> Iterator[tuple[Question, str]]:
    """Each question, and the place in the file where it is."""
    if is_hub_file(path):
        for number, row in hub_rows(path, "context", "answers"):
            yield _question(row, _joined(row["answers"]), row["context"], path, f"line {number}")
        return
    content = whole_json(path)
    try:
        asked = [
            (number, paragraph["context"], question)
            for number, article in enumerate(content["data"], start=1)
            for paragraph in article["paragraphs"]
            for question in paragraph["qas"]
        ]
    except (KeyError, TypeError) as error:
        raise damaged(path, 1, f"is not SQuAD's JSON ({error}).") from error
    for number, context, question in asked:
        if not isinstance(question, dict):
            raise damaged(path, f"article {number}", f"{question!r} is no question.")
        yield _question(question, question.get("answers"), context, path, f"article {number}")


def _joined(columns: Any) -> Any:
    """A dataset folder's answers, a list of texts and one of places, as SQuAD's file has them."""
    if not isinstance(columns, dict):
        return None
    texts, starts = columns.get("text"), columns.get("answer_start")
    if texts is None or starts is None or len(texts) != len(starts):
        return None
    pairs = zip(texts, starts, strict=True)
    return [{"text": text, "answer_start": start} for text, start in pairs]


def _question(
    asked: dict[str, Any], said: Any, context: Any, path: Path, place: str
) -> tuple[Question, str]:
    place = f"{place}, question {asked.get('id')!r}"
    try:
        answers = tuple(
            Answer(text=str(answer["text"]), start=int(answer["answer_start"])) for answer in said
        )
        question = Question(
            id=str(asked["id"]), question=asked["question"], context=context, answers=answers
        )
    except (KeyError, TypeError, ValueError) as error:
        raise damaged(path, place, f"lacks something or has another type ({error}).") from error
    if not isinstance(context, str) or not isinstance(question.question, str):
        raise damaged(path, place, "has no context, or no question.")
    return question, place


class QuestionTask(FileTask[Question, str]):
    """A task in SQuAD's format, scored as SQuAD 1.1."""

    kind: ClassVar[Kind] = "span"
    version = 1
    metrics: ClassVar[tuple[Metric, ...]] = (Metric(name="f1"), Metric(name="exact"))

    def normalizer(self, language: str) -> Normalize:
        """What is done to predictions and answers before they are compared."""
        del language
        return normalize_english

    @override
    def read(self, part: Part) -> list[Question]:
        return [question for path in part.files for question in read_questions(path)]

    @override
    def score(
        self, examples: Sequence[Question], predictions: Sequence[str], language: str
    ) -> dict[str, float]:
        found = percentages(examples, predictions, self.normalizer(language))
        return {metric: percent / 100 for metric, percent in found.items()}


class Squad(QuestionTask):
    """SQuAD 1.1 (Rajpurkar et al. 2016): 87,599 train and 10,570 dev questions. CC BY-SA 4.0.

    In other languages, its translations by machine, for translate-train: MLQA's (ar de es hi vi zh)
    and XTREME's. Questions keep the ids of their originals. Answers that the translators could not
    find again in the paragraph are left out, with their questions.
    """

    name = "squad"
    languages = "en, and translated"
    line = "answers in a paragraph"
    paper = "Rajpurkar et al. 2016"
    licence = "CC BY-SA 4.0"
    layouts: ClassVar = (
        Layout("squad/{split}-v1.1.json", ("en",)),
        *hub("squad", "plain_text", ("en",)),
        Layout("mlqa-translate-train/{language}_squad-translate-train-{split}-v1.1.json"),
        Layout("squad/translate-train/squad.translate.{split}.en-{language}.json"),
        *hub("mlqa", "mlqa-translate-train.{language}"),
    )

    @override
    def read(self, part: Part) -> list[Question]:
        if part.language == "en":
            return super().read(part)
        return [question for path in part.files for question in read_translated(path)]
