"""Reads MediaWiki XML dumps (`pages-articles.xml`, export versions 0.8 to 0.11).

`read_site` gives the wiki of a dump from its header: namespaces, case rule, normalized titles.
`PageReader` gives the pages of a slice. Each page is parsed alone, so a broken page does not affect
the others; XML entities, declarations and network access are disabled.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import unescape
from typing import TYPE_CHECKING
from urllib.parse import unquote

from lxml import etree

from isoglot.corpus.knowledge.dump_files import read_head
from isoglot.corpus.knowledge.dump_records import BrokenRecord, Records, too_long_record
from isoglot.errors import CorpusError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from isoglot.corpus.knowledge.dump_files import FileSlice

_MAX_HEADER_BYTES = 1 << 18
_DIRECTION_MARKS = re.compile("[\u200e\u200f\u202a-\u202e]")
_DOTTED_I = ("tr", "az", "kk", "gag", "crh", "kaa", "tt")
"""Languages whose capital i has a dot."""
_CLOSING = b"</mediawiki>"
_MAX_DIGITS = 18
"""Digits of the largest page number that fits 63 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """One wiki."""

    language: str
    name: str
    """Its database name, such as `enwiki`; empty where the header gives none."""
    namespaces: dict[str, int]
    """Lower-case name -> number, for all namespaces that have a name."""
    first_letter: bool = True
    """Do titles start with a capital letter?"""

    def title(self, text: str) -> str:
        """A page title or link target, normalized for comparison."""
        if "&" in text:
            text = unescape(text)
        if "%" in text:
            text = _unquoted(text)
        if not text.isascii():
            text = _DIRECTION_MARKS.sub("", text)
        text = " ".join(text.replace("_", " ").split())
        return self._capital(text[:1]) + text[1:] if self.first_letter else text

    def _capital(self, letter: str) -> str:
        if letter == "i" and self.language in _DOTTED_I:
            return "İ"
        upper = letter.upper()
        # ß has no capital of one letter; Georgian's exist but wikis do not use them
        return letter if len(upper) != 1 or "ა" <= letter <= "ჿ" else upper


def _unquoted(text: str) -> str:
    """The text with percent-encoding resolved, if the result is UTF-8."""
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        return text


def read_site(path: Path, language: str) -> Site:
    """The wiki named in a dump's header."""
    head = read_head(path, b"</siteinfo>", _MAX_HEADER_BYTES)
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise CorpusError(
            f"{path}: is UTF-16, and dumps are UTF-8. Convert it: iconv -f UTF-16 -t UTF-8 IN > OUT"
        )
    if b"<mediawiki" not in head:
        raise CorpusError(
            f"{path}: is not a MediaWiki dump: <mediawiki does not occur in its first "
            f"{len(head):,} bytes. Name a pages-articles file (.xml, .xml.bz2, .xml.gz, .xml.xz)."
        )
    start = head.find(b"<siteinfo>")
    if start < 0 or not head.endswith(b"</siteinfo>"):
        return Site(language=language, name="", namespaces={})
    try:
        info = etree.fromstring(head[start:], _parser())
    except etree.XMLSyntaxError as error:
        raise CorpusError(
            f"{path}: its header is broken behind byte {start:,} ({error}). Fetch it again."
        ) from error
    return Site(
        language=language,
        name=info.findtext("dbname", ""),
        namespaces={
            (space.text or "").lower(): int(key)
            for space in info.iterfind("namespaces/namespace")
            if space.text and re.fullmatch(r"-?[0-9]{1,9}", key := space.get("key", "0"))
        },
        first_letter=info.findtext("case", "first-letter") == "first-letter",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page, in its newest version."""

    id: int
    title: str
    namespace: int
    redirect: str | None
    """The title it redirects to, if the dump names one."""
    model: str
    """Its content model; `wikitext` for an article."""
    text: str


class PageReader:
    """Iterates over the pages of a slice, once; then `truncated` is True if the dump is cut off."""

    def __init__(self, part: FileSlice) -> None:
        self._is_last = part.end is None
        self._records = Records(part, b"<page>", b"</page>")
        self.truncated = False

    def __iter__(self) -> Iterator[Page | BrokenRecord]:
        """The pages, in order."""
        parser, complete = _parser(), True
        for record in self._records:
            if record.too_long:
                yield too_long_record(record)
                complete = complete and record.complete
                continue
            if not record.complete:
                complete = False
                yield BrokenRecord(record.offset, "it does not end")
                continue
            # where an end tag is missing, the next page is still read
            start = record.data.rfind(b"<page>")
            if start > 0:
                yield BrokenRecord(record.offset, "it does not end")
            try:
                yield _page(etree.fromstring(record.data[start:], parser))
            except (etree.XMLSyntaxError, ValueError) as error:
                yield BrokenRecord(record.offset + start, str(error))
        self.truncated = self._is_last and (not complete or _CLOSING not in self._records.rest)


def _page(element: etree._Element) -> Page:
    """The page of a <page> element."""
    fields: dict[str, str] = {}
    redirect: str | None = None
    for child in element:
        if child.tag == "revision":
            # a dump with history has the newest revision last
            fields |= {f"revision {part.tag}": part.text or "" for part in child}
        elif child.tag == "redirect":
            redirect = child.get("title")
        else:
            fields[child.tag] = child.text or ""
    number = fields.get("id", "")
    if "title" not in fields or not (number.isascii() and number.isdigit()):
        raise ValueError("it has no title or no number")
    if len(number) > _MAX_DIGITS:
        raise ValueError(f"its number has more than {_MAX_DIGITS} digits")
    return Page(
        id=int(number),
        title=fields["title"],
        namespace=int(fields.get("ns", "0")),
        redirect=redirect,
        model=fields.get("revision model", "wikitext"),
        text=fields.get("revision text", ""),
    )


def _parser() -> etree.XMLParser:
    return etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=True)
