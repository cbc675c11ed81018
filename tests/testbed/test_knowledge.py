"""Entities: names, triples, descriptions, mentions and cloze facts agree with one another."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isoglot.testbed import LANGUAGES, World
from isoglot.testbed.entities import RELATIONS


def test_triples_are_the_real_world():
    triples = {(t.subject, t.relation, t.object) for t in World(0).triples()}
    assert ("territory:JP", "currency", "currency:JPY") in triples
    assert ("territory:KE", "official_language", "language:sw") in triples
    assert ("territory:BR", "continent", "continent:005") in triples
    assert ("territory:JP", "official_language", "language:fr") not in triples
    assert {relation for _, relation, _ in triples} == {*RELATIONS}
    assert len({subject for subject, _, _ in triples}) >= 80


@pytest.mark.parametrize("language", LANGUAGES)
def test_names_are_there_and_plain(language):
    names = World(0).entity_names(language)
    assert {*names} == {e for t in World(0).triples() for e in (t.subject, t.object)}
    assert all(name and "(" not in name for name in names.values())
    territories = [name for key, name in names.items() if key.startswith("territory")]
    assert len({*territories}) == len(territories)


@pytest.mark.parametrize("language", LANGUAGES)
def test_cloze_has_every_triple_and_the_objects_own_name(language):
    world = World(0)
    names = world.entity_names(language)
    facts = [*world.cloze(language)]
    assert [(f.subject, f.relation, f.object) for f in facts] == [
        (t.subject, t.relation, t.object) for t in world.triples()
    ]
    for fact in facts:
        assert fact.text[fact.start : fact.end] == fact.answer == names[fact.object]


@pytest.mark.parametrize("language", LANGUAGES)
def test_descriptions_name_their_entity(language):
    world = World(0)
    names = world.entity_names(language)
    described = {record.entity: record.text for record in world.descriptions(language)}
    assert {*described} == {*names}
    stem = 3  # a name may be inflected: Япония, Японии
    named = [names[entity][:stem].lower() in text.lower() for entity, text in described.items()]
    assert sum(named) >= 0.99 * len(named)


@pytest.mark.parametrize("language", LANGUAGES)
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 2**40))
def test_mentions_are_names_as_they_stand_in_the_text(language, seed):
    world = World(seed)
    names = world.entity_names(language)
    for record in world.mentions(language, 30):
        assert record.mentions
        for mention in record.mentions:
            surface = record.text[mention.start : mention.end]
            name = names[mention.entity]
            if language == "ru":  # cases, and "по-японски"
                assert surface.removeprefix("по-")[:3].lower() == name[:3].lower()
            else:
                assert surface == name


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_page_is_about_one_country(language):
    world = World(3)
    facts = {(triple.subject, triple.object) for triple in world.triples()}
    for page in world.pages(language, 40):
        assert 1 <= len(page) <= 4
        assert len({sentence.text for sentence in page}) == len(page)
        named = [[mention.entity for mention in sentence.mentions] for sentence in page]
        (country,) = set.intersection(*map(set, named)) & {subject for subject, _ in facts}
        for entities in named:
            assert all(other == country or (country, other) in facts for other in entities)
        for sentence in page:
            for mention in sentence.mentions:
                assert sentence.text[mention.start : mention.end].strip()
