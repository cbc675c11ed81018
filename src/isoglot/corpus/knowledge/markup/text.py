"""The plain text of a page: its lead and its body, each with its links.

tags --> templates, tables --> files --> quotes, addresses, lists --> links and entities
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from isoglot.corpus.knowledge.markup.links import Linked, Linker
from isoglot.corpus.knowledge.markup.shown import show_arguments
from isoglot.corpus.knowledge.markup.strip import GAP, strip_braces, strip_files, strip_tags

if TYPE_CHECKING:
    from isoglot.corpus.knowledge.dumps.site import Site

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
    (re.compile(r"\[(?:https?:|ftp:|mailto:|news:)?//[^\s\]]*\s*([^\[\]]*)\]"), r"\1"),
    (re.compile(r"<(?:br|hr|p|div|li)\b[^<>]*>", re.IGNORECASE), " "),
    (re.compile(r"\]\]</?[A-Za-z][^<>]*>"), f"]]{GAP}"),
    (re.compile(r"</?[A-Za-z][^<>]*>"), ""),
    (re.compile(r"__[^\W\d_]+__"), ""),
    (re.compile(r"&(?:nbsp|thinsp|ensp|emsp|#160|#8239|#32);"), " "),
)
_ODD_SPACES = re.compile(r"[\t\xa0\u2000-\u200a\u202f\u3000]")
_SPACES = re.compile(r"  +")


@dataclass(slots=True)
class PageText:
    """What is left of a page's markup."""

    lead: Linked
    """What stands before the first heading."""
    body: Linked
    """All the rest; headings are left out."""
    dropped: Counter[str]
    """Reason -> links of the page that are in neither."""


class Cleaner:
    """Turns the markup of one wiki's pages into text."""

    def __init__(self, site: Site) -> None:
        """`site` says what its namespaces are called."""
        self._linker = Linker(site)

    def clean(self, markup: str) -> PageText:
        """The text of a page. Links: all `[[` = those of lead and body + dropped."""
        found = markup.count("[[")
        text = strip_braces(show_arguments(strip_tags(markup)))
        text, files = strip_files(text, self._linker.file_link)
        heading = _HEADING.search(text)
        lead = _HATNOTE.sub("", text[: heading.start()] if heading else text)
        body = _HEADING.sub("\n", text[heading.start() :]) if heading else ""
        parts = [self._linker.read(_inline(part)) for part in (lead, body)]
        dropped = parts[0].dropped + parts[1].dropped
        dropped["file"] += files
        dropped["not in text"] += found - dropped.total() - sum(len(part.links) for part in parts)
        return PageText(parts[0], parts[1], +dropped)


def _inline(text: str) -> str:
    """Without any marks but those of links, list items on lines of their own."""
    if "-{" in text:
        text = _VARIANT.sub(_chosen, text)
    for pattern, replacement in _LINES:
        text = pattern.sub(replacement, text)
    text = _QUOTES.sub(_quote, _ELIDED.sub(_elided, text))
    for pattern, replacement in _INLINE:
        text = pattern.sub(replacement, text)
    if not text.isascii():
        text = _ODD_SPACES.sub(" ", text)
    return _SPACES.sub(" ", text).replace(" \n", "\n").replace("\n ", "\n")


def _elided(match: re.Match[str]) -> str:
    """`l'''Encyclopédie''` is an apostrophe before italics, not bold.

    As MediaWiki does, only in lines in which neither bold nor italics would end.
    """
    text, at = match.string, match.start()
    if at and text[at - 1].isalpha():
        end = text.find("\n", at)
        line = text[text.rfind("\n", 0, at) + 1 : len(text) if end < 0 else end]
        runs = [len(run) for run in _QUOTES.findall(line)]
        if runs.count(2) % 2 and runs.count(3) % 2:
            return f"'{match.group(1)}"
    return match.group()


def _quote(quotes: re.Match[str]) -> str:
    """What is shown of two or more quotes: those that are left over from italics and bold."""
    number, at = len(quotes.group()), quotes.start()
    gap = GAP if quotes.string.endswith("]]", 0, at) else ""
    return gap + ("'" if number == 4 else "'" * max(number - 5, 0))


def _chosen(match: re.Match[str]) -> str:
    """What is shown of `-{ }-`, which gives a word in several scripts: the first."""
    flags, content = match.groups()
    if flags and set(flags) & set("HT-D"):
        return ""
    variant = _VARIANT_TEXT.search(content)
    return variant.group(1) if variant else content
