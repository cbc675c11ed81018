"""Wikitext to plain text with links: the lead and the body of a page.

    tags -> templates, tables -> files (`removal`) -> quotes, URLs, lists -> links, entities

The plain text is assembled piece by piece, and each link's anchor is one piece, so a link's span is
exactly its anchor text.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from html import unescape
from typing import TYPE_CHECKING, NamedTuple

from isoglot.corpus.knowledge.markup.localized import (
    CATEGORIES,
    FILES,
    NAMESPACES,
    PROJECTS,
    WIKIPEDIAS,
)
from isoglot.corpus.knowledge.markup.removal import (
    GAP,
    replace_templates,
    strip_braces,
    strip_files,
    strip_tags,
)

if TYPE_CHECKING:
    from isoglot.corpus.knowledge.mediawiki import Site

_HEADING = re.compile(r"^=[^\n]*=[ \t]*$", re.MULTILINE)
_VARIANT = re.compile(r"-\{(?:([^{}|]*)\|)?([^{}]*)\}-")
_VARIANT_TEXT = re.compile(r"(?:^|;)\s*(?:zh|sr|kk|ku|uz|iu|gan|shi|tg)[\w-]*\s*:\s*([^;]*)")
_ELIDED = re.compile(r"'''(?!')([^'\n]+)''(?!')")
_QUOTES = re.compile(r"'''*")
_HATNOTE = re.compile(r"^:+[ \t]*''[^\n]*$", re.MULTILINE)
_LINES = (
    # rows of tables that were never opened or closed, and rules
    (re.compile(r"^(?:[ \t]*[|!{]|----)[^\n]*$", re.MULTILINE), ""),
    (re.compile(r"^[*#:;]+[ \t]*", re.MULTILINE), ""),
)
_INLINE = (
    # possessive: a URL without its closing bracket takes time linear in its length
    (re.compile(r"\[(?:https?:|ftp:|mailto:|news:)?//[^\s\[\]]*+\s*+([^\[\]]*+)\]"), r"\1"),
    (re.compile(r"<(?:br|hr|p|div|li)\b[^<>]*>", re.IGNORECASE), " "),
    (re.compile(r"\]\]</?[A-Za-z][^<>]*>"), f"]]{GAP}"),
    (re.compile(r"</?[A-Za-z][^<>]*>"), ""),
    (re.compile(r"__[^\W\d_]+__"), ""),
    (re.compile(r"&(?:nbsp|thinsp|ensp|emsp|#160|#8239|#32);"), " "),
)
_ODD_SPACES = re.compile(r"[\t\xa0\u2000-\u200a\u202f\u3000]")
_SPACES = re.compile(r"  +")
_OTHER, _FILE, _CATEGORY = -1, 6, 14
_NO_TRAIL = ("zh", "yue", "wuu", "gan", "lzh")
_LATIN_TRAIL = ("ja", "ko", "th", "lo", "km", "my", "bo", "dz")
_MARKS = "\u0300-\u036f\u0591-\u05c7\u064b-\u0655\u0900-\u0963\u0970-\u0dff"
"""Combining marks and vowel signs: part of a word, though no letters."""
_INVISIBLE = re.compile("[\u00ad\u200b\u200e\u200f\u2060\ufeff]")
_BRACKETED = re.compile(r"\s*[(（][^()（）]*[)）]$")


class Link(NamedTuple):
    """The span of a link's anchor text, and its target title."""

    start: int
    end: int
    target: str


@dataclass(slots=True)
class LinkedText:
    """Plain text, its links in order, and the counts of dropped links by reason."""

    text: str
    links: list[Link]
    dropped: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class PageText:
    """The plain text of a page."""

    lead: LinkedText
    """The text before the first heading."""
    body: LinkedText
    """The rest, without headings."""
    dropped: Counter[str]
    """Reason -> links of the page that are in neither part."""


class MarkupCleaner:
    """Turns wikitext of one wiki into plain text."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._spaces = dict.fromkeys(NAMESPACES, _OTHER)
        self._spaces |= {name.replace(" ", "_"): key for name, key in site.namespaces.items()}
        self._spaces |= dict.fromkeys(FILES, _FILE) | dict.fromkeys(CATEGORIES, _CATEGORY)
        files = (name.replace("_", "[ _]") for name, key in self._spaces.items() if key == _FILE)
        self._file_link = re.compile(rf"\[\[\s*(?:{'|'.join(files)})\s*:", re.IGNORECASE)
        trail = f"(?:[^\\W\\d_]|[{_MARKS}])+"
        if site.language in _NO_TRAIL:
            trail = "(?!)"
        elif site.language in _LATIN_TRAIL:
            trail = "[a-z]+"
        self._link = re.compile(
            rf"\[\[([^\[\]|\n]*)(?:\|((?:[^\[\]]|\[[^\[\]]*\])*))?\]\]({trail})?"
        )

    def clean(self, markup: str) -> PageText:
        """The text of a page; every `[[` is a link of lead or body, or counted as dropped."""
        found = markup.count("[[")
        text = strip_braces(replace_templates(strip_tags(markup)))
        text, files = strip_files(text, self._file_link)
        heading = _HEADING.search(text)
        lead = _HATNOTE.sub("", text[: heading.start()] if heading else text)
        body = _HEADING.sub("\n", text[heading.start() :]) if heading else ""
        parts = [self._parse(_inline(part)) for part in (lead, body)]
        dropped = parts[0].dropped + parts[1].dropped
        dropped["file"] += files
        dropped["not in text"] += found - dropped.total() - sum(len(part.links) for part in parts)
        return PageText(parts[0], parts[1], +dropped)

    def _parse(self, markup: str) -> LinkedText:
        """The plain text of markup that contains only links and entities."""
        dropped: Counter[str] = Counter()
        links: list[Link] = []
        pieces: list[str] = []
        length = at = seen = 0
        blank = True  # does the text so far end with a space, or is it empty?
        for match in self._link.finditer(markup):
            seen += 1
            target, anchor, trail = match.groups()
            reason, shown = self._judge(target, anchor)
            before = markup[at : match.start()]
            at = match.end() if trail is None or shown else match.start(3)
            shown = _plain(shown + (trail or "")) if shown else ""
            if shown[:1].isspace() and not before[-1:].isspace():
                before += " "
            before = _plain(before)
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
        rest = _plain(markup[at:])
        pieces.append(rest.lstrip(" ") if blank else rest)
        malformed = markup.count("[[") - seen
        if malformed:
            dropped["malformed"] += malformed
        return LinkedText("".join(pieces), links, dropped)

    def _judge(self, target: str, anchor: str | None) -> tuple[str | None, str]:
        """The drop reason of a link (None: kept), and its visible text."""
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


def _inline(text: str) -> str:
    """Removes all marks but those of links; list items become lines."""
    if "-{" in text:
        text = _VARIANT.sub(_chosen, text)
    for pattern, replacement in _LINES:
        text = pattern.sub(replacement, text)
    text = _QUOTES.sub(_quote, _ELIDED.sub(_Elision(), text))
    for pattern, replacement in _INLINE:
        text = pattern.sub(replacement, text)
    if not text.isascii():
        text = _ODD_SPACES.sub(" ", text)
    return _SPACES.sub(" ", text).replace(" \n", "\n").replace("\n ", "\n")


class _Elision:
    """Reads `l'''Encyclopédie''` as an apostrophe before italics, not as bold.

    Like MediaWiki, only in lines in which both bold and italics are unbalanced. Matches come in
    order, and a line is looked at once.
    """

    def __init__(self) -> None:
        self._end = -1
        self._unbalanced = False

    def __call__(self, match: re.Match[str]) -> str:
        text, at = match.string, match.start()
        if not at or not text[at - 1].isalpha():
            return match.group()
        if at > self._end:
            end = text.find("\n", at)
            self._end = len(text) if end < 0 else end
            runs = Counter(map(len, _QUOTES.findall(text, text.rfind("\n", 0, at) + 1, self._end)))
            self._unbalanced = bool(runs[2] % 2 and runs[3] % 2)
        return f"'{match.group(1)}" if self._unbalanced else match.group()


def _quote(quotes: re.Match[str]) -> str:
    """The quotes of a run that are left over from italics and bold."""
    number, at = len(quotes.group()), quotes.start()
    gap = GAP if quotes.string.endswith("]]", 0, at) else ""
    return gap + ("'" if number == 4 else "'" * max(number - 5, 0))


def _chosen(match: re.Match[str]) -> str:
    """The first variant of `-{ }-`, which gives a word in several scripts."""
    flags, content = match.groups()
    if flags and set(flags) & set("HT-D"):
        return ""
    variant = _VARIANT_TEXT.search(content)
    return variant.group(1) if variant else content


def _plain(piece: str) -> str:
    """Resolves entities and removes invisible characters."""
    if GAP in piece:
        piece = piece.replace(GAP, "")
    if "&" in piece:
        piece = unescape(piece).replace("\xa0", " ")
    return piece if piece.isascii() else _INVISIBLE.sub("", piece)
