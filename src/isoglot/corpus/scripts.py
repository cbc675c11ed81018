"""The scripts that languages are written in, by a table or counted in a corpus.

The script of a letter is the first word of its Unicode name (LATIN, CYRILLIC, CJK, ...), that of a
token the script of most of its letters. The scripts of a corpus's language are counted in its text,
so that they are right for any language.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from isoglot.languages import plain_code

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from isoglot.corpus.storage.corpus import Corpus
    from isoglot.types import BoolArray, IntArray

_LATIN = (
    "af az bs br ca cs cy da de en eo es et eu fi fr fy ga gd gl ha hr ht hu id ig is it jv la lg "
    "lt lv mg ms mt nl nn no om pl pt qu ro rw sk sl sn so sq st su sv sw tk tl tr uz vi wo xh yo "
    "zu"
)
_WRITTEN: Mapping[str, str] = {
    "LATIN": _LATIN,
    "CYRILLIC": "be bg kk ky mk mn ru tg tt uk",
    "ARABIC": "ar fa ps sd ug ur",
    "DEVANAGARI": "hi mr ne sa",
    "HEBREW": "he yi",
    "CJK": "zh yue",
    "CJK HIRAGANA KATAKANA": "ja",
    "HANGUL CJK": "ko",
    "BENGALI": "as bn",
    "LATIN CYRILLIC": "sr",
    "LATIN ARABIC": "ku",
    "LATIN CJK": "nan",
}
_OF_THEIR_OWN = (
    "am:ETHIOPIC ti:ETHIOPIC bo:TIBETAN dz:TIBETAN el:GREEK grc:GREEK gu:GUJARATI hy:ARMENIAN "
    "ka:GEORGIAN km:KHMER kn:KANNADA lo:LAO ml:MALAYALAM my:MYANMAR or:ORIYA pa:GURMUKHI "
    "si:SINHALA ta:TAMIL te:TELUGU th:THAI"
)
SCRIPTS: Mapping[str, tuple[str, ...]] = {
    code: tuple(scripts.split()) for scripts, codes in _WRITTEN.items() for code in codes.split()
} | {code: (script,) for code, script in (pair.split(":") for pair in _OF_THEIR_OWN.split())}
"""Language -> scripts, each the first word of its letters' Unicode names."""

_SUBTAG_SCRIPTS = (
    "arab:ARABIC beng:BENGALI cyrl:CYRILLIC deva:DEVANAGARI grek:GREEK hans:CJK hant:CJK "
    "hebr:HEBREW latn:LATIN mong:MONGOLIAN"
)
_SUBTAGS: Mapping[str, str] = dict(pair.split(":") for pair in _SUBTAG_SCRIPTS.split())


def scripts_of(language: str) -> tuple[str, ...]:
    """The scripts a language is written in, or the one its own name says (`sr_Latn`)."""
    for part in language.replace("-", "_").split("_")[1:]:
        if part.lower() in _SUBTAGS:
            return (_SUBTAGS[part.lower()],)
    return SCRIPTS.get(plain_code(language), ())


NO_SCRIPT = -1
"""The script of a token without letters: digits, punctuation, single bytes."""
_SAMPLED_ROWS = 2000
_MIN_SHARE = 0.1


def script_of(token: str) -> str | None:
    """The script of most of a token's letters; None where there are none."""
    found = Counter(
        unicodedata.name(letter, "UNNAMED").split(maxsplit=1)[0].split("-")[0]
        for letter in token
        if letter.isalpha()
    )
    return max(sorted(found), key=lambda script: found[script]) if found else None


def scripts_of_tokens(tokens: Sequence[str]) -> tuple[IntArray, tuple[str, ...]]:
    """The script of each token as a number, and the scripts' names; `NO_SCRIPT` without letters."""
    found = [script_of(token) for token in tokens]
    names = tuple(sorted({script for script in found if script is not None}))
    numbers = {script: number for number, script in enumerate(names)}
    return np.array(
        [NO_SCRIPT if script is None else numbers[script] for script in found], np.int32
    ), names


def scripts_of_languages(corpus: Corpus, token_scripts: IntArray, num_scripts: int) -> BoolArray:
    """(languages, scripts): whether 10 % of a language's tokens with letters are in the script."""
    counts = np.zeros((len(corpus.languages), num_scripts), np.int64)
    for source, entry in corpus.manifest.sources.items():
        for name in entry.languages:
            table = corpus.table(source, name, "train")
            codes = name.split("-") if entry.kind == "pairs" else [name]
            for code, column in zip(codes, table.columns, strict=True):
                num_sampled = min(_SAMPLED_ROWS, table.num_rows)
                rows = np.unique(np.linspace(0, table.num_rows - 1, num_sampled).astype(int))
                ids = [table.ids(column, int(row)) for row in rows]
                scripts = token_scripts[np.concatenate([np.zeros(0, np.int32), *ids])]
                counts[corpus.languages.index(code)] += np.bincount(
                    scripts[scripts != NO_SCRIPT], minlength=num_scripts
                )
    totals = np.maximum(counts.sum(axis=1, keepdims=True), 1)
    return np.asarray(counts / totals >= _MIN_SHARE)
