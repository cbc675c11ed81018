"""Extracts a slice of a Wikipedia dump into tables: its pages, and its sentences with their links.

Pages come from `mediawiki`, plain text and links from `markup`. The sentences are also written as
plain text, one a line, a blank line between pages.
"""

from __future__ import annotations

import gzip
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from isoglot.atomic import replace_file
from isoglot.corpus.knowledge.dump_files import FileSlice
from isoglot.corpus.knowledge.dump_records import BrokenRecord
from isoglot.corpus.knowledge.extract_tables import Faults, ParquetTable
from isoglot.corpus.knowledge.markup.localized import DISAMBIGUATED, DISAMBIGUATIONS, REDIRECTS
from isoglot.corpus.knowledge.markup.sentences import NO_SPACE, SentenceSplitter
from isoglot.corpus.knowledge.markup.text import MarkupCleaner
from isoglot.corpus.knowledge.mediawiki import Page, PageReader, Site

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isoglot.corpus.knowledge.markup.sentences import Sentence

PAGES = pa.schema(
    [
        ("page", pa.int64()),
        *((name, pa.string()) for name in ("title", "redirect", "kind", "opening", "lead")),
    ]
)
_LINKS = pa.list_(pa.struct([("start", pa.int32()), ("end", pa.int32()), ("target", pa.string())]))
SENTENCES = pa.schema(
    [("page", pa.int64()), ("index", pa.int32()), ("text", pa.string()), ("links", _LINKS)]
)
MAX_OPENING_CHARS = 2_000
MAX_PAGE_CHARS = 4 << 20
"""Wikitext of the longest page that is read; MediaWiki allows 2 MiB (`$wgMaxArticleSize`)."""
_MAX_REDIRECT_CHARS = 1_000
_REDIRECT = re.compile(r"\s*#\s*([^\W\d_][\w -]*?)\s*:?\s*\[\[([^\[\]|]+)")
_TEMPLATE = re.compile(r"\{\{\s*+([^{}|\n#<>]++)[|}\n]")
_SUFFIX = re.compile(r"[(（]([^()（）]+)[)）]$")


@dataclass(frozen=True, slots=True, kw_only=True)
class PagesTask:
    """A slice of a dump and the paths of its tables."""

    part: FileSlice
    site: Site
    pages: Path
    sentences: Path
    text: Path


def extract_pages(task: PagesTask) -> dict[str, Any]:
    """Writes the tables of a slice; gives the counts of its pages and links."""
    reader = PageReader(task.part)
    extractor = _PageExtractor(task.site)
    faults = Faults()
    counts: Counter[str] = Counter()
    seen: set[int] = set()
    with (
        replace_file(task.text) as partial,
        ParquetTable(task.pages, PAGES) as pages,
        ParquetTable(task.sentences, SENTENCES) as sentences,
        partial.open("wb") as compressed,
        # neither name nor time: the same dump gives the same bytes
        gzip.GzipFile("", "wb", 1, compressed, mtime=0) as text,
    ):
        for page in reader:
            counts["pages"] += 1
            if isinstance(page, BrokenRecord):
                counts["pages too long" if page.too_long else "broken pages"] += 1
                faults.add(page.offset, page.fault)
            elif len(page.text) > MAX_PAGE_CHARS:
                counts["pages too long"] += 1
            elif page.namespace != 0:
                counts["pages of other namespaces"] += 1
            elif page.model != "wikitext":
                counts["pages of other content"] += 1
            elif page.id in seen:
                # links are identified by page and sentence: two versions of a page would mix
                counts["repeated pages"] += 1
            else:
                seen.add(page.id)
                kind, row, found = extractor.extract(page)
                counts[kind] += 1
                pages.add(row)
                if found:
                    counts["sentences"] += len(found)
                    sentences.extend((page.id, i, s.text, s.links) for i, s in enumerate(found))
                    text.write(("".join(f"{s.text}\n" for s in found) + "\n").encode())
    return {
        **counts,
        "links": extractor.links,
        "links kept": extractor.kept,
        "links dropped": dict(sorted(extractor.dropped.items())),
        "truncated": reader.truncated,
        "faults": faults.first,
    }


class _PageExtractor:
    """Turns pages of one wiki into table rows."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._cleaner = MarkupCleaner(site)
        self._splitter = SentenceSplitter(site.language)
        words = f"{DISAMBIGUATIONS['']} {DISAMBIGUATIONS.get(site.language, '')}"
        self._disambiguations = frozenset(words.split())
        self.links = 0
        self.kept = 0
        self.dropped: Counter[str] = Counter()

    def extract(self, page: Page) -> tuple[str, tuple[Any, ...], list[Sentence]]:
        """The kind of a page, its row, and the sentences of an article."""
        title = self._site.title(page.title)
        here = page.text.count("[[")
        self.links += here
        redirect = page.redirect or _redirect(page.text)
        if redirect is not None:
            target = self._site.title(redirect.partition("#")[0])
            self.dropped["redirect page"] += here
            return "redirects", (page.id, title, target, "redirect", "", ""), []
        if is_disambiguation(title, page.text, self._disambiguations):
            self.dropped["disambiguation page"] += here
            return "disambiguations", (page.id, title, None, "disambiguation", "", ""), []
        cleaned = self._cleaner.clean(page.text)
        self.dropped += cleaned.dropped
        lead = list(self._kept(self._splitter.split(cleaned.lead)))
        sentences = lead + list(self._kept(self._splitter.split(cleaned.body)))
        openings = (join_opening([one.text for one in some]) for some in (sentences, lead))
        return "articles", (page.id, title, None, "article", *openings), sentences

    def _kept(self, sentences: Iterator[Sentence]) -> Iterator[Sentence]:
        """The sentences with text; links of the others are counted as dropped."""
        for sentence in sentences:
            if sentence.text:
                self.kept += len(sentence.links)
                yield sentence
            else:
                self.dropped["no words"] += len(sentence.links)


def join_opening(sentences: list[str]) -> str:
    """The first sentences of a page up to 2,000 characters; a longer first one is cut off."""
    text = ""
    for sentence in sentences:
        longer = f"{text} {sentence}" if text and text[-1] not in NO_SPACE else text + sentence
        if len(longer) > MAX_OPENING_CHARS:
            break
        text = longer
    if not text and sentences:
        text = sentences[0][:MAX_OPENING_CHARS].rsplit(" ", 1)[0]
    return text


def is_disambiguation(title: str, text: str, templates: frozenset[str]) -> bool:
    """Is the page a list of the meanings of its title?"""
    suffix = _SUFFIX.search(title)
    if suffix and _key(suffix.group(1)) in DISAMBIGUATED:
        return True
    return "__DISAMBIG__" in text or any(
        _key(template) in templates for template in _TEMPLATE.findall(text)
    )


def _redirect(text: str) -> str | None:
    """The redirect target in a page's text, for dumps that do not name it."""
    if not text.lstrip().startswith("#"):
        return None
    found = _REDIRECT.match(text[:_MAX_REDIRECT_CHARS])
    return found.group(2) if found and _key(found.group(1)) in REDIRECTS else None


def _key(word: str) -> str:
    return word.strip().lower().replace(" ", "_")
