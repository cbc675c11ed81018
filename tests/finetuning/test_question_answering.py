from __future__ import annotations

import os
import shutil
import string
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from isoglot.finetuning.question_answering import NO_ANSWER, QuestionAnsweringHead
from isoglot.tasks import find_task
from isoglot.tasks.examples import Answer, Question
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


def test_no_answer_needs_a_lead_over_the_best_span(folder, settings):
    asked = [replace(questions(1)[0], answers=())]
    lead = {}
    for threshold in (0.0, 100.0):
        head = QuestionAnsweringHead(
            folder, replace(settings, null_threshold=threshold), [NO_ANSWER]
        )
        windows = head.windows(asked, training=False)
        logits = []
        for number, window in enumerate(windows):
            scores = torch.zeros(len(window.sequences[0]["input_ids"]))
            scores[0] = 5.0 + number  # the lowest of all windows counts
            logits.append((scores, scores))
        (answer,) = head.decode(asked, windows, logits)
        assert answer.null_odds == 10.0
        assert asked[0].context[answer.start : answer.end] == answer.best != ""
        lead[threshold] = str(answer)
    assert lead == {0.0: "", 100.0: answer.best}


def test_a_question_longer_than_the_window_leaves_room_for_the_context(head):
    asked = [replace(questions(1)[0], question=" ".join(["kalo"] * 200))]
    pieces = head.windows(asked, training=True)
    assert any(piece.targets["start_positions"] != 0 for piece in pieces)


@pytest.fixture
def byte_fallback(folder, tmp_path) -> Path:
    """The model with a Unigram tokenizer that knows no Thai letter."""
    place = tmp_path / "byte-fallback"
    shutil.copytree(folder, place)
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    known = [(piece, 0.0) for piece in special] + [("▁", -2.0)]
    known += [(f"<0x{byte:02X}>", -8.0) for byte in range(256)]
    known += [(letter, -5.0) for letter in string.ascii_letters + string.digits]
    tokenizer = Tokenizer(models.Unigram(known, unk_id=3, byte_fallback=True))
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    named = {"bos": "<s>", "eos": "</s>", "cls": "<s>", "sep": "</s>", "pad": "<pad>"}
    named["unk"] = "<unk>"
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        **{f"{name}_token": piece for name, piece in named.items()},
    ).save_pretrained(place)
    return place


def answers_of_a_sure_model(head: QuestionAnsweringHead, asked: list[Question]) -> list[str]:
    return [*head.decode(asked, head.windows(asked, training=False), sure(head, asked))]


def test_answers_in_a_script_that_the_tokenizer_reads_in_bytes(byte_fallback, settings):
    """All bytes of a run have its offsets, in tokenizers: a question of Thai was never truncated,
    which tokenizers refuses, and an answer was a whole sentence."""
    head = QuestionAnsweringHead(byte_fallback, replace(settings, max_length=64), [])
    context = "ประเทศไทยตั้งอยู่ในเอเชียตะวันออกเฉียงใต้ เมืองหลวงคือกรุงเทพ นำเข้า 10 ครั้ง"
    asked = [
        Question(
            id=text,
            question="ประเทศไทยอยู่ที่ไหน" * 5,
            context=context,
            answers=(Answer(text=text, start=context.index(text)),),
        )
        for text in ("ไทย", "กรุงเทพ", "นำเข้า", "10")
    ]
    windows = head.windows(asked, training=True)
    assert all(len(window.sequences[0]["input_ids"]) <= 64 for window in windows)
    assert len(windows) > len(asked)
    assert answers_of_a_sure_model(head, asked) == [question.id for question in asked]


def test_documents_of_tydiqa(byte_fallback, settings):
    """Bytes of annotations become characters, tokens, and bytes again."""
    task = find_task("tydiqa-primary")
    data = Path(__file__).parents[1] / "tasks/fixtures"
    head = QuestionAnsweringHead(byte_fallback, replace(settings, max_length=64), [NO_ANSWER])
    for language in ("sw", "th"):
        asked = task.read(task.find_split(data, language, "dev"))
        said = head.decode(asked, head.windows(asked, training=False), sure(head, asked))
        assert task.score(asked, said, language)["minimal_f1"] == 1.0


@pytest.mark.slow
def test_xquad_in_thai(byte_fallback, settings):
    data = os.environ.get("ISOGLOT_DATA")
    if data is None:
        pytest.skip("ISOGLOT_DATA is not set")
    settings = replace(settings, max_length=384, stride=128, max_answer_tokens=384)
    head = QuestionAnsweringHead(byte_fallback, settings, [])
    head.max_length = 384  # the tiny model has fewer positions, and is not run
    task = find_task("xquad")
    asked = task.read(task.find_split(Path(data), "th", "test"))[:100]
    said = answers_of_a_sure_model(head, asked)
    assert said == [question.answers[0].text.strip() for question in asked]
