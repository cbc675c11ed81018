"""The ten languages of the study: the names their files have, and how their text is counted.

English is the pivot: translations and tests are English–other for the nine others.
"""

from __future__ import annotations

from dataclasses import dataclass

PIVOT = "en"


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """One language of the study."""

    code: str
    tatoeba: str
    """Its name in the LASER Tatoeba test (`deu-eng.tsv`)."""
    challenge: str
    """Its name in the files of the Tatoeba Challenge (`eng-zho.dev.tsv`)."""
    variants: tuple[str, ...]
    """The labels of its lines there that are this language and no neighbor of it."""
    characters: float
    """Characters of a token, roughly: text is cut before there is a tokenizer to count with."""
    script: str
    """Its letters, as the inside of a character class."""


_LATIN = "A-Za-zÀ-ɏḀ-ỿ"


def latin(code: str, name: str, characters: float, *, tatoeba: str | None = None) -> Language:
    """A language in Latin script with the same name in all files."""
    return Language(
        code=code,
        tatoeba=tatoeba or name,
        challenge=name,
        variants=(name,),
        characters=characters,
        script=_LATIN,
    )


LANGUAGES = (
    latin("en", "eng", 4.1),
    latin("de", "deu", 4.1),
    latin("fr", "fra", 3.9),
    latin("es", "spa", 4.0),
    Language(
        code="ru",
        tatoeba="rus",
        challenge="rus",
        variants=("rus",),
        characters=3.7,
        script="Ѐ-ӿ",
    ),
    latin("tr", "tur", 3.8),
    Language(
        code="ar",
        tatoeba="ara",
        challenge="ara",
        variants=("ara",),
        characters=3.3,
        script="؀-ۿ",
    ),
    Language(
        code="zh",
        tatoeba="cmn",
        challenge="zho",
        variants=("cmn_Hans", "cmn_Hant"),
        characters=1.6,
        script="㐀-鿿",
    ),
    latin("sw", "swa", 3.9, tatoeba="swh"),
    latin("vi", "vie", 3.4),
)

OTHERS = tuple(language for language in LANGUAGES if language.code != PIVOT)
