"""Entities and parts of speech, as seqeval and scikit-learn count them, on real sentences."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqeval.metrics import f1_score, precision_score, recall_score
from seqeval.metrics.sequence_labeling import get_entities
from seqeval.scheme import IOB2, Entities

from isoglot.tasks import find_task
from isoglot.tasks.examples import TaggedSentence
from isoglot.tasks.tagging import TreebankTask, find_entities, find_strict_entities
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
        "strict_f1": pytest.approx(f1_score(gold, said, mode="strict", scheme=IOB2), abs=1e-12),
    }
    perfect = reader.score(examples, gold, language)
    assert perfect == {"f1": 1.0, "precision": 1.0, "recall": 1.0, "strict_f1": 1.0}


TAGS = ["O", "B-A", "I-A", "E-A", "S-A", "B-B-C", "I-B-C", "E-B-C", "I-B"]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(TAGS), max_size=9))
def test_any_tags(tags):
    assert {tuple(entity) for entity in find_entities(tags)} == set(get_entities(tags))


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(["O", "B-A", "I-A", "B-B", "I-B"]), max_size=9))
def test_strict_entities_begin_with_b(tags):
    theirs = Entities([tags], scheme=IOB2).entities[0]
    assert {tuple(entity) for entity in find_strict_entities(tags)} == {
        (entity.tag, entity.start, entity.end - 1) for entity in theirs
    }


def test_an_entity_without_its_b_counts_only_where_it_need_not_have_one():
    example = TaggedSentence(id="1", words=("New", "York", "!"), tags=("B-LOC", "I-LOC", "O"))
    found = find_task("wikiann").score([example], [("I-LOC", "I-LOC", "O")], "en")
    assert (found["f1"], found["strict_f1"]) == (1.0, 0.0)


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
    assert set(reader.score([], [], "en").values()) == {0.0}


@pytest.mark.parametrize(
    ("task", "pattern", "tags"),
    [
        ("ud-pos", "ud_pos/en_{}.test.tsv", ("NOUN", "VERB")),
        ("uner", "ner/uner/en_{}.test.tsv", ("B-PER", "O")),
    ],
)
def test_treebanks_are_scored_one_by_one_and_averaged(tmp_path, task, pattern, tags):
    for treebank, number in (("ewt", 1), ("gum", 9)):
        file = tmp_path / pattern.format(treebank)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"a\t{tags[0]}\nb\t{tags[1]}\n\n" * number)
    found = find_task(task)
    (split,) = found.splits(tmp_path)
    examples = found.read(split)
    assert [example.section for example in examples] == ["ewt"] + ["gum"] * 9
    # all of the small treebank is right, nothing of the large one
    predictions = [example.tags for example in examples[:1]] + [("O", "O")] * 9
    scores = found.score(examples, predictions, "en")
    first = found.metrics[0].name
    assert scores[f"{first} ewt"] == 1
    large = found.score(examples[1:], predictions[1:], "en")
    assert set(large) == {metric.name for metric in found.metrics}
    assert scores[f"{first} gum"] == large[first]
    assert scores[first] == pytest.approx((1 + large[first]) / 2)


def test_the_treebank_of_a_hugging_face_file_is_its_config():
    task = find_task("ud-pos")
    assert isinstance(task, TreebankTask)
    paths = "universal_dependencies/en_ewt/test-0.parquet", "x/ru_gsd/test/data-0.arrow"
    assert [task.section(Path(path)) for path in paths] == ["ewt", "gsd"]
    assert task.section(Path("ud/UD_German-HDT/de_hdt-ud-test.conllu.gz")) == "hdt"
    assert task.section(Path("udpos/test-en.tsv")) == ""
