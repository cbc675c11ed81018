"""From a part of a Wikipedia dump to tables: its pages, and its sentences with their links.

Reads what `dumps/` gives, cleans with `markup/`; the tables are Parquet, and the sentences are
written once more as plain text, one a line, a blank line between pages.
"""

from __future__ import annotations

import gzip
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from isoglot.corpus.disk import PARTIAL, writing
from isoglot.corpus.knowledge.dumps.pages import Broken, Page, Pages
from isoglot.corpus.knowledge.dumps.site import Site
from isoglot.corpus.knowledge.dumps.unpack import Part
from isoglot.corpus.knowledge.markup.sentences import NO_SPACE, Splitter
from isoglot.corpus.knowledge.markup.text import Cleaner
from isoglot.corpus.knowledge.markup.words import DISAMBIGUATED, DISAMBIGUATIONS, REDIRECTS
from isoglot.corpus.knowledge.tables import Faults, TableWriter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isoglot.corpus.knowledge.markup.sentences import Sentence

PAGES = pa.schema(
    [
        ("page", pa.int64()),
        ("title", pa.string()),
        ("redirect", pa.string()),
        ("kind", pa.string()),
        ("lead", pa.string()),
    ]
)
LINKS = pa.list_(
    pa.struct([("start", pa.int32()), ("end", pa.int32()), ("target", pa.string())]),
)
SENTENCES = pa.schema(
    [("page", pa.int64()), ("index", pa.int32()), ("text", pa.string()), ("links", LINKS)]
)
LEAD = 2_000
"""The most characters of a lead."""
_REDIRECT = re.compile(r"\s*#\s*([^\W\d_][\w -]*?)\s*:?\s*\[\[([^\[\]|]+)")
_TEMPLATE = re.compile(r"\{\{\s*([^{}|\n#<>]+?)\s*[|}\n]")
_SUFFIX = re.compile(r"[(（]([^()（）]+)[)）]$")


@dataclass(frozen=True, slots=True, kw_only=True)
class PagesTask:
    """One part of a dump, and where its tables go."""

    part: Part
    site: Site
    pages: Path
    sentences: Path
    text: Path


def extract_pages(task: PagesTask) -> dict[str, Any]:
    """Writes the tables of a part and counts what became of its pages and links."""
    reader = Pages(task.part)
    extractor = _Extractor(task.site)
    faults = Faults()
    counts: Counter[str] = Counter()
    seen: set[int] = set()
    partial = task.text.with_name(task.text.name + PARTIAL)
    with writing(task.text):
        task.text.parent.mkdir(parents=True, exist_ok=True)
    with (
        TableWriter(task.pages, PAGES) as pages,
        TableWriter(task.sentences, SENTENCES) as sentences,
        partial.open("wb") as packed,
        # neither name nor time: the same dump gives the same bytes
        gzip.GzipFile("", "wb", 1, packed, mtime=0) as text,
    ):
        for page in reader:
            counts["pages"] += 1
            if isinstance(page, Broken):
                counts["broken pages"] += 1
                faults.add(page.offset, page.fault)
            elif page.namespace != 0:
                counts["pages of other namespaces"] += 1
            elif page.model != "wikitext":
                counts["pages of other content"] += 1
            elif page.id in seen:
                # links are known by page and sentence: two versions of a page would mix
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
    with writing(task.text):
        partial.replace(task.text)
    return {
        **counts,
        "links": extractor.links,
        "links kept": extractor.kept,
        "links dropped": dict(sorted(extractor.dropped.items())),
        "cut short": reader.cut_short,
        "faults": faults.told,
    }


class _Extractor:
    """Turns pages of one wiki into rows."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._cleaner = Cleaner(site)
        self._splitter = Splitter(site.language)
        words = f"{DISAMBIGUATIONS['']} {DISAMBIGUATIONS.get(site.language, '')}"
        self._disambiguations = frozenset(words.split())
        self.links = 0
        self.kept = 0
        self.dropped: Counter[str] = Counter()

    def extract(self, page: Page) -> tuple[str, tuple[Any, ...], list[Sentence]]:
        """What kind of page it is, its row, and its sentences if it is an article."""
        title = self._site.title(page.title)
        here = page.text.count("[[")
        self.links += here
        redirect = page.redirect or _redirect(page.text)
        if redirect is not None:
            target = self._site.title(redirect.partition("#")[0])
            self.dropped["redirect page"] += here
            return "redirects", (page.id, title, target, "redirect", ""), []
        if is_disambiguation(title, page.text, self._disambiguations):
            self.dropped["disambiguation page"] += here
            return "disambiguations", (page.id, title, None, "disambiguation", ""), []
        cleaned = self._cleaner.clean(page.text)
        self.dropped += cleaned.dropped
        opening = list(self._kept(self._splitter.split(cleaned.lead)))
        rest = list(self._kept(self._splitter.split(cleaned.body)))
        row = (page.id, title, None, "article", join_lead([one.text for one in opening]))
        return "articles", row, opening + rest

    def _kept(self, sentences: Iterator[Sentence]) -> Iterator[Sentence]:
        """The sentences that have text; the links of the others are counted."""
        for sentence in sentences:
            if sentence.text:
                self.kept += len(sentence.links)
                yield sentence
            else:
                self.dropped["no words"] += len(sentence.links)


def join_lead(sentences: list[str]) -> str:
    """The first sentences of a page, as many as fit whole; of a very long first one, its start."""
    lead = ""
    for sentence in sentences:
        longer = f"{lead} {sentence}" if lead and lead[-1] not in NO_SPACE else lead + sentence
        if len(longer) > LEAD:
            break
        lead = longer
    if not lead and sentences:
        lead = sentences[0][:LEAD].rsplit(" ", 1)[0]
    return lead


def is_disambiguation(title: str, text: str, templates: frozenset[str]) -> bool:
    """Does the page only say which pages a title may mean?"""
    suffix = _SUFFIX.search(title)
    if suffix and _key(suffix.group(1)) in DISAMBIGUATED:
        return True
    return "__DISAMBIG__" in text or any(
        _key(template) in templates for template in _TEMPLATE.findall(text)
    )


def _redirect(text: str) -> str | None:
    """The target that a page's own text names, where the dump names none."""
    if not text.lstrip().startswith("#"):
        return None
    found = _REDIRECT.match(text)
    return found.group(2) if found and _key(found.group(1)) in REDIRECTS else None


def _key(word: str) -> str:
    return word.strip().lower().replace(" ", "_")
