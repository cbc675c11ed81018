"""TyDiQA's primary tasks: which passage of a document answers a question, and with which words?

A model predicts the words (the minimal answer span); the passage is the one they stand in. It does
not answer yes or no, so such questions are missed. Scored as TyDiQA's script does, by language:

- A question has a gold answer if two of its three annotators give one.
- A minimal answer counts as much as its bytes agree with those of an annotator (F1, the best of the
  annotators); a passage counts if it is an annotator's.
- Answers are ranked by their score, and those above the threshold with the best F1 are given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from typing_extensions import override

from isoglot.languages import name_of
from isoglot.tasks.base import Metric
from isoglot.tasks.data_files import Row, is_hf_file, read_rows
from isoglot.tasks.examples import Answer, AnswerAnnotation, DocumentQuestion, PredictedAnswer
from isoglot.tasks.layouts import FileTask, Layout, hf_layouts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from isoglot.tasks.base import TaskSplit

_LANGUAGES = ("ar", "bn", "en", "fi", "id", "ja", "ko", "ru", "sw", "te", "th")
_NEEDED_VOTES = 2
Span = tuple[int, int]


class TydiQaPrimary(FileTask[DocumentQuestion, str]):
    """TyDiQA's primary tasks (Clark et al. 2020): 11 languages, 166,916 train and 18,670 dev.

    The questions are on whole Wikipedia articles, and most articles do not answer them. Files have
    all languages, `tydiqa-v1.0-dev.jsonl.gz`. The official average leaves out English.
    """

    name = "tydiqa-primary"
    kind = "question-answering"
    version = 1
    metrics = tuple(
        Metric(name=f"{answer}_{metric}")
        for answer in ("minimal", "passage")
        for metric in ("f1", "precision", "recall")
    )
    languages = "11"
    summary = "passages and answers in whole articles"
    paper = "Clark et al. 2020"
    license = "Apache-2.0, text CC BY-SA 3.0"
    layouts: ClassVar = (
        Layout("tydiqa/tydiqa-v1.0-{split}.jsonl", _LANGUAGES),
        *hf_layouts("tydiqa", "primary_task", _LANGUAGES),
    )

    @override
    def read(self, split: TaskSplit) -> list[DocumentQuestion]:
        wanted = name_of(split.language).lower()
        return [_question(row) for row in read_rows(split.files) if row.text("language") == wanted]

    @override
    def score(
        self, examples: Sequence[DocumentQuestion], predictions: Sequence[str], language: str
    ) -> dict[str, float]:
        places = [_place(*pair) for pair in zip(examples, predictions, strict=True)]
        pairs = list(zip(examples, places, strict=True))
        return {
            f"{name}_{metric}": value
            for name, judge in (("minimal", _judge_minimal), ("passage", _judge_passage))
            for metric, value in best_scores(judge(*pair) for pair in pairs).items()
        }


class _Place(NamedTuple):
    """A predicted place in a document."""

    span: Span | None
    """Bytes of the minimal answer; none: no answer."""
    passage: int
    score: float


class Judged(NamedTuple):
    """One question of one of the tasks."""

    has_gold: bool
    has_prediction: bool
    right: float
    """1 for a correct passage, the F1 of the bytes for a minimal answer."""
    score: float


def best_scores(judged: Iterable[Judged]) -> dict[str, float]:
    """F1, precision and recall of the answers above the threshold with the best F1."""
    ranked = sorted(judged, key=lambda each: -each.score)
    num_gold = sum(each.has_gold for each in ranked)
    best = {"f1": 0.0, "precision": 0.0, "recall": 0.0}
    right, given = 0.0, 0
    for number, each in enumerate(ranked, start=1):
        right += each.right
        given += each.has_prediction
        if number < len(ranked) and ranked[number].score == each.score:
            continue  # a threshold does not divide answers of one score
        precision = right / given if given else 0.0
        recall = right / num_gold if num_gold else 0.0
        both = precision + recall
        f1 = 2 * precision * recall / both if both else 0.0
        if f1 > best["f1"]:
            best = {"f1": f1, "precision": precision, "recall": recall}
    return best


def _judge_minimal(example: DocumentQuestion, place: _Place) -> Judged:
    answered = [a for a in example.annotations if a.span is not None or a.yes_no != "none"]
    has_gold = _is_voted(answered, example)
    spans = [annotation.span for annotation in example.annotations if annotation.span is not None]
    right = 0.0
    if has_gold and place.span is not None:
        right = max((_byte_f1(span, place.span) for span in spans), default=0.0)
    return Judged(has_gold, place.span is not None, right, place.score)


def _judge_passage(example: DocumentQuestion, place: _Place) -> Judged:
    gold = [annotation.passage for annotation in example.annotations if annotation.passage >= 0]
    has_gold = _is_voted(gold, example)
    is_right = has_gold and place.passage >= 0 and place.passage in gold
    return Judged(has_gold, place.passage >= 0, float(is_right), place.score)


def _is_voted(votes: Sequence[Any], example: DocumentQuestion) -> bool:
    return len(votes) >= min(_NEEDED_VOTES, max(1, len(example.annotations)))


def _byte_f1(gold: Span, predicted: Span) -> float:
    shared = min(gold[1], predicted[1]) - max(gold[0], predicted[0])
    return max(0.0, 2 * shared / (gold[1] - gold[0] + predicted[1] - predicted[0]))


def _place(example: DocumentQuestion, prediction: str) -> _Place:
    """Where a prediction is; the place of a text alone is the first in the document."""
    if isinstance(prediction, PredictedAnswer):
        start, end, score = prediction.start, prediction.end, -prediction.null_odds
    else:
        start, score = (example.context.find(prediction) if prediction else -1), 0.0
        end = start + len(prediction)
    if start < 0 or start == end:
        return _Place(None, -1, score)
    first = len(example.context[:start].encode())
    span = first, first + len(example.context[start:end].encode())
    inside = (n for n, (begin, stop) in enumerate(example.passages) if begin <= first < stop)
    return _Place(span, next(inside, -1), score)


def tydiqa_prediction(example: DocumentQuestion, prediction: str) -> dict[str, Any]:
    """A prediction in the format that TyDiQA's script reads."""
    place = _place(example, prediction)
    start, end = place.span or (-1, -1)
    language, _, number = example.id.partition("-")
    return {
        "example_id": int(number) if number.lstrip("-").isdigit() else number,
        "language": language,
        "passage_answer_index": place.passage,
        "passage_answer_score": place.score,
        "minimal_answer": {"start_byte_offset": start, "end_byte_offset": end},
        "minimal_answer_score": place.score,
        "yes_no_answer": "NONE",
    }


def _question(row: Row) -> DocumentQuestion:
    context = row.get("document_plaintext")
    if not isinstance(context, str):
        raise row.error("has no document_plaintext.")
    written = context.encode()
    try:
        passages, annotations = _columns(row) if is_hf_file(row.path) else _objects(row)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise row.error(f"lacks a value or has another type ({error}).") from error
    spans = [a.span for a in annotations if a.span is not None]
    if any(end > len(written) for _, end in [*passages, *spans]):
        raise row.error("has a passage or an answer beyond the end of its document.")
    return DocumentQuestion(
        id=f"{row.text('language')}-{row.get('example_id', row.number)}",
        question=row.text("question_text"),
        context=context,
        answers=tuple(_answer(written, *span) for span in spans),
        passages=tuple(passages),
        annotations=tuple(annotations),
    )


def _answer(written: bytes, start: int, end: int) -> Answer:
    text = written[start:end].decode("utf-8", "ignore")
    return Answer(text=text, start=len(written[:start].decode("utf-8", "ignore")))


def _objects(row: Row) -> tuple[list[Span], list[AnswerAnnotation]]:
    """Passages and annotations of TyDiQA's own JSON lines."""
    passages = [_span(each) for each in row["passage_answer_candidates"]]
    annotations = [
        _annotation(
            int(each["passage_answer"]["candidate_index"]),
            _span(each["minimal_answer"]),
            each["yes_no_answer"],
        )
        for each in row["annotations"]
    ]
    return passages, annotations


def _span(each: dict[str, Any]) -> Span:
    return int(each["plaintext_start_byte"]), int(each["plaintext_end_byte"])


def _columns(row: Row) -> tuple[list[Span], list[AnswerAnnotation]]:
    """Passages and annotations of the Hugging Face data set: an object of lists each."""
    listed, said = row["passage_answer_candidates"], row["annotations"]
    starts, ends = listed["plaintext_start_byte"], listed["plaintext_end_byte"]
    passages = list(zip(starts, ends, strict=True))
    names = "passage_answer_candidate_index", "minimal_answers_start_byte"
    columns = [said[name] for name in (*names, "minimal_answers_end_byte", "yes_no_answer")]
    annotations = [
        _annotation(passage, (start, end), yes_no)
        for passage, start, end, yes_no in zip(*columns, strict=True)
    ]
    return passages, annotations


def _annotation(passage: int, span: Span, yes_no: str) -> AnswerAnnotation:
    is_span = 0 <= span[0] < span[1]
    return AnswerAnnotation(
        passage=passage, span=span if is_span else None, yes_no=str(yes_no).lower()
    )
