"""The few templates whose text is their arguments: `{{nowrap|...}}`, `{{lang|fr|...}}`, measures.

All other templates are removed. Without these a sentence would lose a word or a number in its
middle; expanding templates in general needs their definitions, which articles' dumps do not have.
"""

from __future__ import annotations

import re

_TEMPLATES: dict[str, tuple[int, ...]] = {
    "small big abbr formatnum num nombre nihongo": (0,),
    "ill 仮リンク interlanguage_link link-interwiki": (0,),
    "lang langue lang_i native_name": (1,),
    "transl": (-1,),
    "nowrap nobr nobreak convert cvt unité unite unidad m": (0, 1),
    "date date- date_de_naissance date_de_décès": (0, 1, 2),
}
"""Templates, in lower case with underscores -> which of their unnamed arguments are their text."""
_ARGUMENTS = {name: places for names, places in _TEMPLATES.items() for name in names.split()}
_SYMBOLS = {
    "mdash": "—",
    "ndash": "–",
    "snd": " – ",
    "spaced_ndash": " – ",
    "spnd": " – ",
    "dash": " – ",
    "'": "'",
    "nbsp": " ",
    "·": " · ",
    "•": " • ",
}
"""Templates that stand for a character."""
_RANGES = ("to", "and", "-", "–", "x", "by", "or", "à", "et")
_NAMES = sorted(_ARGUMENTS, key=len, reverse=True)
_SHOWN = re.compile(
    rf"\{{\{{\s*({'|'.join(re.escape(name).replace('_', '[ _]') for name in _NAMES)}|lang-[a-z-]+)"
    r"\s*\|([^{}]*(?:\{\{[^{}]*\}\}[^{}]*)*)\}\}",
    re.IGNORECASE,
)
_SYMBOL = re.compile(
    rf"\{{\{{\s*({'|'.join(re.escape(name).replace('_', '[ _]') for name in _SYMBOLS)})\s*\}}\}}",
    re.IGNORECASE,
)
_DEPTH = 3
"""How deep they may be nested in each other."""
_BAR = re.compile(r"\|(?![^\[\]]*\]\])(?![^{}]*\}\})")
"""A bar between arguments, not one inside a link or another template."""


def show_arguments(text: str) -> str:
    """The text with these templates replaced by what they show."""
    text = _SYMBOL.sub(lambda match: _SYMBOLS.get(_key(match.group(1)), ""), text)
    for _ in range(_DEPTH):
        text, number = _SHOWN.subn(_shown, text)
        if not number:
            break
    return text


def _shown(match: re.Match[str]) -> str:
    name = _key(match.group(1))
    unnamed = [x.strip() for x in _BAR.split(match.group(2)) if "=" not in x or "[[" in x]
    chosen = _ARGUMENTS.get(name, (0,))
    if chosen == (0, 1) and len(unnamed) > 3 and unnamed[1] in _RANGES:
        chosen = (0, 1, 2, 3)
    there = [index for index in chosen if index < len(unnamed)] if unnamed else []
    return " ".join(unnamed[index] for index in there if unnamed[index])


def _key(name: str) -> str:
    return name.lower().replace(" ", "_")
