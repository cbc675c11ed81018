"""The pages of a part of a Wikipedia dump (`pages-articles.xml`, export versions 0.8 to 0.11).

Each page is parsed on its own, so one broken page costs only itself, and no declaration of another
page, no entity and no address outside the file can have a say.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lxml import etree

from isoglot.corpus.knowledge.dumps.records import Records

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isoglot.corpus.knowledge.dumps.unpack import Part

_CLOSING = b"</mediawiki>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page, in its newest version."""

    id: int
    title: str
    namespace: int
    redirect: str | None
    """The title it sends its readers to, if the dump says so."""
    model: str
    """What its text is; `wikitext` for an article."""
    text: str


@dataclass(frozen=True, slots=True)
class Broken:
    """A page that cannot be read."""

    offset: int
    """Unpacked bytes between the start of the part and the page."""
    fault: str


class Pages:
    """Iterates over the pages of a part, once; then `cut_short` says if the dump ends too early."""

    def __init__(self, part: Part) -> None:
        """`part` is of a file in MediaWiki's export format."""
        self._last = part.end is None
        self._records = Records(part, b"<page>", b"</page>")
        self._parser = etree.XMLParser(
            resolve_entities=False, no_network=True, load_dtd=False, huge_tree=True
        )
        self.cut_short = False

    def __iter__(self) -> Iterator[Page | Broken]:
        """The pages, in order; one that is broken comes back as such."""
        whole = True
        for record in self._records:
            if not record.whole:
                whole = False
                yield Broken(record.offset, "it does not end")
                continue
            # where the end of a page is missing, the next page is not lost with it
            start = record.data.rfind(b"<page>")
            if start > 0:
                yield Broken(record.offset, "it does not end")
            try:
                yield _page(etree.fromstring(record.data[start:], self._parser))
            except (etree.XMLSyntaxError, ValueError) as error:
                yield Broken(record.offset + start, str(error))
        self.cut_short = self._last and (not whole or _CLOSING not in self._records.rest)


def _page(element: etree._Element) -> Page:
    """The page that a <page> element describes."""
    fields: dict[str, str] = {}
    redirect: str | None = None
    for child in element:
        if child.tag == "revision":
            # a dump with history gives the newest last
            fields |= {f"revision {part.tag}": part.text or "" for part in child}
        elif child.tag == "redirect":
            redirect = child.get("title")
        else:
            fields[child.tag] = child.text or ""
    if "title" not in fields or not fields.get("id", "").isdigit():
        raise ValueError("it has no title or no number")
    return Page(
        id=int(fields["id"]),
        title=fields["title"],
        namespace=int(fields.get("ns", "0")),
        redirect=redirect,
        model=fields.get("revision model", "wikitext"),
        text=fields.get("revision text", ""),
    )
