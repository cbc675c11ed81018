"""The wiki a dump comes from, as the dump's header describes it.

Gives the names of its namespaces, whether titles begin with a capital, and titles in the one form
in which they can be compared.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import unescape
from typing import TYPE_CHECKING
from urllib.parse import unquote

from lxml import etree

from isoglot.corpus.knowledge.dumps.unpack import read_head
from isoglot.errors import CorpusError

if TYPE_CHECKING:
    from pathlib import Path

_HEAD = 1 << 18
_DIRECTIONS = re.compile("[\u200e\u200f\u202a-\u202e]")
_DOTTED_I = ("tr", "az", "kk", "gag", "crh", "kaa", "tt")
"""Wikis whose capital i has a dot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """One wiki."""

    language: str
    name: str
    """Its database name, such as `enwiki`; empty where the header gives none."""
    namespaces: dict[str, int]
    """Lower-case name -> number, for all namespaces that have a name."""
    first_letter: bool = True
    """Do titles begin with a capital letter?"""

    def title(self, text: str) -> str:
        """A title or the target of a link, in the form in which titles are compared."""
        if "&" in text:
            text = unescape(text)
        if "%" in text:
            text = _unquoted(text)
        if not text.isascii():
            text = _DIRECTIONS.sub("", text)
        text = " ".join(text.replace("_", " ").split())
        return self._capital(text[:1]) + text[1:] if self.first_letter else text

    def _capital(self, letter: str) -> str:
        if letter == "i" and self.language in _DOTTED_I:
            return "İ"
        upper = letter.upper()
        # ß has no capital of one letter; Georgian's exist but wikis do not use them
        return letter if len(upper) != 1 or "ა" <= letter <= "ჿ" else upper


def read_site(path: Path, language: str) -> Site:
    """The wiki that a dump's header names."""
    head = read_head(path, b"</siteinfo>", _HEAD)
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise CorpusError(
            f"{path}: is UTF-16, and dumps are UTF-8. Convert it: iconv -f UTF-16 -t UTF-8 IN > OUT"
        )
    if b"<mediawiki" not in head:
        raise CorpusError(
            f"{path}: is no MediaWiki dump: <mediawiki does not occur in its first {len(head):,} "
            "bytes. Name a pages-articles file (.xml, .xml.bz2, .xml.gz, .xml.xz)."
        )
    start = head.find(b"<siteinfo>")
    if start < 0 or not head.endswith(b"</siteinfo>"):
        return Site(language=language, name="", namespaces={})
    try:
        info = etree.fromstring(
            head[start:],
            etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False),
        )
    except etree.XMLSyntaxError as error:
        raise CorpusError(
            f"{path}: its header is broken behind byte {start:,} ({error}). Fetch it again."
        ) from error
    return Site(
        language=language,
        name=info.findtext("dbname", ""),
        namespaces={
            (space.text or "").lower(): int(space.get("key", "0"))
            for space in info.iterfind("namespaces/namespace")
            if space.text
        },
        first_letter=info.findtext("case", "first-letter") == "first-letter",
    )


def _unquoted(text: str) -> str:
    """What percent signs spell, if that is UTF-8."""
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        return text
