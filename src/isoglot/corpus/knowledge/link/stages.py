"""The stages of linking, each with its result in a working folder, whole or not at all.

Joins run on dataframes and touch no text (`isoglot.corpus.relational`); tokenizing is a function
of one shard (`isoglot.corpus.engine`). A stage whose result is there is passed over.
"""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from isoglot.corpus import relational
from isoglot.corpus.corpus import Corpus
from isoglot.corpus.disk import write_atomically, writing
from isoglot.corpus.engine import run
from isoglot.corpus.knowledge.link import joins
from isoglot.corpus.knowledge.link.describe import DescribeTask, describe
from isoglot.corpus.knowledge.link.gather import Descriptions
from isoglot.corpus.knowledge.link.inputs import Tables, number_of
from isoglot.corpus.knowledge.link.mention import MentionTask, mention
from isoglot.corpus.knowledge.link.parts import open_part
from isoglot.corpus.knowledge.link.settings import LinkConfig
from isoglot.corpus.knowledge.link.titles import titles, unique_pages
from isoglot.errors import CorpusError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from isoglot.corpus.workshop import Progress
    from isoglot.types import LongArray


@dataclass(frozen=True, slots=True)
class Stages:
    """What is linked, and the folder where results wait for the next stage."""

    tables: Tables
    corpus: Corpus
    config: LinkConfig
    work: Path

    def run(self, *, workers: int, report: Progress) -> None:
        """Runs the stages that are left."""
        languages = self.tables.languages
        for number, language in enumerate(languages):
            report("titles", number, len(languages))
            self._titles(language)
            self._page_entities(language)
        report("titles", len(languages), len(languages))
        leads = [task for language in languages for task in self._describe_tasks(language)]
        _watch("descriptions", describe, leads, workers, report)
        self._entities()
        for number, language in enumerate(languages):
            report("links", number, len(languages))
            self._link_entities(language)
        report("links", len(languages), len(languages))
        texts = [task for language in languages for task in self._mention_tasks(language)]
        _watch("mentions", mention, texts, workers, report)
        report("triples", 0, 1)
        self._triples()
        report("triples", 1, 1)

    @property
    def entities_file(self) -> Path:
        """The items that are described, ascending, as a numpy file."""
        return self.work / "entities.npy"

    @property
    def triples_folder(self) -> Path:
        """Every distinct claim: subject, relation, object, fate."""
        return self.work / "triples"

    def entities(self) -> LongArray:
        """The items that are described, ascending."""
        found: LongArray = np.load(self.entities_file, mmap_mode="r")
        return found

    def described(self, language: str) -> list[pa.Table]:
        """The descriptions of a language, in the order of the shards."""
        return [open_part(task.output) for task in self._describe_tasks(language)]

    def mentioning(self, language: str) -> list[tuple[pa.Table, pa.Table]]:
        """The sentences and the mentions of a language, in the order of the shards."""
        tasks = self._mention_tasks(language)
        return [(open_part(task.output), open_part(task.mentions)) for task in tasks]

    def claims(self) -> Any:
        """subject, relation, object, as the dump has them."""
        return relational.read(
            self.tables.wikidata("claims"), ["subject", "relation", "object"]
        ).exclude(relational.SHARD)

    def known(self) -> Any:
        """The items that are described, as a dataframe: item."""
        return relational.read_folder(self.work / "entities")

    def _describe_tasks(self, language: str) -> list[DescribeTask]:
        return [
            DescribeTask(
                pages=shard,
                shard=number_of(shard),
                entities=self._of(language, "page-entities"),
                tokenizer=self.corpus.tokenizer_folder,
                structural=self._structural(),
                longest=self.config.description_tokens,
                output=self._of(language, "descriptions") / f"{number_of(shard):05d}.arrow",
            )
            for shard in self.tables.wikipedia(language, "pages")
        ]

    def _mention_tasks(self, language: str) -> list[MentionTask]:
        return [
            MentionTask(
                sentences=shard,
                shard=number_of(shard),
                links=self._of(language, "link-entities"),
                entities=self.entities_file,
                tokenizer=self.corpus.tokenizer_folder,
                structural=self._structural(),
                longest=self.config.mention_tokens,
                output=self._of(language, "sentences") / f"{number_of(shard):05d}.arrow",
            )
            for shard in self.tables.wikipedia(language, "sentences")
        ]

    def _titles(self, language: str) -> None:
        folder, once = self._of(language, "titles"), self._of(language, "pages")
        if folder.is_dir():
            return
        columns = ["title", "kind", "redirect"]
        if not once.is_dir():
            pages = relational.read(self.tables.wikipedia(language, "pages"), columns)
            relational.write(unique_pages(pages), once)
        found = titles(
            relational.read_folder(once),
            relational.read_folder(self._sitelinks() / f"language={language}"),
            joins.disambiguation_items(self.claims()),
            hops=self.config.redirect_hops,
        )
        relational.write(found, folder)

    def _sitelinks(self) -> Path:
        """The sitelinks, sorted by language: nobody reads those of all languages for one."""
        folder = self.work / "sitelinks"
        if not folder.is_dir():
            columns = ["language", "title", "item"]
            links = relational.read(self.tables.wikidata("sitelinks"), columns)
            relational.write(links.select(*columns), folder, by="language")
        return folder

    def _page_entities(self, language: str) -> None:
        folder = self._of(language, "page-entities")
        if not folder.is_dir():
            pages = relational.read(
                self.tables.wikipedia(language, "pages"), ["page", "title", "kind"]
            )
            found = relational.read_folder(self._of(language, "titles"))
            relational.write(joins.page_entities(pages, found), folder, by=relational.SHARD)

    def _link_entities(self, language: str) -> None:
        folder = self._of(language, "link-entities")
        if not folder.is_dir():
            sentences = relational.read(
                self.tables.wikipedia(language, "sentences"), ["page", "index", "links"]
            )
            found = joins.link_entities(
                sentences,
                relational.read_folder(self._of(language, "titles")),
                relational.read_folder(self._of(language, "page-entities")),
            )
            relational.write(found, folder, by=relational.SHARD)

    def _entities(self) -> None:
        if self.entities_file.is_file():
            return
        items = np.zeros(0, np.int64)
        for language in self.tables.languages:
            items = np.union1d(items, Descriptions(self.described(language)).items)
        if not len(items):
            raise CorpusError(
                f"{self.tables.folder}: no page belongs to a Wikidata item, so no entity is "
                "described. Extract the Wikipedias and a Wikidata dump of about the same time, "
                "with the same languages."
            )
        folder = self.work / "entities"
        with writing(folder):
            folder.mkdir(exist_ok=True)
            pq.write_table(pa.table({"item": items}), folder / "items.parquet")
        buffer = BytesIO()
        np.save(buffer, items)
        write_atomically(self.entities_file, buffer.getbuffer())

    def _triples(self) -> None:
        if not self.triples_folder.is_dir():
            relational.write(joins.triple_fates(self.claims(), self.known()), self.triples_folder)

    def _of(self, language: str, stage: str) -> Path:
        return self.work / language / stage

    def _structural(self) -> tuple[int, ...]:
        vocabulary = self.corpus.vocabulary
        return vocabulary.cls, vocabulary.sep, vocabulary.pad, vocabulary.mask


def _watch(
    stage: str,
    function: Callable[[Any], Path],
    tasks: Sequence[DescribeTask] | Sequence[MentionTask],
    workers: int,
    report: Progress,
) -> None:
    run(
        function,
        tasks,
        workers=workers,
        progress=lambda done, total: report(stage, done, total),
    )
