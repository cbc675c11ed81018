"""The nine dictionaries list the same concepts, with the forms that their grammars ask for."""

from __future__ import annotations

import pytest

from isoglot.testbed import LANGUAGES
from isoglot.testbed.languages import grammar_of
from isoglot.testbed.lexicon import (
    OPPOSITE,
    SAID_OF,
    SENTIMENT,
    TAKES,
    make_inventory,
    read_lexicon,
)
from isoglot.testbed.meaning import Clause, Quality, Tense, Thing

NOUNS = ("person", "animal", "food", "drink", "object", "place")


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_the_same_concepts_in_the_same_order(language):
    english, other = read_lexicon("en"), read_lexicon(language)
    assert [(key, entry.category) for key, entry in other.items()] == [
        (key, entry.category) for key, entry in english.items()
    ]
    assert len(other) >= 250


def test_what_goes_with_what_names_only_known_concepts():
    english = read_lexicon("en")
    known = {*english, *NOUNS}
    named = " ".join([*TAKES.values(), *SAID_OF.values()]).replace("-", "").split()
    assert {*named, *TAKES, *SAID_OF, *OPPOSITE, *OPPOSITE.values(), *SENTIMENT} <= known
    assert {key for key, entry in english.items() if entry.category == "transitive"} == {*TAKES}


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_concept_can_be_realized(language):
    """Each noun counted and not, as subject and object; each verb in all its forms."""
    grammar, inventory = grammar_of(language), make_inventory(None)
    groups = inventory.categories
    for noun, adjectives in inventory.adjectives.items():
        for adjective in ("", *adjectives):
            assert grammar.thing(Thing(noun, adjective)).text
            assert grammar.thing(Thing(noun, adjective), "acc").text
            if noun in inventory.countable:
                for number in groups["number"]:
                    assert grammar.thing(Thing(noun, adjective, number), "acc").text
            if adjective:
                assert grammar.text(Quality(Thing(noun), adjective))
    for verb in groups["transitive"] + groups["intransitive"]:
        thing = Thing("book") if verb in groups["transitive"] else None
        texts = {
            grammar.text(Clause(Thing("woman"), verb, thing, tense=tense, negated=negated))
            for tense in Tense
            for negated in (False, True)
        }
        assert len(texts) >= 5  # Chinese negates some verbs alike in present and past
    for place in groups["place"]:
        assert grammar.place(place).text
    for key in groups["time"] + groups["connective"]:
        assert grammar.fixed(key).text


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_two_concepts_of_a_category_share_a_word(language):
    """Else translation would lose what the meaning says ("yesterday" in Hindi is the exception)."""
    seen: dict[tuple[str, tuple[str, ...]], str] = {}
    doubles = []
    for key, entry in read_lexicon(language).items():
        previous = seen.setdefault((entry.category, entry.columns), key)
        if previous != key:
            doubles.append((previous, key))
    assert doubles == ([("yesterday", "tomorrow")] if language == "hi" else [])


def test_a_small_world_keeps_the_first_of_each_category():
    whole, small = make_inventory(None).categories, make_inventory(80).categories
    assert all(whole[name][: len(keys)] == keys for name, keys in small.items())
    assert 70 <= sum(map(len, small.values())) <= 100
