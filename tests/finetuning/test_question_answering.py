from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from isoglot.finetuning.question_answering import NO_ANSWER, QuestionAnsweringHead
from isoglot.tasks.examples import Question
from tests.finetuning.tasks import questions


@pytest.fixture
def head(folder, settings) -> QuestionAnsweringHead:
    return QuestionAnsweringHead(folder, settings, [])


def sure(head: QuestionAnsweringHead, asked: list[Question]):
    """Logits of a model that knows the answer wherever it is in the window."""
    logits = []
    for piece in head.windows(asked, training=True):
        size = len(piece.sequences[0]["input_ids"])
        start, end = torch.zeros(size), torch.zeros(size)
        start[piece.targets["start_positions"]] = end[piece.targets["end_positions"]] = 9.0
        logits.append((start, end))
    return logits


def test_long_contexts_are_read_in_overlapping_windows(head, settings):
    asked = questions()
    pieces = head.windows(asked, training=True)
    assert len(pieces) > 2 * len(asked)
    assert all(len(piece.sequences[0]["input_ids"]) <= settings.max_length for piece in pieces)
    with_answer = {p.example for p in pieces if p.targets["start_positions"] != 0}
    assert with_answer == set(range(len(asked)))


def test_a_model_that_knows_the_places_gives_the_answers(head):
    asked = questions(20)
    said = head.decode(asked, head.windows(asked, training=False), sure(head, asked))
    assert said == [question.answers[0].text for question in asked]


def test_the_best_spans_come_first_and_are_as_many_as_asked_for(folder, settings):
    head = QuestionAnsweringHead(folder, replace(settings, n_best=3), [])
    asked = questions(4)
    pieces = head.windows(asked, training=False)
    torch.manual_seed(0)
    logits = [
        (
            torch.randn(len(p.sequences[0]["input_ids"])),
            torch.randn(len(p.sequences[0]["input_ids"])),
        )
        for p in pieces
    ]
    for spans in head.n_best(len(asked), pieces, logits):
        assert 1 <= len(spans) <= 3
        assert [s.score for s in spans] == sorted((s.score for s in spans), reverse=True)
        assert all(0 <= s.start < s.end for s in spans)


def test_an_answer_is_never_longer_than_allowed(folder, settings):
    head = QuestionAnsweringHead(folder, replace(settings, max_answer_tokens=2), [])
    asked = questions(1)
    pieces = head.windows(asked, training=False)[:1]
    size = len(pieces[0].sequences[0]["input_ids"])
    (spans,) = head.n_best(1, pieces, [(torch.arange(size) * 1.0, torch.arange(size) * 1.0)])
    inside = pieces[0].alignment
    for span in spans:
        covered = [i for i, (a, b) in enumerate(inside) if a >= span.start and b <= span.end]
        assert len([i for i in covered if inside[i][0] != -1]) <= 2


def test_no_answer_wins_only_where_training_had_such_questions(folder, settings):
    asked = questions(1)
    without = [replace(asked[0], answers=())]
    assert QuestionAnsweringHead.labels_of(asked) == []
    assert QuestionAnsweringHead.labels_of(without) == [NO_ANSWER]
    pieces = QuestionAnsweringHead(folder, settings, []).windows(asked, training=False)
    nothing = []
    for piece in pieces:
        scores = torch.zeros(len(piece.sequences[0]["input_ids"]))
        scores[0] = 9.0
        nothing.append((scores, scores))
    assert QuestionAnsweringHead(folder, settings, [NO_ANSWER]).decode(asked, pieces, nothing) == [
        ""
    ]
    assert QuestionAnsweringHead(folder, settings, []).decode(asked, pieces, nothing) != [""]


def test_a_question_longer_than_the_window_leaves_room_for_the_context(head):
    asked = [replace(questions(1)[0], question=" ".join(["kalo"] * 200))]
    pieces = head.windows(asked, training=True)
    assert any(piece.targets["start_positions"] != 0 for piece in pieces)
