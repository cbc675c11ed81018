from __future__ import annotations

import pytest

from isoglot.corpus.cleaning.characters import SCRIPT_NAMES
from isoglot.corpus.scripts import SCRIPTS, script_of, scripts_of
from isoglot.languages import plain_code
from tests.corpus.sentences import SENTENCES


@pytest.mark.parametrize(
    ("language", "code"),
    [
        ("en", "en"),
        ("eng", "en"),
        ("zh_Hant", "zh"),
        ("deu_1901", "de"),
        ("pt-BR", "pt"),
        ("xx", "xx"),
    ],
)
def test_codes(language, code):
    assert plain_code(language) == code


@pytest.mark.parametrize("language", SENTENCES)
def test_scripts_are_those_the_language_is_written_in(language):
    assert script_of(SENTENCES[language]) in scripts_of(language)


def test_a_name_may_say_the_script():
    assert scripts_of("ro_Cyrl") == ("CYRILLIC",)
    assert scripts_of("zh_Hans_CN") == ("CJK",)
    assert scripts_of("xx") == ()
    assert set(SCRIPT_NAMES) >= {script for scripts in SCRIPTS.values() for script in scripts}
