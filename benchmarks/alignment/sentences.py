"""From raw text to tidy sentences: mark-up and vowel points off, paragraphs split, scraps dropped.

Reads strings of one language; gives strings. Nothing here knows a file.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.alignment.languages import Language

LEAST, MOST = 12, 600
"""Characters of a sentence that is kept as text; Chinese says the same in a third of the least."""

# vowel points and the stretching stroke: written in the Bible, hardly anywhere else
_ARABIC_POINTS = re.compile("[\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06ed]")
_NOTE_MARK = re.compile(r"\s*\[\d+\]")
_HAN = "[㐀-鿿　-〿！-｠]"
_HAN_SPACE = re.compile(f"(?<={_HAN}) +(?={_HAN})")
_SPACED_MARK = re.compile(r" (?=[,.;:!?…)](?: |$))")

_CLOSING = "[\"'”’»)\\]]*"
_END = re.compile(
    # initials and titles of one or two letters end no sentence
    rf"(?:(?<!\b[A-ZА-Я])(?<!\b[A-Z][a-z])(?<!\bMrs)[.]|[!?…؟]){_CLOSING}\s+(?=[^a-zа-я])"
    rf"|[。！？]{_CLOSING}[”’」』）]*\s*"
)


def tidy(text: str, language: Language) -> str:
    """A text on one line, spelled as ordinary text of its language is."""
    text = _NOTE_MARK.sub("", text).replace("[", "").replace("]", "")
    text = " ".join(text.split())
    match language.code:
        case "ar":
            return _ARABIC_POINTS.sub("", text).replace("ٱ", "ا")
        case "zh":
            return _HAN_SPACE.sub("", text)
        case "vi":
            return _SPACED_MARK.sub("", text)
    return text


def split(paragraph: str) -> list[str]:
    """The sentences of a paragraph: cut after . ! ? and their kin where no small letter follows."""
    ends = [match.end() for match in _END.finditer(paragraph)]
    edges = [0, *ends, len(paragraph)]
    pieces = (paragraph[a:b].strip() for a, b in pairwise(edges))
    return [piece for piece in pieces if piece]


def is_sentence(text: str, language: Language) -> bool:
    """Long enough, short enough, and mostly letters of the language's own script."""
    least = LEAST // 3 if language.code == "zh" else LEAST
    if not least <= len(text) <= MOST or "://" in text:
        return False
    own = len(re.findall(f"[{language.script}]", text))
    return own >= 0.6 * len(text.replace(" ", ""))


def essence(text: str) -> str:
    """What makes two sentences the same: letters and digits, without case."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(character for character in folded if character.isalnum())
