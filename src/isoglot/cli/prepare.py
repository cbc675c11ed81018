"""`isoglot prepare`: raw files to a prepared corpus."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from isoglot.cli import app
from isoglot.cli.tables import print_table

if TYPE_CHECKING:
    from isoglot.corpus import Manifest

# brackets are escaped: rich would take them for markup
_EXAMPLE = r"""
A prepare file names the raw files by source and language, relative to itself:

    sources:
      news:
        kind: text             # a sentence a line, blank lines end documents
        format: lines
        files: {en: \[raw/en.txt.xz], sw: \[raw/sw/*.txt]}
      bible:
        kind: pairs            # two columns with a tab between
        format: tsv
        files: {en-sw: \[raw/en-sw.tsv]}
    tokenizer: {size: 32000}   # to train; or {folder: path/to/a/tokenizer}

Then: isoglot prepare FILE --out corpora/mine
"""


@app.command(epilog=_EXAMPLE)
def prepare(
    file: Path = typer.Argument(..., help="The prepare file (YAML)."),
    out: Path = typer.Option(..., "--out", "-o", help="Folder of the prepared corpus."),
    workers: int = typer.Option(1, help="Processes that clean and tokenize."),
    settings: list[str] = typer.Option(
        [], "--set", help="Change a setting: path.to.it=value. May be given several times."
    ),
) -> None:
    """Clean and tokenize raw text and translations into a corpus that training reads.

    Everything that is dropped is counted by reason. Running it again on finished work does nothing.
    """
    from rich.console import Console

    from isoglot.cli.progress import Stages
    from isoglot.corpus import prepare as run
    from isoglot.recipe import load_prepare

    config = load_prepare(file, settings)
    terminal = Console(stderr=True)
    with Stages(terminal) as stages:
        manifest = run(config, out, base=file.parent, workers=workers, progress=stages)
    show_manifest(manifest)
    print(f"\ncorpus: {out}")


def show_manifest(manifest: Manifest) -> None:
    """Print what a corpus holds, and what was dropped and why."""
    rows = []
    for name, source in manifest.sources.items():
        for language, splits in source.languages.items():
            reasons = sorted(source.counts[language].dropped.items())
            dropped = ", ".join(f"{number:,} {reason}" for reason, number in reasons if number)
            train, heldout = splits["train"], splits["heldout"]
            tokens = sum(train.tokens.values())
            rows.append(
                [name, language, f"{train.rows:,}", f"{tokens:,}", f"{heldout.rows:,}", dropped]
            )
    print_table(["source", "language", "for training", "tokens", "held out", "dropped"], rows)
