"""Splits plain text into sentences with their links.

Punctuation rules, the same for all languages except for small tables: abbreviations, dots of
ordinal numbers, scripts without spaces. Links are never split.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isoglot.corpus.knowledge.markup.text import LinkedText

_END = re.compile(r"[\n.!?…؟۔։।॥。！？｡]+[\"'”’»“)\]」』）]*[ \n]*")
NO_SPACE = "。！？｡"
"""Marks that end a sentence without a following space."""
_LETTER = re.compile(r"[^\W\d_]")
_OPENING = "\"'“‘«„([¿¡"
_DOTTED_ORDINALS = "de da nb nn no fi et lv cs sk sl hr sr bs hu tr is fo pl eu"
_BY_SPACES = ("th", "lo", "km", "my", "bo", "dz", "shn")
_MIN_CLAUSE_CHARS = 160
"""Minimum characters of a sentence that ends at a space, in scripts without end marks."""
_ABBREVIATIONS = {
    "": """mr mrs ms dr prof st sr jr vs inc ltd co corp no nos vol pp p cf al ca c fl b d gen col
        lt capt sgt rev hon gov sen rep jan feb mar apr jun jul aug sep sept oct nov dec ed eds est
        e.g i.e u.s u.k a.k.a ph op approx dept fig hl""",
    "de": """z.b d.h u.a v.a s.o o.ä bzw ca dr prof geb gest nr st str usw vgl bd jh jhdt abk sog
        inkl ggf evtl hrsg ev allg lat griech engl frz ital v chr u s""",
    "fr": "m mm mme mlle dr av apr env cf p éd vol st ste hab",
    "es": "sr sra srta dr dra ud uds av núm art p pág aprox a.c d.c s hab ee uu",
    "it": "sig dott prof s ss ecc pag ca art sec a.c d.c",
    "nl": "dr prof ca bijv bv d.w.z o.a m.b.t jl mr st nr blz e.v resp",
    "pt": "sr sra dr dra prof av art p pág aprox a.c d.c",
    "ro": "dr prof nr str sf art ex aprox loc",
    "ru": """г гг в вв т.е т.д т.п т.н и.о им ул св н.э н э др пр см руб тыс млн млрд рис стр кв д
        род ум""",
    "bg": "г гг в вв т.е т.н др проф св ул пр.н.е сл.н.е инж гр",
    "el": "π.χ μ.χ κ.λπ κ.ά δηλ αρ σελ βλ",
    "tr": "dr prof doç av vb vs yy m.ö m.s bkz no sok cad",
    "fi": "esim mm ns ym jne eli n s noin tri prof",
    "vi": "tp ts gs tr",
}


class Sentence(NamedTuple):
    """One sentence and its links as (start, end, target)."""

    text: str
    links: list[tuple[int, int, str]]


class SentenceSplitter:
    """Splits the text of one language."""

    def __init__(self, language: str) -> None:
        words = f"{_ABBREVIATIONS['']} {_ABBREVIATIONS.get(language, '')}"
        self._abbreviations = frozenset(words.split())
        self._ordinals = language in _DOTTED_ORDINALS.split()
        self._by_spaces = language in _BY_SPACES

    def split(self, linked: LinkedText) -> Iterator[Sentence]:
        """The sentences; one without a letter but with links is given with an empty text."""
        text, links = linked.text, linked.links
        taken = 0
        for start, end in self._spans(linked):
            sentence = text[start:end].lstrip()
            origin, first = end - len(sentence), taken
            sentence = sentence.rstrip()
            while taken < len(links) and links[taken].start < end:
                taken += 1
            if not _LETTER.search(sentence):
                sentence = ""
            if sentence or taken > first:
                mine = links[first:taken]
                yield Sentence(
                    sentence, [(x.start - origin, x.end - origin, x.target) for x in mine]
                )

    def _spans(self, linked: LinkedText) -> Iterator[tuple[int, int]]:
        """The spans of the sentences; together they cover the text."""
        text, links = linked.text, linked.links
        near = start = 0
        for cut in self._cuts(text):
            while near < len(links) and links[near].end <= cut:
                near += 1
            if near < len(links) and links[near].start < cut:
                continue
            yield start, cut
            start = cut
        if start < len(text):
            yield start, len(text)

    def _cuts(self, text: str) -> Iterator[int]:
        """Possible sentence ends: behind a line break, a mark, or the space behind a mark."""
        begin = 0
        for end in _END.finditer(text):
            mark = end.group()
            if "\n" in mark:
                if self._by_spaces:
                    yield from _clauses(text, begin, end.start())
                begin = end.end()
                yield begin
            elif not self._by_spaces and self._ends(text, end, mark):
                yield end.end()
        if self._by_spaces:
            yield from _clauses(text, begin, len(text))

    def _ends(self, text: str, end: re.Match[str], mark: str) -> bool:
        """Does this mark end a sentence?"""
        if mark[-1] != " ":
            return mark[0] in NO_SPACE
        if mark[0] != ".":
            return True
        following = text[end.end() : end.end() + 3].lstrip(_OPENING)[:1]
        if following.islower():
            return False
        dot = end.start()
        before = text[max(dot - 24, 0) : dot].rsplit("\n", 1)[-1].rsplit(" ", 1)[-1]
        before = before.lstrip(_OPENING).lower()
        if before.isdigit():
            return not (self._ordinals and len(before) <= 2)
        return before not in self._abbreviations and not (len(before) == 1 and before.isalpha())


def _clauses(text: str, start: int, stop: int) -> Iterator[int]:
    """Splits of a line in scripts without end marks: at spaces."""
    while (space := text.find(" ", start + _MIN_CLAUSE_CHARS, stop)) > 0:
        yield space + 1
        start = space
