"""`isoglot demo`: see it work, from generated text to a table, in minutes."""

from __future__ import annotations

from pathlib import Path

import typer

from isoglot.cli import app


@app.command()
def demo(
    out: Path = typer.Option(Path("demo"), "--out", "-o", help="Folder for everything it makes."),
    seeds: int = typer.Option(3, min=1, help="Seeds to train each variant with."),
) -> None:
    """Train MLM, MLM + TLM and PPA on a small generated world and compare them across languages.

    Needs no data and no network; minutes on two cores. Runs that are finished are not run again.
    """
    from rich.console import Console

    from isoglot.cli.progress import without_bars_of_others
    from isoglot.demo import demo as run

    without_bars_of_others()
    run(out, Console(), seeds=tuple(range(1, seeds + 1)))
