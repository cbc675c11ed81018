"""`isoglot demo`: from generated text to a table and a report, in minutes."""

from __future__ import annotations

from pathlib import Path

import typer

from isoglot.cli import app
from isoglot.cli.outputs import output_folder
from isoglot.locks import lock_folder


@app.command()
def demo(
    out: Path = typer.Option(
        Path("demo"), "--out", "-o", help="Folder for all files.", callback=output_folder
    ),
    seeds: int = typer.Option(
        1,
        min=1,
        max=1000,
        help="Random seeds to train each variant with; 3 gives the table of docs/demo.md.",
    ),
) -> None:
    """Train MLM, MLM + TLM and PPA on a small generated corpus and compare them across languages.

    Needs no data and no network: 4 minutes on two cores, 8 with --seeds 3. Finished runs are not
    trained again; after a crash the same command continues.
    """
    from rich.console import Console

    from isoglot.cli.console import disable_progress_bars
    from isoglot.demo.run import run_demo

    disable_progress_bars()
    with lock_folder(out):
        run_demo(out, Console(), seeds=tuple(range(1, seeds + 1)))
