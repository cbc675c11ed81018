"""Sets of languages that papers score or average over, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isoglot.errors import IsoglotError, nearest
from isoglot.languages import canonical_name, find, is_language

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

LANGUAGE_SETS: dict[str, str] = {
    "xnli": "ar bg de el en es fr hi ru sw th tr ur vi zh",
    "mlqa": "ar de en es hi vi zh",
    "paws-x": "de en es fr ja ko zh",
    "conll": "de en es nl",
    "amazon": "de en fr ja",
    "ppa-xnli": "ar bg de en es fr hi zh",
    "ppa-mlqa": "ar de en es hi zh",
    "tatoeba-14": "ar bg de el es fr hi ru sw th tr ur vi zh",
    "tatoeba-36": "af ar bg bn de el es et eu fa fi fr he hi hu id it ja jv ka kk ko ml mr nl pt "
    "ru sw ta te th tl tr ur vi zh",
    "xtreme": "af ar bg bn de el en es et eu fa fi fr he hi hu id it ja jv ka kk ko ml mr ms my nl "
    "pt ru sw ta te th tl tr ur vi yo zh",
    "xtreme-pos": "af ar bg de el en es et eu fa fi fr he hi hu id it ja kk ko mr nl pt ru ta te "
    "th tl tr ur vi yo zh",
    "xtreme-xquad": "ar de el en es hi ru th tr vi zh",
    "xtreme-bucc": "de fr ru zh",
}
"""XTREME's 40 are those of its WikiAnn; Tatoeba-36 is XTREME's, Tatoeba-14 is XNLI's without en."""

_MAX_CODE_LENGTH = 3
"""Letters of a language's code, before its script and region; longer names are those of sets."""


def language_set(name: str) -> tuple[str, ...]:
    """The languages of a named set."""
    if name in LANGUAGE_SETS:
        return tuple(LANGUAGE_SETS[name].split())
    raise IsoglotError(
        f"There is no language and no set of languages {name!r}: {nearest(name, LANGUAGE_SETS)}"
    )


def expand_languages(names: Iterable[str]) -> tuple[str, ...]:
    """The codes of languages and pairs in any spelling (`en`, `por`, `deu-eng`).

    The name of a set is replaced by its languages.
    """
    codes: dict[str, None] = {}
    for name in (name.strip() for name in names):
        code = canonical_name(name)
        parts = code.split("-")
        is_code = all(
            is_language(one) and len(one.partition("_")[0]) <= _MAX_CODE_LENGTH for one in parts
        )
        codes |= dict.fromkeys(
            (code,) if is_code and name not in LANGUAGE_SETS else language_set(name)
        )
    return tuple(codes)


def is_selected(language: str, codes: Collection[str] | None) -> bool:
    """Whether a language, or a pair, is selected by codes; none selects all.

    A pair is selected with its languages other than English, and by its own name in either order;
    `en` selects only English alone.
    """
    if codes is None or find(language, codes) is not None:
        return True
    foreign = {code for code in canonical_name(language).split("-") if code != "en"}
    return bool(foreign) and foreign <= set(map(canonical_name, codes))
