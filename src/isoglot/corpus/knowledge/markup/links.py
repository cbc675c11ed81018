"""Builds plain text and the spans of its links together, from wikitext without templates.

The text grows piece by piece, and the anchor of a link is one piece: its span reads exactly the
anchor because that is where the anchor was put. Nothing touches the text afterwards.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from html import unescape
from typing import TYPE_CHECKING, NamedTuple

from isoglot.corpus.knowledge.markup.strip import GAP
from isoglot.corpus.knowledge.markup.words import (
    CATEGORIES,
    FILES,
    NAMESPACES,
    PROJECTS,
    WIKIPEDIAS,
)

if TYPE_CHECKING:
    from isoglot.corpus.knowledge.dumps.site import Site

_OTHER, _FILE, _CATEGORY = -1, 6, 14
_NO_TRAIL = ("zh", "yue", "wuu", "gan", "lzh", "zh-yue", "zh-classical")
_LATIN_TRAIL = ("ja", "ko", "th", "lo", "km", "my", "bo", "dz")
_MARKS = "\u0300-\u036f\u0591-\u05c7\u064b-\u0655\u0900-\u0963\u0970-\u0dff"
"""Vowel signs and the like, which belong to a word though they are no letters."""
_INVISIBLE = re.compile("[\u00ad\u200b\u200e\u200f\u2060\ufeff]")
_BRACKETED = re.compile(r"\s*[(（][^()（）]*[)）]$")


class Link(NamedTuple):
    """Where the anchor of a link stands, and the title it leads to."""

    start: int
    end: int
    target: str


@dataclass(slots=True)
class Linked:
    """Plain text, its links in order, and the number of links that were left out, by reason."""

    text: str
    links: list[Link]
    dropped: Counter[str] = field(default_factory=Counter)


class Linker:
    """Reads the links of one wiki."""

    def __init__(self, site: Site) -> None:
        """`site` says what its namespaces are called."""
        self._site = site
        self._spaces = dict.fromkeys(NAMESPACES, _OTHER)
        self._spaces |= {name.replace(" ", "_"): key for name, key in site.namespaces.items()}
        self._spaces |= dict.fromkeys(FILES, _FILE) | dict.fromkeys(CATEGORIES, _CATEGORY)
        files = (name.replace("_", "[ _]") for name, key in self._spaces.items() if key == _FILE)
        self.file_link = re.compile(rf"\[\[\s*(?:{'|'.join(files)})\s*:", re.IGNORECASE)
        """Where a link begins that shows a file."""
        trail = f"(?:[^\\W\\d_]|[{_MARKS}])+"
        if site.language in _NO_TRAIL:
            trail = "(?!)"
        elif site.language in _LATIN_TRAIL:
            trail = "[a-z]+"
        self._link = re.compile(
            rf"\[\[([^\[\]|\n]*)(?:\|((?:[^\[\]]|\[[^\[\]]*\])*))?\]\]({trail})?"
        )

    def read(self, markup: str) -> Linked:
        """The plain text of markup whose only marks are links and entities."""
        dropped: Counter[str] = Counter()
        links: list[Link] = []
        pieces: list[str] = []
        length = at = seen = 0
        blank = True  # does the text so far end where a space would be one too many?
        for match in self._link.finditer(markup):
            seen += 1
            target, anchor, trail = match.groups()
            reason, shown = self._judge(target, anchor)
            before = markup[at : match.start()]
            at = match.end() if trail is None or shown else match.start(3)
            shown = plain(shown + (trail or "")) if shown else ""
            if shown[:1].isspace() and not before[-1:].isspace():
                before += " "
            before = plain(before)
            if blank and before[:1] == " ":
                before = before.lstrip(" ")
            anchor_text = " ".join(shown.split())
            pieces += (before, anchor_text)
            start = length + len(before)
            length = start + len(anchor_text)
            if reason is None and anchor_text:
                links.append(Link(start, length, self._site.title(target.lstrip(" :"))))
            else:
                dropped[reason or "empty anchor"] += 1
            last = anchor_text or before
            blank = last[-1:].isspace() if last else blank
            if shown[-1:].isspace() and not blank:
                pieces.append(" ")
                length, blank = length + 1, True
        rest = plain(markup[at:])
        pieces.append(rest.lstrip(" ") if blank else rest)
        malformed = markup.count("[[") - seen
        if malformed:
            dropped["malformed"] += malformed
        return Linked("".join(pieces), links, dropped)

    def _judge(self, target: str, anchor: str | None) -> tuple[str | None, str]:
        """Why the link is left out (None if it is not), and what the reader sees of it."""
        bare = target.strip()
        visible = bare.startswith(":")
        bare = bare.lstrip(": ")
        shown = bare.replace("_", " ") if anchor is None else anchor
        prefix, colon, name = bare.partition(":")
        if colon:
            prefix = prefix.strip().replace(" ", "_").lower()
            space = self._spaces.get(prefix)
            if space is not None:
                hidden = space in (_FILE, _CATEGORY) and not visible
                reason = {_FILE: "file", _CATEGORY: "category"}.get(space, "namespace")
                return reason, "" if hidden else (shown or name)
            if prefix in WIKIPEDIAS:
                return "interlanguage", (shown or name) if visible else ""
            if prefix in PROJECTS:
                return "other project", shown or name
        if anchor == "":  # the pipe trick: the title without what tells it apart
            shown = _BRACKETED.sub("", bare) if _BRACKETED.search(bare) else bare.split(", ")[0]
        if not bare:
            return "malformed", shown
        return ("section", shown) if "#" in bare else (None, shown)


def plain(piece: str) -> str:
    """A piece of text with its entities resolved and without invisible characters."""
    if GAP in piece:
        piece = piece.replace(GAP, "")
    if "&" in piece:
        piece = unescape(piece).replace("\xa0", " ")
    return piece if piece.isascii() else _INVISIBLE.sub("", piece)
