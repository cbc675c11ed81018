"""Sets of languages that papers score or average over, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isoglot.errors import IsoglotError, nearest
from isoglot.languages import NAMES, canonical_name, code_of_name, find, is_language, plain_code

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from isoglot.tasks.base import DataFolders, Task

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
    known = {*LANGUAGE_SETS, *(each.lower() for each in NAMES.values())}
    hint = nearest(name.lower(), known)
    if not hint.startswith("did"):
        hint = "give a code (sw), an English name (swahili) or a set of a paper, " + (
            ", ".join(LANGUAGE_SETS)
        )
    raise IsoglotError(f"There is no language and no set of languages {name!r}: {hint}")


def expand_languages(names: Iterable[str]) -> tuple[str, ...]:
    """The codes of languages and pairs in any spelling (`en`, `por`, `deu-eng`, `swahili`).

    The name of a set is replaced by its languages.
    """
    codes: dict[str, None] = {}
    for name in (name.strip() for name in names):
        found = language_code(name)
        if found is None or name in LANGUAGE_SETS:
            codes |= dict.fromkeys(language_set(name))
        else:
            codes[found] = None
    return tuple(codes)


def language_code(name: str) -> str | None:
    """The code of a language or a pair in any spelling (`swa`, `swahili`); None for others."""
    code = canonical_name(name)
    is_code = all(
        is_language(one) and len(one.partition("_")[0]) <= _MAX_CODE_LENGTH
        for one in code.split("-")
    )
    return code if is_code else code_of_name(name)


def languages_with_data(tasks: Sequence[Task[Any, Any]], data: DataFolders) -> set[str]:
    """The languages, and pairs, of which tasks have data to score."""
    return {
        split.language for task in tasks for split in task.splits_in(data) if split.name != "train"
    }


def absent_note(names: Iterable[str], available: Collection[str]) -> str | None:
    """A sentence on languages that were asked for one by one and that no data have; none: none.

    Languages of a paper's set may be absent: the set is all that a paper scores.

    Args:
        names: what a user gave as languages.
        available: the languages and pairs that there are data of.

    Raises:
        IsoglotError: a code is absent and that of no language.
    """
    if not available:
        return None  # that there are no data at all is another sentence
    sides = {side for one in available for side in canonical_name(one).split("-")}
    codes = expand_languages(name for name in names if name.strip() not in LANGUAGE_SETS)
    absent = [
        code
        for code in codes
        if code not in sides and not any(is_selected(one, (code,)) for one in available)
    ]
    have = ", ".join(sorted(available))
    for code in absent:
        if not all(map(_is_known, code.split("-"))):
            hint = nearest(code, available)
            near = hint if hint.startswith("did") else f"there are data of {have}"
            raise IsoglotError(f"{code!r} is the code of no language that is known here: {near}.")
    if not absent:
        return None
    return f"there are no data of {', '.join(absent)}, only of {have}."


def _is_known(code: str) -> bool:
    """Whether a code is that of a language, by our table or CLDR's names."""
    from babel import Locale

    plain = plain_code(code)
    return plain in NAMES or plain in Locale("en").languages


def is_selected(language: str, codes: Collection[str] | None) -> bool:
    """Whether a language, or a pair, is selected by codes; none selects all.

    A pair is selected with its languages other than English, and by its own name in either order;
    `en` selects only English alone.
    """
    if codes is None or find(language, codes) is not None:
        return True
    foreign = {code for code in canonical_name(language).split("-") if code != "en"}
    return bool(foreign) and foreign <= set(map(canonical_name, codes))
