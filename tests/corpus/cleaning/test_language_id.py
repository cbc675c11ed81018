from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from py3langid import langid

from isoglot.corpus.cleaning.cleaner import CleanConfig, Cleaner
from isoglot.corpus.cleaning.language_id import _CONFUSABLE, LanguageIdentifier
from isoglot.languages import canonical
from tests.corpus.sentences import SENTENCES

LONG = {language: text for language, text in SENTENCES.items() if language != "zh"}


@pytest.fixture(scope="module")
def original():
    return langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE, norm_probs=True)


def test_languages_are_told_apart():
    identifier = LanguageIdentifier.open()
    for other in SENTENCES:
        found = identifier.is_other(list(SENTENCES.values()), other, 0.5)
        assert found.tolist() == [language != other for language in SENTENCES], other


@settings(max_examples=30, deadline=None)
@given(
    texts=st.lists(
        st.one_of(st.sampled_from([*SENTENCES.values()]), st.text("aeßжη 字!", max_size=60))
    )
)
def test_probabilities_are_those_of_the_library(original, texts):
    found = LanguageIdentifier.open().probabilities(texts)
    assert found.shape == (len(texts), len(LanguageIdentifier.open().labels))
    for row, text in zip(found, texts, strict=True):
        expected = {canonical(label): chance for label, chance in original.rank(text)}
        np.testing.assert_allclose(
            row, [expected[label] for label in LanguageIdentifier.open().labels], atol=2e-4
        )


def test_a_language_that_is_not_known_is_not_judged():
    identifier = LanguageIdentifier.open()
    assert not identifier.is_other([SENTENCES["de"]], "xx", 0.1).any()
    assert len(identifier.is_other([], "de", 0.1)) == 0


def test_longer_codes_and_near_languages():
    identifier = LanguageIdentifier.open()
    assert not identifier.is_other([SENTENCES["de"]], "deu_1901", 0.5).any()
    near = {label for labels in _CONFUSABLE.values() for label in labels.split(",")}
    assert near | set(_CONFUSABLE) <= set(identifier.labels)
    # its own labels are `kik` and `gug`
    assert {"ki", "gn"} <= set(identifier.labels)


def test_cleaning_asks_only_where_it_is_told_to():
    pairs = [(SENTENCES["en"], SENTENCES["de"]), (SENTENCES["en"], SENTENCES["sw"]), ("", "x")]
    asking = Cleaner(CleanConfig(language_confidence=0.8), ("en", "de"))
    assert asking.clean(pairs)[1] == [None, "language", "empty"]
    assert Cleaner(CleanConfig(), ("en", "de")).clean(pairs)[1] == [None, None, "empty"]
