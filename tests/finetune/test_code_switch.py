from __future__ import annotations

import pytest

from isoglot.errors import CorpusError
from isoglot.finetune.code_switch import switched
from isoglot.tasks.examples import Answer, Classified, Question

ENGLISH = Question(
    id="7",
    question="Who sleeps?",
    context="The cat sleeps.",
    answers=(Answer(text="The cat", start=0),),
)
SPANISH = Question(
    id="7",
    question="¿Quién duerme?",
    context="Hoy duerme el gato.",
    answers=(Answer(text="el gato", start=11),),
)


def mixed(translated, originals):
    return switched(translated, originals, language="es", original_language="en")


def test_the_answer_is_that_of_the_contexts_language():
    ((first, second),) = mixed([SPANISH], [ENGLISH])
    assert (first.question, first.context) == (SPANISH.question, ENGLISH.context)
    assert (second.question, second.context) == (ENGLISH.question, SPANISH.context)
    for question in (first, second):
        (answer,) = question.answers
        end = answer.start + len(answer.text)
        assert question.context[answer.start : end] == answer.text


def test_both_halves_of_a_pair_and_never_the_pure_one():
    english = Classified(id="1", first="a", second="b", label="same")
    spanish = Classified(id="1", first="x", second="y", label="same")
    ((first, second),) = mixed([spanish], [Classified(id="0", first="p", label="q"), english])
    assert {(e.first, e.second, e.label) for e in (first, second)} == {
        ("x", "b", "same"),
        ("a", "y", "same"),
    }


def test_a_row_without_its_original_is_named():
    with pytest.raises(CorpusError, match=r"1 of 1 training rows of 'es' \(the first is '7'\)"):
        mixed([SPANISH], [])


def test_rows_whose_ids_join_but_whose_labels_differ_are_refused():
    english = Classified(id="1", first="a", second="b", label="same")
    swahili = Classified(id="1", first="x", second="y", label="other")
    with pytest.raises(CorpusError, match=r"1 of 1 .*'1'.* the labels of rows with the same id"):
        mixed([swahili], [english])


def test_one_sentence_cannot_be_switched():
    single = Classified(id="1", first="a", label="x")
    with pytest.raises(CorpusError, match="examples of two texts"):
        mixed([single], [single])
