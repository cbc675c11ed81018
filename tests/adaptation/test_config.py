from __future__ import annotations

import pytest

from isoglot.adaptation.config import AdaptConfig
from isoglot.errors import RecipeError


def test_languages_in_any_spelling_have_one_code():
    config = AdaptConfig(
        encoder="m",
        text={"swh": ("a",), "Swahili": ("b",), "pt-BR": ("c",)},
        pairs={"eng-swa": ("d",), "en-sw": ("e",), "deu-en": ("f",)},
    )
    assert config.text == {"sw": ("a", "b"), "pt_BR": ("c",)}
    assert config.pairs == {"en-sw": ("d", "e"), "de-en": ("f",)}
    assert config.languages == ("sw", "pt_BR", "en", "de")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "nothing to learn from"),
        ({"text": {"swahilli": ("a",)}}, r"'swahilli' is no code .* did you mean 'Swahili'\?"),
        ({"text": {"en-sw": ("a",)}}, "is no code of a language"),
        ({"text": {"cz": ("a",)}}, "'cz' is no code of a language"),
        ({"pairs": {"en": ("a",)}}, "'en' does not name two languages. Write --pairs en-sw=FILE"),
        ({"pairs": {"en-eng": ("a",)}}, "does not name two languages"),
        ({"pairs": {"en-sw": ("a",), "swa-en": ("b",)}}, "'swa-en' is also given as 'en-sw'"),
        ({"text": {"en": ("a",)}, "hours": 0.0}, "hours must be above 0"),
        ({"text": {"en": ("a",)}, "heldout": 3}, "heldout must be from 10"),
        ({"text": {"en": ("a",)}, "vocabulary": 0}, "vocabulary must be from 1"),
    ],
)
def test_requests_that_cannot_work(given, said):
    with pytest.raises(RecipeError, match=said):
        AdaptConfig(encoder="m", **given)
