"""The task data: labels hold, spans are right, tags are valid, languages are parallel."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isoglot.testbed import LANGUAGES, World

UPOS = set("ADJ ADP ADV AUX CCONJ DET NOUN NUM PART PRON PROPN PUNCT SCONJ VERB".split())
TYPES = {"LOC", "LANG", "CUR"}


@pytest.mark.parametrize("language", LANGUAGES)
@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 2**40))
def test_answers_are_spans_of_their_context(language, seed):
    for record in World(seed).questions(language, 25):
        end = record.answer_start + len(record.answer)
        assert record.context[record.answer_start : end] == record.answer != ""
        assert record.question[-1] in "?？؟"


@pytest.mark.parametrize("language", LANGUAGES)
@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 2**40))
def test_entity_tags_are_valid_bio(language, seed):
    for record in World(seed).ner(language, 25):
        assert len(record.words) == len(record.tags)
        for before, tag in zip(("O", *record.tags), record.tags, strict=False):
            assert tag == "O" or (tag[:2] in ("B-", "I-") and tag[2:] in TYPES)
            assert tag[0] != "I" or before[2:] == tag[2:]


@pytest.mark.parametrize("language", LANGUAGES)
def test_all_entity_types_are_tagged(language):
    tags = Counter(tag for record in World(0).ner(language, 400) for tag in record.tags)
    assert min(tags[f"B-{kind}"] for kind in TYPES) > 20


@pytest.mark.parametrize("language", LANGUAGES)
def test_parts_of_speech_are_universal_and_punctuation_is_punctuation(language):
    for record in World(0).pos(language, 200):
        assert len(record.words) == len(record.tags)
        assert {*record.tags} <= UPOS
        for word, tag in zip(record.words, record.tags, strict=True):
            assert (tag == "PUNCT") == (not any(letter.isalnum() for letter in word))


def test_inference_labels_are_balanced_and_not_told_by_negation():
    records = [*World(0).nli("en", 3000)]
    counts = Counter(record.label for record in records)
    assert {*counts} == {"entailment", "neutral", "contradiction"}
    assert min(counts.values()) > 900
    negated = Counter(record.label for record in records if " not " in record.hypothesis)
    assert min(negated.values()) > 200


def test_inference_is_parallel_across_languages():
    english, hindi = [*World(6).nli("en", 200)], [*World(6).nli("hi", 200)]
    assert [record.label for record in english] == [record.label for record in hindi]
    assert all(a.premise != a.hypothesis for a in english)


def test_entailed_hypotheses_without_negation_are_part_of_their_premise():
    for record in World(0).nli("en", 500):
        if record.label == "entailment" and " not " not in record.premise + record.hypothesis:
            words = record.premise.rstrip(".").lower().split()
            assert {*record.hypothesis.rstrip(".").lower().split()} <= {*words}


@pytest.mark.parametrize("language", LANGUAGES)
def test_paraphrases_differ_in_form_and_near_misses_in_content(language):
    records = [*World(0).paraphrases(language, 400)]
    assert all(record.first != record.second for record in records)
    assert 150 < sum(record.label for record in records) < 250
    if language == "en":
        for record in records:
            bags = [Counter(text.lower().rstrip(".").split()) for text in
                    (record.first, record.second)]  # fmt: skip
            swapped_roles = " see" in record.first or " saw" in record.first
            assert (bags[0] == bags[1]) == bool(record.label) or swapped_roles


@pytest.mark.parametrize("language", LANGUAGES)
def test_opinions_are_of_both_kinds(language):
    records = [*World(0).sentiment(language, 400)]
    assert 150 < sum(record.label for record in records) < 250
    both = {r.text for r in records if r.label} & {r.text for r in records if not r.label}
    assert not both


@pytest.mark.parametrize("concepts", [10, 40, 120])
def test_tasks_work_in_small_worlds(concepts):
    world = World(0, num_concepts=concepts, max_entities=8)
    for task in ("nli", "questions", "ner", "pos", "paraphrases", "sentiment", "mentions"):
        assert len([*getattr(world, task)("ar", 60)]) == 60
