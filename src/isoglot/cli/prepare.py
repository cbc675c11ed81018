"""`isoglot prepare`: raw files to a prepared corpus."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from isoglot.cli import app
from isoglot.cli.tables import print_table

if TYPE_CHECKING:
    from isoglot.corpus import Manifest, Times

_INTERRUPTED = 130
"""The exit code of a command that was stopped from the keyboard."""

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
    exclude: \[eval/*.tsv]      # lines of these are dropped

Then: isoglot prepare FILE --out corpora/mine

Other formats (JSON lines, Parquet, TMX, ...) and all settings: docs/prepare.md
"""


@app.command(epilog=_EXAMPLE)
def prepare(
    file: Path = typer.Argument(..., help="The prepare file (YAML)."),
    out: Path = typer.Option(..., "--out", "-o", help="Folder of the prepared corpus."),
    workers: int = typer.Option(1, min=1, help="Processes that clean and tokenize."),
    cluster: str = typer.Option(
        "local",
        help="Where they run: `local` (this machine), `auto` (the Ray cluster it belongs to) or "
        "ray://HOST:PORT.",
    ),
    dropped: Path | None = typer.Option(
        None, help="Write every dropped line with its reason into this folder (JSON lines)."
    ),
    settings: list[str] = typer.Option(
        [], "--set", help="Change a setting: path.to.it=value. May be given several times."
    ),
) -> None:
    """Clean and tokenize raw text and translations into a corpus that training reads.

    Everything that is dropped is counted by reason. A run that was interrupted goes on where it
    stopped; running it again on finished work does nothing.
    """
    from rich.console import Console

    from isoglot.cli.progress import Stages
    from isoglot.corpus import Times
    from isoglot.corpus import prepare as run
    from isoglot.recipe import load_prepare

    config = load_prepare(file, settings)
    if dropped is not None:
        config = replace(config, dropped=str(dropped.resolve()))
    times = Times()
    terminal = Console(stderr=True)
    try:
        with Stages(terminal) as stages:
            manifest = run(
                config,
                out,
                base=file.parent,
                workers=workers,
                cluster=cluster,
                progress=stages,
                times=times,
            )
    except KeyboardInterrupt:
        terminal.print("stopped: what is finished is kept; give the command again to go on.")
        raise typer.Exit(_INTERRUPTED) from None
    show_manifest(manifest, times)
    print(f"\ncorpus: {out}")


def show_manifest(manifest: Manifest, times: Times | None = None) -> None:
    """Print what a corpus holds, what was dropped and why, and how its tokenizer fits."""
    from isoglot.report.corpus_view import contaminated, parts_of

    seconds = times.cells if times is not None else {}
    rows = []
    for part in parts_of(manifest):
        row = [part.source, part.language, f"{part.train:,}", f"{part.tokens:,}"]
        row += [f"{part.heldout:,}", f"{part.read:,}"]
        if seconds:
            spent = seconds.get(f"{part.source}/{part.language}", 0.0)
            row += [f"{spent:.1f}", f"{part.bytes / 1e6 / max(spent, 1e-3):.1f}"]
        rows.append([*row, ", ".join(f"{n:,} {reason}" for reason, n in part.dropped.items())])
    headings = ["source", "language", "for training", "tokens", "held out", "read"]
    headings += ["seconds", "MB/s"] if seconds else []
    print_table([*headings, "dropped"], rows)
    _show_tokenizer(manifest)
    if found := contaminated(manifest):
        print("\nDropped because they occur in evaluation files:\n")
        print_table(["files in", "records"], [[name, f"{n:,}"] for name, n in found.items()])
    total = manifest.total()
    print(
        f"\n{total.read:,} read from {total.lines:,} lines ({total.bytes / 1e6:,.1f} MB) = "
        f"{total.kept:,} kept ({total.heldout:,} held out) + {total.read - total.kept:,} dropped"
    )
    if times is not None and times.stages:
        told = ", ".join(f"{stage} {spent:.1f} s" for stage, spent in times.stages.items())
        clock = sum(times.stages.values())
        print(f"{told}: {clock:.1f} s, {total.bytes / 1e6 / max(clock, 1e-3):.1f} MB/s in all")


def _show_tokenizer(manifest: Manifest) -> None:
    print(f"\nThe tokenizer has {manifest.tokenizer.size:,} ids. Its fit to each language:\n")
    print_table(
        ["language", "tokens per word", "coverage", "unknown"],
        [
            [
                language,
                f"{fit.tokens_per_word:.2f}",
                f"{100 * fit.coverage:.2f} %",
                f"{100 * fit.unknown_rate:.2f} %",
            ]
            for language, fit in manifest.tokenizer.fits.items()
        ],
    )
