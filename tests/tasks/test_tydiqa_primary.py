"""TyDiQA's primary tasks: both formats, and the scores of a slow reference over sets of bytes."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from isoglot.errors import CorpusError
from isoglot.finetuning.save import write_predictions
from isoglot.tasks import find_task
from isoglot.tasks.examples import AnswerAnnotation, DocumentQuestion, PredictedAnswer
from isoglot.tasks.tydiqa_primary import tydiqa_prediction

FOLDER = Path(__file__).parent / "fixtures"
TASK = find_task("tydiqa-primary")


def read(language: str, folder: Path = FOLDER) -> list[DocumentQuestion]:
    found: list[DocumentQuestion] = TASK.read(TASK.find_split(folder, language, "dev"))
    return found


def test_bytes_become_characters():
    (swahili,) = read("sw")
    assert swahili.id == "swahili--2226"
    assert [answer.text for answer in swahili.answers] == ["4,397,073"] * 2
    start = swahili.answers[0].start
    assert swahili.context[start : start + 9] == "4,397,073"
    assert [annotation.passage for annotation in swahili.annotations] == [1, 1, -1]
    (thai,) = read("th")
    assert [(answer.text, answer.start) for answer in thai.answers] == [("ข", 1)]
    assert [annotation.yes_no for annotation in thai.annotations] == ["none", "yes", "none"]
    assert read("ko") == []


def test_the_hugging_face_data_set_gives_the_same(tmp_path):
    rows = [*read("sw"), *read("th")]
    table = pa.table(
        {
            "language": ["swahili", "thai"],
            "question_text": [row.question for row in rows],
            "document_plaintext": [row.context for row in rows],
            "passage_answer_candidates": [
                {
                    "plaintext_start_byte": [start for start, _ in row.passages],
                    "plaintext_end_byte": [end for _, end in row.passages],
                }
                for row in rows
            ],
            "annotations": [
                {
                    "passage_answer_candidate_index": [a.passage for a in row.annotations],
                    "minimal_answers_start_byte": [
                        (a.span or (-1, -1))[0] for a in row.annotations
                    ],
                    "minimal_answers_end_byte": [(a.span or (-1, -1))[1] for a in row.annotations],
                    "yes_no_answer": [a.yes_no.upper() for a in row.annotations],
                }
                for row in rows
            ],
        }
    )
    place = tmp_path / "tydiqa/primary_task"
    place.mkdir(parents=True)
    parquet.write_table(table, place / "validation-00000-of-00001.parquet")
    for ours, language in zip(rows, ("sw", "th"), strict=True):
        (theirs,) = read(language, tmp_path)
        assert theirs.answers == ours.answers
        assert (theirs.passages, theirs.annotations) == (ours.passages, ours.annotations)


def test_a_damaged_line_is_refused(tmp_path):
    file = tmp_path / "tydiqa/tydiqa-v1.0-dev.jsonl"
    file.parent.mkdir()
    text = (FOLDER / "tydiqa/tydiqa-v1.0-dev.jsonl").read_text(encoding="utf-8")
    file.write_text(text.replace('"plaintext_end_byte": 9}', '"plaintext_end_byte": 99}'))
    with pytest.raises(CorpusError, match="line 2: has a passage or an answer beyond the end"):
        read("th", tmp_path)
    file.write_text(text.replace('"candidate_index"', '"index"'))
    with pytest.raises(CorpusError, match=r"line 1: lacks a value.*candidate_index"):
        read("sw", tmp_path)


def by_hand(examples, places, *, minimal):
    """The script's rule for every threshold, over sets of bytes."""
    best = (0.0, 0.0, 0.0)
    for threshold in sorted({score for *_, score in places}):
        right = num_gold = num_said = 0.0
        for example, (span, passage, score) in zip(examples, places, strict=True):
            if minimal:
                votes = sum(a.span is not None or a.yes_no != "none" for a in example.annotations)
            else:
                votes = sum(a.passage >= 0 for a in example.annotations)
            num_gold += votes >= 2
            if score < threshold:
                continue
            num_said += 1 if minimal else passage >= 0
            if votes < 2:
                continue
            if not minimal:
                right += passage >= 0 and any(a.passage == passage for a in example.annotations)
                continue
            said, agreed = set(range(*span)), [0.0]
            for gold in (set(range(*a.span)) for a in example.annotations if a.span):
                p, r = len(gold & said) / len(said), len(gold & said) / len(gold)
                agreed.append(2 * p * r / (p + r) if p + r else 0.0)
            right += max(agreed)
        precision = right / num_said if num_said else 0.0
        recall = right / num_gold if num_gold else 0.0
        f1 = 2 * precision * recall / (precision + recall) if right else 0.0
        best = max(best, (f1, precision, recall))
    return best


@pytest.mark.parametrize("seed", range(6))
def test_scores_are_the_scripts(seed):
    rng = random.Random(seed)
    context = "กa" * 20  # four bytes for two characters
    edges = [0, 24, 48, 80]
    passages = tuple(pairwise(edges))[:2]  # the end is in no passage
    examples, said, places = [], [], []
    for number in range(25):
        annotations = []
        for _ in range(3):
            start = 4 * rng.randrange(12)
            span = (start, start + 4 * rng.randint(1, 3)) if rng.random() < 0.6 else None
            yes_no = "none" if span or rng.random() < 0.8 else "yes"
            passage = rng.choice([0, 1]) if span or rng.random() < 0.3 else -1
            annotations.append(AnswerAnnotation(passage=passage, span=span, yes_no=yes_no))
        examples.append(
            DocumentQuestion(
                id=f"thai-{number}",
                question="?",
                context=context,
                answers=(),
                passages=passages,
                annotations=tuple(annotations),
            )
        )
        start, length = 2 * rng.randrange(18), 2 * rng.randint(1, 2)
        odds = float(rng.randrange(-5, 6))  # with ties
        text = context[start : start + length]
        said.append(PredictedAnswer("", best=text, start=start, end=start + length, null_odds=odds))
        first = 2 * start
        passage = next((n for n, (a, b) in enumerate(passages) if a <= first < b), -1)
        places.append(((first, first + 2 * length), passage, -odds))
    found = TASK.score(examples, said, "th")
    for name, minimal in (("minimal", True), ("passage", False)):
        values = tuple(found[f"{name}_{metric}"] for metric in ("f1", "precision", "recall"))
        assert values == pytest.approx(by_hand(examples, places, minimal=minimal))
    assert 0 < found["minimal_f1"] < 1


def test_predictions_are_written_for_the_script(tmp_path):
    (example,) = read("sw")
    start = example.answers[0].start
    said = PredictedAnswer("", best="4,397,073", start=start, end=start + 9, null_odds=-2.5)
    write_predictions(tmp_path / "sw.json", "question-answering", [example], [said])
    assert (tmp_path / "sw.tydiqa.json").exists()
    assert tydiqa_prediction(example, said) == {
        "example_id": -2226,
        "language": "swahili",
        "passage_answer_index": 1,
        "passage_answer_score": 2.5,
        "minimal_answer": {"start_byte_offset": 24, "end_byte_offset": 33},
        "minimal_answer_score": 2.5,
        "yes_no_answer": "NONE",
    }
    assert TASK.score([example], ["4,397,073"], "sw")["minimal_f1"] == 1.0, "a text alone"
    assert TASK.score([example], [""], "sw")["minimal_f1"] == 0.0
