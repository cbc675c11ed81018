"""Knowledge graphs to the tables that `isoglot knowledge link` reads, and to plain text.

An entity's page in a language is its name, its description and its facts, a sentence each; links
lead from objects to their entities. So a graph without text trains XLM-K's tasks too:

    Kenya. Republic of Kenya. Kenya borders Uganda. Kenya borders Ethiopia.
                                            ------                --------

A share of the facts is in no text at all: linking holds out facts among these, and nothing says
what they are.
"""

from __future__ import annotations

import gzip
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from isoglot.atomic import replace_file, write_errors, write_json
from isoglot.corpus.knowledge.extract_tables import COUNTS, ParquetTable, claim
from isoglot.corpus.knowledge.graph.graph import Fact, Graph, item_number, relation_numbers
from isoglot.corpus.knowledge.graph.readers import READERS, GraphFormat
from isoglot.corpus.knowledge.store_writer import are_facts_held_out
from isoglot.corpus.knowledge.wikidata import TABLES
from isoglot.corpus.knowledge.wikipedia import PAGES, SENTENCES, join_opening
from isoglot.corpus.reading.files import refuse_kernel_files
from isoglot.corpus.reading.sources import expand_patterns
from isoglot.errors import CorpusError, RecipeError
from isoglot.folders import with_home
from isoglot.languages import canonical
from isoglot.locks import lock_folder
from isoglot.ranges import Range, Seed, check_ranges

if TYPE_CHECKING:
    from collections.abc import Iterator

Span = tuple[int, int, str]
"""First character, character behind the last, target."""
_FULL_STOPS = {"zh": "。", "ja": "。", "hi": "।"}
"""Language -> what ends its sentences; others have a dot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphSource:
    """One knowledge graph."""

    format: GraphFormat = "tsv"
    """How its files are read: tsv, wikidata, kgtk, dbp15k or countries (docs/knowledge.md)."""
    files: tuple[str, ...]
    """Files, folders (dbp15k) or patterns, relative to the settings' folder."""
    languages: tuple[str, ...] = ()
    """Languages whose names are read, empty: all; for dbp15k those of its graphs 1 and 2."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphConfig:
    """Which knowledge graphs are read, and what is written of them."""

    graphs: dict[str, GraphSource] = field(default_factory=dict)
    """Name -> a graph; entities with the same id in several graphs are one."""
    languages: tuple[str, ...] = ()
    """Languages to keep; empty: all."""
    min_languages: Annotated[int, Range(1, 1000)] = 2
    """Entities with names in fewer languages are left out."""
    max_facts: Annotated[int, Range(0, 1000)] = 12
    """Facts of an entity that its page tells, the first of the files."""
    heldout_share: Annotated[float, Range(0, 1, below=True)] = 0.05
    """Share of the facts that no page tells; linking may hold out as many, and no others."""
    heldout_seed: Seed = 0
    """Random seed of their choice; linking must have the same."""

    def __post_init__(self) -> None:
        check_ranges(self)


def write_graph_tables(
    config: GraphConfig, output: Path | str, *, base: Path | str = "."
) -> dict[str, Any]:
    """Read the graphs and write their tables; gives the content of counts.json."""
    output = Path(output)
    if not config.graphs:
        raise RecipeError("graphs: there are none. Name at least one graph and its files.")
    with lock_folder(output):
        claim(output)
        return _write_tables(config, output, Path(base))


def _write_tables(config: GraphConfig, output: Path, base: Path) -> dict[str, Any]:
    graph = _read(config, base)
    kept = _kept_names(graph, config)
    if not kept:
        raise CorpusError(_why_none(graph, config))
    pages = _Pages(graph, kept, config)
    with write_errors(output):
        (output / COUNTS).unlink(missing_ok=True)
        for old in (*output.glob("wikipedia/*/*.parquet"), *output.glob("wikidata/*.parquet")):
            old.unlink()
    by_language = {code: _write_language(output, pages, code) for code in pages.languages}
    facts = sum(fact.subject in kept and fact.object in kept for fact in graph.facts)
    counts = {
        "settings": asdict(config),
        "entities": len(kept),
        "entities in too few languages": len(graph.names) - len(kept),
        "facts": facts,
        "facts with an entity that is left out": len(graph.facts) - facts,
        "facts in no text": pages.num_untold,
        "dropped": dict(sorted(graph.dropped.items())),
        "languages": by_language,
    }
    _write_wikidata(output, pages)
    write_json(output / COUNTS, counts, indent=1)
    return counts


def _read(config: GraphConfig, base: Path) -> Graph:
    graph = Graph()
    for name, source in config.graphs.items():
        where = f"graphs.{name}.files"
        if source.format == "dbp15k":
            files = tuple(base / with_home(file) for file in source.files)
            for folder in files:
                refuse_kernel_files(folder)
        else:
            files = expand_patterns(source.files, base, where)
        READERS[source.format](graph, files, tuple(map(canonical, source.languages)))
    return graph


def _kept_names(graph: Graph, config: GraphConfig) -> dict[str, dict[str, str]]:
    """Entity -> language -> name, of the entities that are kept, in the languages to keep."""
    wanted = set(map(canonical, config.languages))
    kept = {}
    for entity, names in graph.names.items():
        found = {code: name for code, name in names.items() if not wanted or code in wanted}
        if len(found) >= config.min_languages:
            kept[entity] = found
    return kept


def _why_none(graph: Graph, config: GraphConfig) -> str:
    """Why no entity is kept: what the files have, and what was asked for."""
    have = Counter(code for names in graph.names.values() for code in names)
    most = ", ".join(code for code, _ in have.most_common(10))
    asked = f" (languages: {', '.join(config.languages)})" if config.languages else ""
    dropped = "".join(f"; {count:,} {reason}" for reason, count in graph.dropped.most_common(3))
    return (
        f"No entity has a name in {config.min_languages} languages{asked}. The files have names in "
        f"{most or 'no language'}{dropped}. Set min_languages lower, name languages by these "
        "codes, or add files with names in more languages."
    )


class _Pages:
    """The pages of all entities, in every language."""

    def __init__(self, graph: Graph, kept: dict[str, dict[str, str]], config: GraphConfig) -> None:
        self.graph, self.kept, self.max_facts = graph, kept, config.max_facts
        self.languages = sorted({code for names in kept.values() for code in names})
        self.numbers = relation_numbers(graph)
        self.items = {entity: item_number(entity) for entity in graph.names}
        facts = [fact for fact in graph.facts if fact.subject in kept]
        subjects, objects = (
            np.array([item_number(entity) for entity in entities], np.int64)
            for entities in ([f.subject for f in facts], [f.object for f in facts])
        )
        share, seed = config.heldout_share, config.heldout_seed
        untold = are_facts_held_out(subjects, objects, share=share, seed=seed)
        self.num_untold = sum(
            hidden and fact.object in kept
            for fact, hidden in zip(facts, untold.tolist(), strict=True)
        )
        self.told: dict[str, list[Fact]] = {}
        for fact, hidden in zip(facts, untold.tolist(), strict=True):
            if not hidden:
                self.told.setdefault(fact.subject, []).append(fact)

    def sentences(self, entity: str, language: str) -> Iterator[tuple[str, list[Span]]]:
        """The name, the description, then facts: texts, and links from objects."""
        name = self.kept[entity][language]
        yield name, []
        text = self.graph.texts.get(entity, {}).get(language)
        if text:
            yield text, []
        for fact in self._tellable(entity, language)[: self.max_facts]:
            names = self.graph.relations.get(fact.relation, {})
            relation = names.get(language) or names.get("en") or next(iter(names.values()), "")
            begin = f"{name} {relation} "
            object_ = self.graph.names[fact.object][language]
            span = (len(begin), len(begin + object_), fact.object)
            yield f"{begin}{object_}", [span] if fact.object in self.kept else []

    def _tellable(self, entity: str, language: str) -> list[Fact]:
        return [
            fact
            for fact in self.told.get(entity, ())
            if language in self.graph.names.get(fact.object, {})
        ]


def _write_language(output: Path, pages: _Pages, language: str) -> dict[str, int]:
    """Writes pages, sentences and text of one language; gives their counts."""
    folder, counts = output / "wikipedia" / language, Counter[str]()
    text_file = output / "text" / f"{language}.txt.gz"
    end = _FULL_STOPS.get(language, ".")
    with (
        write_errors(text_file),
        replace_file(text_file) as partial,
        ParquetTable(folder / "pages-00000.parquet", PAGES) as table,
        ParquetTable(folder / "sentences-00000.parquet", SENTENCES) as sentences,
        partial.open("wb") as compressed,
        gzip.GzipFile("", "wb", 1, compressed, mtime=0) as text,
    ):
        for entity in pages.kept:
            if language not in pages.kept[entity]:
                continue
            number = pages.items[entity]
            told = [(f"{said}{end}", links) for said, links in pages.sentences(entity, language)]
            opening = join_opening([said for said, _ in told])
            table.add((number, entity, None, "article", opening, told[0][0]))
            for place, (said, links) in enumerate(told):
                sentences.add((number, place, said, links))
            text.write(("".join(f"{said}\n" for said, _ in told) + "\n").encode())
            counts.update(pages=1, sentences=len(told), links=sum(len(links) for _, links in told))
    return dict(counts)


def _write_wikidata(output: Path, pages: _Pages) -> None:
    """Writes items, sitelinks, claims and properties."""
    graph, kept, folder = pages.graph, pages.kept, output / "wikidata"
    with ParquetTable(folder / "items-00000.parquet", TABLES["items"]) as items:
        items.extend((pages.items[entity], list(kept[entity].items()), []) for entity in kept)
    with ParquetTable(folder / "sitelinks-00000.parquet", TABLES["sitelinks"]) as links:
        links.extend((pages.items[e], code, e) for e in kept for code in kept[e])
    with ParquetTable(folder / "claims-00000.parquet", TABLES["claims"]) as claims:
        claims.extend(
            (pages.items[fact.subject], pages.numbers[fact.relation], pages.items[fact.object])
            for fact in graph.facts
            if fact.subject in kept and fact.object in kept
        )
    with ParquetTable(folder / "properties-00000.parquet", TABLES["properties"]) as properties:
        properties.extend(
            (number, list(graph.relations.get(relation, {}).items()))
            for relation, number in pages.numbers.items()
        )
