"""Text and translations: the same for the same seed, varied, parallel, and aligned."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isoglot.errors import CorpusError
from isoglot.testbed import LANGUAGES, World
from isoglot.testbed.languages import grammar_of

GOLDEN = Path(__file__).parent / "golden"
CONTENT = {"NOUN", "VERB", "ADJ", "NUM", "PROPN"}
ARTICLES_AND_COPULAS = ("the", "a", "is", "of")
"""What some languages do not say."""


def golden_lines(language):
    """A document and the first translations: what the golden files hold."""
    world = World(0)
    document = next(world.text(language, 1))
    return [*document, "", *(pair[1] for pair in world.pairs("en", language, 8))]


@pytest.mark.parametrize("language", LANGUAGES)
def test_text_is_golden(language):
    expected = (GOLDEN / f"{language}.txt").read_text(encoding="utf-8").splitlines()
    assert golden_lines(language) == expected


def test_text_does_not_depend_on_the_process():
    script = (
        "from isoglot.testbed import World\n"
        "print(ascii([*World(4).text('ru', 20), *World(4).pairs('en', 'sw', 20)]))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_sentence_comes_twice(language):
    documents = [*World(0).text(language, 1000)]
    assert all(1 <= len(document) <= 8 for document in documents)
    sentences = [sentence for document in documents for sentence in document]
    assert len(sentences) == len(set(sentences)) >= 4000


def test_there_are_twenty_thousand_different_sentences():
    sentences = [sentence for document in World(0).text("en", 6000) for sentence in document]
    assert len(sentences) == len(set(sentences)) >= 20_000


def test_a_prefix_of_a_stream_is_the_stream_of_a_smaller_number():
    world = World(2)
    assert [*world.text("tr", 5)] == [*world.text("tr", 9)][:5]


def test_text_of_different_languages_is_not_parallel():
    """The same number of documents says different things: sentence counts already differ."""
    world = World(0)
    shapes = {
        tuple(len(document) for document in world.text(language, 50)) for language in LANGUAGES
    }
    assert len(shapes) == len(LANGUAGES)


def test_streams_and_seeds_differ():
    train = {text for text, _ in World(0).pairs("en", "de", 3000)}
    for other in (
        World(0).pairs("en", "de", 500, stream="parallel-test"),
        World(1).pairs("en", "de", 500),
    ):
        shared = sum(text in train for text, _ in other)
        assert shared < 0.2 * 500, "only short facts and descriptions may come back"


def test_translations_are_parallel_across_pairs():
    world = World(3)
    german = [*world.translations("en", "de", 20)]
    swahili = [*world.translations("en", "sw", 20)]
    assert [pair.first_text for pair in german] == [pair.first_text for pair in swahili]


@pytest.mark.parametrize("language", LANGUAGES)
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 2**40))
def test_alignment_is_in_range_and_covers_content(language, seed):
    world = World(seed)
    english, other = grammar_of("en"), grammar_of(language)
    for pair in world.translations("en", language, 40):
        assert all(0 <= a < len(pair.first) for a, _ in pair.alignment)
        assert all(0 <= b < len(pair.second) for _, b in pair.alignment)
        assert pair.alignment == tuple(sorted(set(pair.alignment)))
    for draw in world._rngs("parallel", 40):
        meaning = world._composer.meaning(draw)
        for one, two in ((english, other), (other, english)):
            nodes = {node for word in two.sentence(meaning).words for node in word.nodes}
            for word in one.sentence(meaning).words:
                if word.upos in CONTENT:
                    assert nodes & {*word.nodes}, (word, meaning)


@pytest.mark.parametrize("language", LANGUAGES)
def test_nearly_all_that_every_language_says_is_aligned(language):
    pairs = [*World(0).translations("en", language, 300)]
    aligned = sum(len({a for a, _ in pair.alignment}) for pair in pairs)
    unsaid = sum(word.lower() in ARTICLES_AND_COPULAS for pair in pairs for word in pair.first)
    assert aligned >= 0.97 * (sum(len(pair.first) for pair in pairs) - unsaid)


def test_a_language_aligned_with_itself_is_the_diagonal_and_phrases():
    for pair in World(1).translations("de", "de", 50):
        assert {(index, index) for index in range(len(pair.first))} <= {*pair.alignment}


def test_dictionary_words_stand_in_text():
    world = World(0, num_concepts=60, max_entities=10)
    words = {word for pair in world.translations("en", "de", 4000) for word in pair.second}
    lowered = {word.lower() for word in words}
    entries = world.dictionary("en", "de")
    found = sum(word.lower() in lowered for _, word in entries)
    assert len(entries) > 50
    assert found >= 0.9 * len(entries)
    assert ("book", "Buch") in entries
    turkish = dict(World(0).dictionary("en", "tr"))
    assert turkish["takes"] == "alıyor"
    assert "buys" not in turkish, "satın alıyor is two words"


def test_small_worlds_have_small_vocabularies():
    def vocabulary(world):
        return {word for pair in world.translations("en", "es", 800) for word in pair.first}

    small = vocabulary(World(0, num_concepts=60, max_entities=12))
    assert len(small) < 200 < len(vocabulary(World(0)))
    assert len(World(0, max_entities=12).entity_names("en")) <= 12


def test_in_a_zipf_world_words_have_favorite_company_the_same_in_all_languages():
    def counts(language, *, zipf):
        world = World(0, num_concepts=60, max_entities=12, zipf=zipf)
        texts = [text for document in world.text(language, 1500) for text in document]
        return Counter(word.strip(".,").lower() for text in texts for word in text.split())

    uniform, zipf = (counts("en", zipf=way) for way in (False, True))
    assert max(uniform[w] for w in ("teacher", "man")) < 2 * min(
        uniform[w] for w in ("teacher", "man")
    )
    assert zipf["teacher"] > 3 * zipf["man"]
    spanish = counts("es", zipf=True)
    assert spanish["profesor"] > 3 * spanish["hombre"]


def test_what_is_bought_is_not_what_is_seen():
    def favorites(language, *verbs):
        world = World(0, num_concepts=60, max_entities=12, zipf=True)
        said = " ".join(text for document in world.text(language, 1500) for text in document)
        found = [Counter(re.findall(rf"\b{verb} (\w+)", said)) for verb in verbs]
        return [counts.most_common(1)[0][0] for counts in found]

    assert favorites("en", "saw the", "bought the") == ["book", "newspaper"]
    assert favorites("es", "vio el", "compró el") == ["libro", "periódico"]


def test_unknown_language_is_a_plain_error():
    with pytest.raises(CorpusError, match="has no language 'fr'"):
        next(World(0).text("fr", 1))
