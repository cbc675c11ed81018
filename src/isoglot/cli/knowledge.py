"""`isoglot knowledge`: Wikipedia and Wikidata dumps to the knowledge store of a corpus (XLM-K)."""

from __future__ import annotations

import json
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from isoglot.cli import app
from isoglot.cli.console import describe_counts, print_table
from isoglot.cli.options import CLUSTER
from isoglot.cli.outputs import output_folder
from isoglot.errors import IsoglotError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from isoglot.corpus.knowledge.store import Knowledge, KnowledgeManifest

knowledge = typer.Typer(
    help="Read Wikipedia and Wikidata dumps; link their entities, mentions and facts (XLM-K).",
    no_args_is_help=True,
)
app.add_typer(knowledge, name="knowledge")

# brackets are escaped: rich would take them for markup
_EXTRACT = r"""
A YAML file names the dumps, relative to itself, as they are distributed:

    wikipedia:
      en: \[enwiki-latest-pages-articles-multistream.xml.bz2]
      sw: \[swwiki-latest-pages-articles.xml.bz2]
    wikidata: \[latest-all.json.bz2]

Then: isoglot knowledge extract FILE --out tables

Settings: wikipedia, wikidata, languages, keep_all_items, check_site, slice_megabytes.
"""
_GRAPH = r"""
A YAML file names the graphs, relative to itself:

    graphs:
      zh-en: {format: dbp15k, files: \[dbp15k/zh_en], languages: \[zh, en]}
      countries: {format: countries, files: \[countries.json]}
      mine: {format: tsv, files: \[names.tsv, triples.tsv]}

Formats: tsv, wikidata, kgtk, dbp15k, countries.
Settings: languages, min_languages, max_facts, heldout_share, heldout_seed.
"""
_HELDOUT = r"""
Example:

    isoglot knowledge heldout corpora/wiki --out eval

Then:

    isoglot evaluate runs/mine --data eval \
      --tasks entity-linking,object-entailment
"""
_LINK = r"""
Example:

    isoglot knowledge link tables -c corpora/mine --set languages='\[en, sw]'

Settings: languages, max_redirects, description, max_description_tokens, max_mention_tokens,
min_relation_triples, exclude, exclude_min_bytes, heldout_share, heldout_seed.
"""
_WORKERS = typer.Option(1, min=1, max=1024, help="Number of worker processes.")

_KEPT = "finished work is kept; run the command again to continue."

_PAGE_COLUMNS = ("pages", "articles", "redirects", "disambiguations", "sentences", "links kept")
_ENTITY_COLUMNS = ("lines", "items", "sitelinks", "statements", "claims kept")
_DROPPED = {"links dropped", "claims dropped"}
_NO_REASONS = {"slices", "faults", "language", "wiki", "truncated", "links"}


@knowledge.command(epilog=_EXTRACT)
def extract(
    file: Path = typer.Argument(..., help="The file that names the dumps (YAML)."),
    out: Path = typer.Option(
        ..., "--out", "-o", help="Folder of the tables.", callback=output_folder
    ),
    workers: int = _WORKERS,
    cluster: str = CLUSTER,
    settings: list[str] = typer.Option(
        [], "--set", help="Change a setting: path.to.setting=value. May be repeated."
    ),
) -> None:
    """Read dumps into tables: pages, sentences with their links, items, sitelinks, claims.

    Nothing is decompressed to disk. Everything dropped is counted by reason. An interrupted run is
    resumed.
    """
    _require("lxml")
    from isoglot.cli.console import StageProgress, ctrl_c_says
    from isoglot.cli.options import print_note
    from isoglot.corpus.knowledge.extract import ExtractConfig
    from isoglot.corpus.knowledge.extract import extract as run
    from isoglot.recipe.document import read, with_settings
    from isoglot.recipe.structure import structure

    config = structure(with_settings(read(file), settings), ExtractConfig)
    before = _tables_in(out)
    with ctrl_c_says(_KEPT), StageProgress() as stages:
        counts = run(
            config, out, base=file.parent, workers=workers, cluster=cluster, progress=stages
        )
    if removed := [name for name in before if name not in _tables_in(out)]:
        print_note(
            f"{out} had tables of {', '.join(removed)} too, which {file} does not name: they are "
            "removed. Give other dumps another --out."
        )
    _print_extracted(counts)
    print(f"\ntables: {out}")


@knowledge.command(epilog=_GRAPH)
def graph(
    file: Path = typer.Argument(..., help="The file that names the graphs (YAML)."),
    out: Path = typer.Option(
        ..., "--out", "-o", help="Folder of the tables.", callback=output_folder
    ),
    settings: list[str] = typer.Option(
        [], "--set", help="Change a setting: path.to.setting=value. May be repeated."
    ),
) -> None:
    """Read knowledge graphs into the same tables: entities with names in several languages, facts.

    For knowledge without dumps: an entity's page is its name, its description and its facts.
    """
    from isoglot.corpus.knowledge.graph.write_tables import GraphConfig, write_graph_tables
    from isoglot.recipe.document import read, with_settings
    from isoglot.recipe.structure import structure

    config = structure(with_settings(read(file), settings), GraphConfig)
    counts = write_graph_tables(config, out, base=file.parent)
    languages: dict[str, dict[str, int]] = counts["languages"]
    print_table(
        ["language", "pages", "sentences", "links"],
        [
            [code, *(f"{found.get(name, 0):,}" for name in ("pages", "sentences", "links"))]
            for code, found in languages.items()
        ],
    )
    told = {name: value for name, value in counts.items() if isinstance(value, int) and value}
    print(f"\n{describe_counts(told)}")
    if counts["dropped"]:
        print(f"dropped: {describe_counts(counts['dropped'])}")
    print(f"\ntables: {out}")


@knowledge.command(epilog=_LINK)
def link(
    tables: Path = typer.Argument(
        ..., help="The output folder of `isoglot knowledge extract` or `graph`."
    ),
    corpus: Path = typer.Option(
        ..., "--corpus", "-c", help="A prepared corpus: gives the tokenizer, gets the store."
    ),
    workers: int = _WORKERS,
    cluster: str = CLUSTER,
    settings: list[str] = typer.Option(
        [], "--set", help="Change a setting: min_relation_triples=10. May be repeated."
    ),
) -> None:
    """Join tables of dumps into the entities, descriptions, mentions and triples of a corpus.

    Every dropped page, link and claim is counted by reason. An interrupted run is resumed; a
    finished store is reused.
    """
    _require("daft", "lxml")
    from isoglot.cli.console import StageProgress, ctrl_c_says
    from isoglot.cli.options import parse_settings, print_note
    from isoglot.corpus.knowledge.link.config import LinkConfig
    from isoglot.corpus.knowledge.link.run import link as run
    from isoglot.folders import corpus_folder

    corpus = corpus_folder(corpus)
    config = LinkConfig(**parse_settings(settings, LinkConfig))
    with ctrl_c_says(_KEPT), StageProgress() as stages:
        manifest = run(config, tables, corpus, workers=workers, cluster=cluster, progress=stages)
    _print_linked(manifest)
    for note in _link_notes(manifest):
        print_note(note)
    print(f"\nknowledge: {corpus / 'knowledge'}")


@knowledge.command(epilog=_HELDOUT)
def heldout(
    corpus: str = typer.Argument(..., help="A corpus with knowledge."),
    out: Path = typer.Option(
        ..., "--out", "-o", help="Folder of the tasks' files.", callback=output_folder
    ),
    max_examples: int = typer.Option(1000, min=1, help="Most queries of a pair of languages."),
    candidates: int = typer.Option(1000, min=1, help="Fewest candidates, if there are as many."),
) -> None:
    """Write held-out mentions and facts as files of the tasks entity-linking, object-entailment.

    A query is in one language, the candidates are descriptions in another.
    """
    from isoglot.cli.options import print_note
    from isoglot.corpus import Corpus
    from isoglot.corpus.knowledge.heldout_files import write_heldout_files

    counts = write_heldout_files(
        Corpus.open(corpus), out, max_examples=max_examples, candidates=candidates
    )
    pairs = sorted({pair for found in counts.values() for pair in found})
    rows = [[pair, *(f"{found.get(pair, 0):,}" for found in counts.values())] for pair in pairs]
    print_table(["languages", *counts], rows)
    others = [
        str(file.relative_to(out))
        for task, found in counts.items()
        for file in sorted((out / task).glob("*.jsonl"))
        if file.stem not in found
    ]
    if others:
        print_note(
            f"{out} has files of an earlier call too, which evaluate scores as well: "
            f"{', '.join(others)}. Remove them, or give another --out."
        )
    print(f"\ntasks: {out}")


def show_knowledge(knowledge: Knowledge, *, alphas: Sequence[float]) -> None:
    """Print the content of a knowledge store, by language."""
    import numpy as np

    from isoglot.batching.language_shares import smoothed_shares

    _print_linked(knowledge.manifest)
    counts = knowledge.manifest.counts
    mentions = np.array([count.mentions["train"] for count in counts.values()], np.float64)
    probabilities = np.zeros((len(mentions), len(alphas)))
    if mentions.any():
        for column, alpha in enumerate(alphas):
            probabilities[mentions > 0, column] = smoothed_shares(mentions[mentions > 0], alpha)
    print("\nCoverage of the entities by language, and sampling probability of its mentions:\n")
    headings = ["language", "entities described", "text tokens per mention"]
    rows = []
    for (language, count), shares in zip(counts.items(), probabilities, strict=True):
        number = sum(count.mentions.values())
        per_mention = f"{sum(count.sentence_tokens.values()) / number:.0f}" if number else "-"
        described = f"{100 * count.descriptions / max(knowledge.manifest.entities, 1):.1f} %"
        drawn = [f"{100 * share:.1f} %" for share in shares]
        rows.append([language, described, per_mention, *drawn])
    print_table([*headings, *(f"alpha = {alpha:g}" for alpha in alphas)], rows)
    languages = np.diff(knowledge.described.first["first"])
    if len(languages):
        print(
            f"\nentities described in 2 languages or more: {100 * (languages > 1).mean():.1f} % "
            f"(in {languages.mean():.1f} on average, in {languages.max()} at most)"
        )


def _tables_in(out: Path) -> list[str]:
    """The languages of finished tables, and `Wikidata` where it is among them."""
    try:
        settings = json.loads((out / "counts.json").read_bytes())["settings"]
        return [*settings["wikipedia"], *(["Wikidata"] if settings["wikidata"] else [])]
    except (OSError, ValueError, KeyError, TypeError):  # none, or those of knowledge graphs
        return []


def _require(*names: str) -> None:
    """Name the missing extra before anything is read."""
    missing = [name for name in names if find_spec(name) is None]
    if missing:
        raise IsoglotError(f"This needs {' and '.join(missing)}: pip install 'isoglot[knowledge]'.")


def _print_extracted(counts: Mapping[str, Any]) -> None:
    """Print the counts of every dump file."""
    files: dict[str, dict[str, Any]] = counts["files"]
    wikis = {name: entry for name, entry in files.items() if "language" in entry}
    others = {name: entry for name, entry in files.items() if name not in wikis}
    for columns, entries in ((_PAGE_COLUMNS, wikis), (_ENTITY_COLUMNS, others)):
        if entries:
            rows = []
            for name, entry in entries.items():
                numbers = [f"{entry.get(column, 0):,}" for column in columns]
                rows.append([Path(name).name, *numbers, _dropped(entry, columns)])
            print_table(["dump", *columns, "dropped"], rows)
    for name, entry in files.items():
        if entry.get("truncated"):
            print(f"{name}: is cut off; it was not fetched completely.")
        for fault in entry["faults"][:3]:
            print(f"{name}: byte {fault['byte']:,}: {fault['fault']}")


def _print_linked(manifest: KnowledgeManifest) -> None:
    """Print the counts of a store, kept and dropped."""
    print_table(
        ["language", "descriptions", "mentions", "held out", "links dropped", "pages dropped"],
        [
            [
                language,
                f"{counts.descriptions:,}",
                f"{counts.mentions['train']:,}",
                f"{counts.mentions['heldout']:,}",
                describe_counts(manifest.dropped.get(f"mentions/{language}", {})),
                describe_counts(manifest.dropped.get(f"descriptions/{language}", {})),
            ]
            for language, counts in manifest.counts.items()
        ],
    )
    triples = manifest.triples
    print(
        f"\n{manifest.entities:,} entities; {sum(triples.values()):,} triples "
        f"({triples['heldout']:,} held out) of {manifest.relations:,} relations"
    )
    if manifest.dropped.get("triples"):
        print(f"claims dropped: {describe_counts(manifest.dropped['triples'])}")


_MOST = 0.5
"""Share of links that are dropped for one cause from which on `link` names it."""


def _link_notes(manifest: KnowledgeManifest) -> list[str]:
    """Sentences about dumps that do not belong together, from the counts of dropped links."""
    dropped = Counter[str]()
    for table, reasons in manifest.dropped.items():
        dropped.update(reasons if table.startswith("mentions/") else {})
    kept = sum(sum(counts.mentions.values()) for counts in manifest.counts.values())
    total = max(kept + dropped.total(), 1)
    found = []
    unknown = dropped["red link"] + dropped["no sitelink"]
    if unknown > _MOST * total:
        found.append(
            f"{100 * unknown / total:.0f} % of the links lead to no item of Wikidata (red link, no "
            "sitelink). Its dump may be a part, much older than the Wikipedias', or extracted for "
            "other languages."
        )
    if dropped["no description"] > _MOST * total:
        found.append(
            f"{100 * dropped['no description'] / total:.0f} % of the links lead to pages that are "
            "in none of the dumps (no description). Name the other parts of the dumps too."
        )
    if not sum(manifest.triples.values()):
        found.append(
            "No fact is kept, as no claim has a subject and an object that are both described: the "
            "objective entailment, and with it xlm-k, cannot be trained."
        )
    return found


def _dropped(entry: Mapping[str, Any], columns: tuple[str, ...]) -> str:
    found = []
    for name, value in entry.items():
        if name in _DROPPED:
            found.append(describe_counts(value))
        elif name not in columns and name not in _NO_REASONS and value:
            found.append(describe_counts({name: value}))
    return ", ".join(filter(None, found))
