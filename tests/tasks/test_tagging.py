"""Entities and parts of speech, as seqeval and scikit-learn count them, on real sentences."""

from __future__ import annotations

import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqeval.metrics import f1_score, precision_score, recall_score
from seqeval.metrics.sequence_labeling import get_entities

from isoglot.tasks import find_task
from isoglot.tasks.tagging import find_entities
from tests.tasks import guesses


@pytest.mark.parametrize(
    ("task", "language", "split"),
    [
        ("wikiann", "de", "dev"), ("masakhaner", "sw", "test"), ("masakhaner", "yo", "test"),
        ("germeval2014", "de", "dev"), ("uner", "zh", "test"),
    ],
)  # fmt: skip
def test_real_sentences(data_folder, task, language, split):
    reader = find_task(task)
    examples = reader.read(reader.find_split(data_folder, language, split))[:1000]
    said = guesses.tags(examples)
    gold = [list(example.tags) for example in examples]
    assert reader.score(examples, said, language) == {
        "f1": f1_score(gold, said),
        "precision": precision_score(gold, said),
        "recall": recall_score(gold, said),
    }
    perfect = reader.score(examples, gold, language)
    assert perfect == {"f1": 1.0, "precision": 1.0, "recall": 1.0}


TAGS = ["O", "B-A", "I-A", "E-A", "S-A", "B-B-C", "I-B-C", "E-B-C", "I-B"]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(TAGS), max_size=9))
def test_any_tags(tags):
    assert {tuple(entity) for entity in find_entities(tags)} == set(get_entities(tags))


@pytest.mark.parametrize("language", ["en", "zh", "sw", "hi"])
def test_parts_of_speech(data_folder, language):
    reader = find_task("ud-pos")
    examples = reader.read(reader.find_split(data_folder, language, "test"))[:1000]
    said = guesses.tags(examples)
    found = reader.score(examples, said, language)
    pairs = [
        (tag, true)
        for example, row in zip(examples, said, strict=True)
        for tag, true in zip(row, example.tags, strict=True)
    ]
    assert found["accuracy"] == sum(tag == true for tag, true in pairs) / len(pairs)
    # seqeval 1.x takes the first letter off a type; with a dash it keeps CCONJ and SCONJ apart
    dashed = [[[f"{tag[0]}-{tag}" for tag in row] for row in side]
              for side in ([e.tags for e in examples], said)]  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert found["xtreme_f1"] == f1_score(*dashed)


def test_nothing_found_and_nothing_there():
    reader = find_task("wikiann")
    assert reader.score([], [], "en") == {"f1": 0.0, "precision": 0.0, "recall": 0.0}
