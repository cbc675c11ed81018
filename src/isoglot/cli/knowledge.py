"""`isoglot knowledge`: from Wikipedia and Wikidata dumps to the knowledge of a corpus."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import typer

from isoglot.cli import app
from isoglot.errors import IsoglotError

knowledge = typer.Typer(
    help="Read Wikipedia and Wikidata dumps; link their entities, mentions and facts (XLM-K).",
    no_args_is_help=True,
)
app.add_typer(knowledge, name="knowledge")

# brackets are escaped: rich would take them for markup
_EXTRACT = r"""
A file names the dumps, relative to itself, as they are distributed:

    wikipedia:
      en: \[enwiki-latest-pages-articles-multistream.xml.bz2]
      sw: \[swwiki-latest-pages-articles.xml.bz2]
    wikidata: \[latest-all.json.bz2]

Then: isoglot knowledge extract FILE --out tables
"""
_LINK = r"""
Example:

    isoglot knowledge link tables -c corpora/mine --set languages='\[en, sw]'

Settings: languages, redirect_hops, description_tokens, mention_tokens,
relation_floor, heldout_share, heldout_seed.
"""
_WORKERS = typer.Option(1, min=1, help="Processes that work at a time.")


def _require(*names: str) -> None:
    """Say which extra is missing, before anything is read."""
    missing = [name for name in names if find_spec(name) is None]
    if missing:
        raise IsoglotError(f"This needs {' and '.join(missing)}: pip install 'isoglot[knowledge]'.")


@knowledge.command(epilog=_EXTRACT)
def extract(
    file: Path = typer.Argument(..., help="The file that names the dumps (YAML)."),
    out: Path = typer.Option(..., "--out", "-o", help="Folder of the tables."),
    workers: int = _WORKERS,
    settings: list[str] = typer.Option(
        [], "--set", help="Change a setting: path.to.it=value. May be given several times."
    ),
) -> None:
    """Read dumps into tables: pages, sentences with their links, items, sitelinks, claims.

    Nothing is unpacked to disk. Everything that is dropped is counted by reason. A run that was
    stopped goes on where it was.
    """
    from rich.console import Console

    _require("lxml")
    from isoglot.cli.knowledge_tables import show_counts
    from isoglot.cli.progress import Stages
    from isoglot.corpus.knowledge.extract import ExtractConfig
    from isoglot.corpus.knowledge.extract import extract as run
    from isoglot.recipe.document import read, with_settings
    from isoglot.recipe.structure import structure

    config = structure(with_settings(read(file), settings), ExtractConfig)
    with Stages(Console(stderr=True)) as stages:
        counts = run(config, out, base=file.parent, workers=workers, progress=stages)
    show_counts(counts)
    print(f"\ntables: {out}")


@knowledge.command(epilog=_LINK)
def link(
    tables: Path = typer.Argument(..., help="The folder that `isoglot knowledge extract` wrote."),
    corpus: Path = typer.Option(
        ..., "--corpus", "-c", help="A prepared corpus: gets the knowledge, has the tokenizer."
    ),
    workers: int = _WORKERS,
    cluster: str | None = typer.Option(
        None,
        help="Where joins run: local starts a Ray here, auto takes the one that runs here, "
        "ray://host:10001 is another's.",
        show_default="this process",
    ),
    settings: list[str] = typer.Option(
        [], "--set", help="Change a setting: relation_floor=10. May be given several times."
    ),
) -> None:
    """Join tables of dumps into entities, descriptions, mentions and triples of a corpus.

    Every page, link and claim that is not kept is counted by reason. A run that was stopped goes
    on where it was; on finished work it does nothing.
    """
    from rich.console import Console

    _require("daft", "lxml")
    from isoglot.cli.asking import changed
    from isoglot.cli.knowledge_tables import show_about
    from isoglot.cli.progress import Stages
    from isoglot.corpus.knowledge.link import LinkConfig
    from isoglot.corpus.knowledge.link import link as run

    config = LinkConfig(**changed(settings, LinkConfig))
    with Stages(Console(stderr=True)) as stages:
        about = run(config, tables, corpus, workers=workers, cluster=cluster, progress=stages)
    show_about(about)
    print(f"\nknowledge: {corpus / 'knowledge'}")
