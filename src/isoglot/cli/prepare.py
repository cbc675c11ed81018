"""`isoglot prepare`: raw files to a prepared corpus."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from isoglot.cli import app
from isoglot.cli.console import describe_counts, print_table
from isoglot.cli.options import CLUSTER
from isoglot.cli.outputs import output_folder

if TYPE_CHECKING:
    from isoglot.corpus import Manifest
    from isoglot.corpus.engine.runner import Timings

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
    tokenizer: {vocab_size: 32000}   # to train; or {folder: an/encoder}
    exclude: \[eval/*.tsv]      # lines of these are dropped

Then: isoglot prepare FILE --out corpora/mine

Other formats (JSON lines, Parquet, TMX, ...) and all settings: docs/prepare.md
"""


@app.command(epilog=_EXAMPLE)
def prepare(
    file: Path = typer.Argument(..., help="The prepare file (YAML)."),
    out: Path = typer.Option(
        ...,
        "--out",
        "-o",
        help="Folder of the prepared corpus, or a URL (s3://...) that it is copied to.",
        callback=output_folder,
    ),
    workers: int = typer.Option(1, min=1, max=1024, help="Processes that clean and tokenize."),
    cluster: str = CLUSTER,
    dropped: Path | None = typer.Option(
        None,
        help="Write every dropped line with its reason into this folder (JSON lines).",
        callback=output_folder,
    ),
    overwrite: bool = typer.Option(
        False, "--overwrite", help="Replace a finished corpus of other settings or files."
    ),
    settings: list[str] = typer.Option(
        [], "--set", help="Change a setting: path.to.setting=value. May be repeated."
    ),
) -> None:
    """Clean and tokenize raw text and translations into a corpus that training reads.

    Dropped lines are counted by reason. An interrupted run continues where it stopped; running it
    again on a finished corpus does nothing. A finished corpus of other settings or files is
    refused, with the differences.
    """
    from rich.console import Console

    from isoglot.cli.console import StageProgress
    from isoglot.corpus.engine.runner import Timings
    from isoglot.corpus.pipeline.run import prepare as run
    from isoglot.recipe import load_prepare
    from isoglot.remote.upload import outgoing_folder, upload_corpus
    from isoglot.remote.urls import as_url

    config = load_prepare(file, settings)
    if dropped is not None:
        config = replace(config, dropped_folder=str(dropped.resolve()))
    url = as_url(out)
    out = out if url is None else outgoing_folder(url)
    timings = Timings()
    console = Console(stderr=True)
    try:
        with StageProgress(console) as stages:
            manifest = run(
                config,
                out,
                base=file.parent,
                workers=workers,
                cluster=cluster,
                progress=stages,
                timings=timings,
                overwrite=overwrite,
            )
            if url is not None:
                upload_corpus(out, url, lambda done, total: stages("copy", done, total))
    except KeyboardInterrupt:
        console.print("stopped: finished work is kept; run the command again to continue.")
        raise typer.Exit(_INTERRUPTED) from None
    show_manifest(manifest, timings)
    print(f"\ncorpus: {url or out}")


_LOOKING = {"hash files"}
"""Stages that only see whether a corpus is up to date."""


def show_manifest(manifest: Manifest, timings: Timings | None = None) -> None:
    """Print the counts of a corpus: kept and dropped lines, and the statistics of its tokenizer."""
    from isoglot.report.corpus_notes import corpus_notes
    from isoglot.report.corpus_stats import contaminated_records, corpus_parts

    seconds = timings.folders if timings is not None else {}
    rows = []
    for part in corpus_parts(manifest):
        row = [part.source, part.language, f"{part.train:,}", f"{part.tokens:,}"]
        row += [f"{part.heldout:,}", f"{part.read:,}"]
        if seconds:
            spent = seconds.get(f"{part.source}/{part.language}", 0.0)
            row += [f"{spent:.1f}", f"{part.bytes / 1e6 / max(spent, 1e-3):.1f}"]
        rows.append([*row, describe_counts(part.dropped)])
    headings = ["source", "language", "for training", "tokens", "held out", "read"]
    headings += ["seconds", "MB/s"] if seconds else []
    print_table([*headings, "dropped"], rows)
    print(f"\nThe tokenizer has {manifest.tokenizer.size:,} ids. By language:\n")
    rows = []
    for language, stats in manifest.tokenizer.statistics.items():
        shares = [f"{100 * share:.2f} %" for share in (stats.coverage, stats.unknown_rate)]
        rows.append([language, f"{stats.tokens_per_word:.2f}", *shares])
    print_table(["language", "tokens per word", "coverage", "unknown"], rows)
    if found := contaminated_records(manifest):
        print("\nDropped because they occur in evaluation files:\n")
        print_table(["files in", "records"], [[name, f"{n:,}"] for name, n in found.items()])
    total = manifest.total()
    print(
        f"\n{total.read:,} read from {total.lines:,} lines ({total.bytes / 1e6:,.1f} MB) = "
        f"{total.kept:,} kept ({total.heldout:,} held out) + {total.read - total.kept:,} dropped"
    )
    for note in corpus_notes(manifest):
        print(f"note: {note}")
    if timings is not None and set(timings.stages) <= _LOOKING:
        print("Files and settings have not changed: nothing was left to do.")
    elif timings is not None:
        told = ", ".join(f"{stage} {spent:.1f} s" for stage, spent in timings.stages.items())
        clock = sum(timings.stages.values())
        print(f"{told}: {clock:.1f} s, {total.bytes / 1e6 / max(clock, 1e-3):.1f} MB/s in all")
