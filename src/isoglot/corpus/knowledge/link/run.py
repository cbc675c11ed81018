"""`isoglot knowledge link`: tables of dumps in, the knowledge store of a prepared corpus out.

    titles -> page entities -> descriptions -> entities -+-> link entities -> mentions -+-> store
                                                         +-> triples -------------------+

Joins run on dataframes without text (`dataframes`, `joins`); tokenization is one task for each
shard (`descriptions`, `mentions`). Each stage writes its result atomically to the work folder and
is skipped where it exists. An entity is an item that has a page in a wanted language.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from isoglot.atomic import write_bytes, write_errors, write_text
from isoglot.corpus.engine.runner import LOCAL, StageRunner, no_progress
from isoglot.corpus.knowledge import dataframes
from isoglot.corpus.knowledge.extract_tables import ExtractedTables, shard_number
from isoglot.corpus.knowledge.link import joins
from isoglot.corpus.knowledge.link.config import LinkConfig
from isoglot.corpus.knowledge.link.descriptions import DescribeTask, SortedDescriptions, describe
from isoglot.corpus.knowledge.link.excluded import (
    excluded_files,
    hash_excluded,
    index_excluded,
)
from isoglot.corpus.knowledge.link.mentions import MentionTask, mention
from isoglot.corpus.knowledge.link.tokenize import open_shard
from isoglot.corpus.knowledge.link.write_store import write_store
from isoglot.corpus.knowledge.store import FOLDER, MANIFEST, Knowledge
from isoglot.corpus.storage.corpus import Corpus
from isoglot.errors import CorpusError
from isoglot.locks import lock_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isoglot.corpus.engine.runner import Progress
    from isoglot.corpus.knowledge.store import KnowledgeManifest
    from isoglot.types import LongArray

WORK = ".linking"
"""Work folder inside the corpus; removed when linking is finished."""


def link(
    config: LinkConfig,
    tables: Path | str,
    corpus: Path | str,
    *,
    workers: int = 1,
    cluster: str = LOCAL,
    progress: Progress | None = None,
) -> KnowledgeManifest:
    """Links the tables of `extract` and writes a corpus's knowledge store, unless up to date.

    `workers` processes tokenize. `cluster` is `local`, or `auto` or the address of a Ray cluster
    whose machines see the same files: joins and tokenization then run there.
    """
    report = progress or no_progress
    if cluster != LOCAL:
        # workers of a cluster run in folders of their own
        tables, corpus = Path(tables).resolve(), Path(corpus).resolve()
    found = ExtractedTables.open(Path(tables), config.languages)
    found.check_heldout(config.heldout_share, config.heldout_seed)
    opened = Corpus.open(corpus, verify="never")
    excluded = excluded_files(config)
    settings = store_settings(config, found, excluded)
    present = up_to_date(opened, settings)
    if present is not None:
        report("up to date", 1, 1)
        return present
    dataframes.choose_engine(cluster)
    with lock_folder(opened.folder):
        work = _work_folder(opened, settings)
        index = index_excluded(excluded, config.exclude_min_bytes, work / "exclude")
        stages = Stages(found, opened, config, work, index)
        stages.run(StageRunner(work=work, workers=workers, cluster=cluster, progress=report))
        manifest = write_store(stages, settings, report)
        with write_errors(work):
            shutil.rmtree(work)
    return manifest


def is_linked(config: LinkConfig, tables: Path, corpus: Path) -> bool:
    """Whether `link` would find nothing to do."""
    found = ExtractedTables.open(tables, config.languages)
    settings = store_settings(config, found, excluded_files(config))
    return up_to_date(Corpus.open(corpus, verify="never"), settings) is not None


def store_settings(
    config: LinkConfig, tables: ExtractedTables, excluded: Sequence[Path]
) -> dict[str, Any]:
    """Everything that decides the content of a store, as JSON, but for the tokenizer."""
    settings: dict[str, Any] = {**json.loads(json.dumps(asdict(config))), "tables": tables.digest()}
    settings["languages"] = list(tables.languages)
    hashes = hash_excluded(excluded)
    if hashes:
        settings["exclude"] = hashes
    else:
        # stores of settings that exclude nothing are the same as before there were such
        del settings["exclude"], settings["exclude_min_bytes"]
    return settings


def up_to_date(corpus: Corpus, settings: dict[str, Any]) -> KnowledgeManifest | None:
    """The manifest of a store of the same tables, settings and tokenizer."""
    if not (corpus.folder / FOLDER / MANIFEST).is_file():
        return None
    try:
        tokenizer = corpus.manifest.tokenizer.fingerprint
        manifest = Knowledge.open(corpus.folder / FOLDER, tokenizer=tokenizer).manifest
    except CorpusError:  # damaged, or of another tokenizer: written again
        return None
    return manifest if manifest.settings == settings else None


def _work_folder(corpus: Corpus, settings: dict[str, Any]) -> Path:
    """The work folder, emptied if it was used with other settings."""
    work = corpus.folder / WORK
    key = json.dumps({**settings, "tokenizer": corpus.manifest.tokenizer.fingerprint})
    record = work / "settings.json"
    if not record.is_file() or record.read_text(encoding="utf-8") != key:
        shutil.rmtree(work, ignore_errors=True)
        write_text(record, key)
    return work


@dataclass(frozen=True, slots=True)
class Stages:
    """The inputs of linking and the work folder of its stages."""

    tables: ExtractedTables
    corpus: Corpus
    config: LinkConfig
    work: Path
    excluded: Path | None = None
    """The index of the texts of evaluation files."""

    def run(self, runner: StageRunner) -> None:
        """Runs the stages that are left."""
        languages, report = self.tables.languages, runner.progress
        for number, language in enumerate(languages):
            report("titles", number, len(languages))
            self._titles(language)
            self._page_entities(language)
        report("titles", len(languages), len(languages))
        pages = [task for language in languages for task in self._describe_tasks(language)]
        runner.run("descriptions", describe, pages, name=lambda task: str(task.pages))
        self._entities()
        for number, language in enumerate(languages):
            report("links", number, len(languages))
            self._link_entities(language)
        report("links", len(languages), len(languages))
        texts = [task for language in languages for task in self._mention_tasks(language)]
        runner.run("mentions", mention, texts, name=lambda task: str(task.sentences))
        report("triples", 0, 1)
        if not self.triples_folder.is_dir():
            triples = joins.triple_status(self.claims(), self.known_items())
            dataframes.write(triples, self.triples_folder)
        report("triples", 1, 1)

    @property
    def entities_file(self) -> Path:
        """The items with a description, ascending, as a numpy file."""
        return self.work / "entities.npy"

    @property
    def triples_folder(self) -> Path:
        """Every distinct claim: subject, relation, object, status."""
        return self.work / "triples"

    def entities(self) -> LongArray:
        """The items with a description, ascending."""
        found: LongArray = np.load(self.entities_file, mmap_mode="r")
        return found

    def description_shards(self, language: str) -> list[pa.Table]:
        """The descriptions of a language."""
        return [open_shard(task.output) for task in self._describe_tasks(language)]

    def mention_shards(self, language: str) -> list[tuple[pa.Table, pa.Table]]:
        """The sentences and the mentions of a language."""
        tasks = self._mention_tasks(language)
        return [(open_shard(task.output), open_shard(task.mentions)) for task in tasks]

    def claims(self) -> Any:
        """The claims of the dump: subject, relation, object."""
        return dataframes.read(
            self.tables.wikidata("claims"), ["subject", "relation", "object"]
        ).exclude(dataframes.SHARD)

    def known_items(self) -> Any:
        """The items with a description, as a dataframe: item."""
        return dataframes.read_folder(self.work / "entities")

    def _describe_tasks(self, language: str) -> list[DescribeTask]:
        return [
            DescribeTask(
                pages=shard,
                column="lead" if self.config.description == "lead" else "opening",
                entities=self._folder(language, "page-entities"),
                sentences=self._sentences_of(language, shard),
                max_tokens=self.config.max_description_tokens,
                **self._task_of(shard, self._folder(language, "descriptions")),
            )
            for shard in self.tables.wikipedia(language, "pages")
        ]

    def _sentences_of(self, language: str, pages: Path) -> Path | None:
        """The shard with the sentences of a shard's pages, where texts are excluded."""
        if self.excluded is None:
            return None
        shards = self.tables.wikipedia(language, "sentences")
        return next((one for one in shards if shard_number(one) == shard_number(pages)), None)

    def _mention_tasks(self, language: str) -> list[MentionTask]:
        return [
            MentionTask(
                sentences=shard,
                links=self._folder(language, "link-entities"),
                entities=self.entities_file,
                max_tokens=self.config.max_mention_tokens,
                **self._task_of(shard, self._folder(language, "sentences")),
            )
            for shard in self.tables.wikipedia(language, "sentences")
        ]

    def _task_of(self, shard: Path, folder: Path) -> dict[str, Any]:
        """The fields of a `TokenizeTask`, without `max_tokens`."""
        number, vocabulary = shard_number(shard), self.corpus.vocabulary
        return {
            "shard": number,
            "tokenizer": self.corpus.tokenizer_folder,
            "special": (vocabulary.cls, vocabulary.sep, vocabulary.pad, vocabulary.mask),
            "excluded": self.excluded,
            "output": folder / f"{number:05d}.arrow",
        }

    def _titles(self, language: str) -> None:
        folder, unique = self._folder(language, "titles"), self._folder(language, "pages")
        if folder.is_dir():
            return
        if not unique.is_dir():
            columns = ["title", "kind", "redirect"]
            pages = dataframes.read(self.tables.wikipedia(language, "pages"), columns)
            dataframes.write(joins.unique_pages(pages), unique)
        found = joins.resolve_titles(
            dataframes.read_folder(unique),
            dataframes.read_folder(self._sitelinks() / f"language={language}"),
            joins.disambiguation_items(self.claims()),
            max_redirects=self.config.max_redirects,
        )
        dataframes.write(found, folder)

    def _sitelinks(self) -> Path:
        """The sitelinks, partitioned by language."""
        folder = self.work / "sitelinks"
        if not folder.is_dir():
            columns = ["language", "title", "item"]
            links = dataframes.read(self.tables.wikidata("sitelinks"), columns)
            dataframes.write(links.select(*columns), folder, by="language")
        return folder

    def _page_entities(self, language: str) -> None:
        folder = self._folder(language, "page-entities")
        if not folder.is_dir():
            files = self.tables.wikipedia(language, "pages")
            pages = dataframes.read(files, ["page", "title", "kind"])
            titles = dataframes.read_folder(self._folder(language, "titles"))
            dataframes.write(joins.page_entities(pages, titles), folder, by=dataframes.SHARD)

    def _link_entities(self, language: str) -> None:
        folder = self._folder(language, "link-entities")
        if not folder.is_dir():
            files = self.tables.wikipedia(language, "sentences")
            found = joins.link_entities(
                dataframes.read(files, ["page", "index", "links"]),
                dataframes.read_folder(self._folder(language, "titles")),
                dataframes.read_folder(self._folder(language, "page-entities")),
            )
            dataframes.write(found, folder, by=dataframes.SHARD)

    def _entities(self) -> None:
        if self.entities_file.is_file():
            return
        items = np.zeros(0, np.int64)
        for language in self.tables.languages:
            described = SortedDescriptions(self.description_shards(language))
            items = np.union1d(items, described.items)
        if not len(items):
            raise CorpusError(
                f"{self.tables.folder}: no page belongs to a Wikidata item, so no entity has a "
                "description. Extract the Wikipedias and a Wikidata dump of about the same time, "
                "with the same languages."
            )
        folder = self.work / "entities"
        with write_errors(folder):
            folder.mkdir(exist_ok=True)
            pq.write_table(pa.table({"item": items}), folder / "items.parquet")
        buffer = BytesIO()
        np.save(buffer, items)
        write_bytes(self.entities_file, buffer.getbuffer())

    def _folder(self, language: str, stage: str) -> Path:
        return self.work / language / stage
