"""`isoglot demo`: an encoder adapted to a new language, from generated text, in minutes."""

from __future__ import annotations

from pathlib import Path

import typer

from isoglot.cli import app
from isoglot.cli.outputs import output_folder
from isoglot.locks import lock_folder

_FOLDERS = {False: Path("demo"), True: Path("demo-compare")}


@app.command()
def demo(
    out: Path | None = typer.Option(
        None,
        "--out",
        "-o",
        help="Folder for all files.",
        show_default="demo; with --compare demo-compare",
        callback=output_folder,
    ),
    compare: bool = typer.Option(
        False,
        "--compare",
        help="Compare objectives instead: MLM, MLM + TLM and PPA from one checkpoint.",
    ),
    seeds: int = typer.Option(
        1,
        min=1,
        max=1000,
        help="With --compare: random seeds of each objective; 3 gives the table of docs/demo.md.",
    ),
) -> None:
    """Adapt a small encoder to a new language and show it before and after.

    Trains an encoder of English and Spanish on generated text, then runs isoglot adapt with text
    and translations of Swahili. Needs no data and no network: 3 minutes on two cores (--compare: 4,
    with --seeds 3: 8). Finished work is kept; after a crash the same command continues.
    """
    from rich.console import Console

    from isoglot.cli.adapt import finish
    from isoglot.cli.console import disable_progress_bars

    if seeds > 1 and not compare:
        raise typer.BadParameter("only --compare has several seeds.", param_hint="--seeds")
    disable_progress_bars()
    folder = out or _FOLDERS[compare]
    with lock_folder(folder):
        if compare:
            from isoglot.demo.compare import run_comparison

            run_comparison(folder, Console(), seeds=tuple(range(1, seeds + 1)))
            return
        from isoglot.demo.run import run_demo

        finish(run_demo(folder, Console(stderr=True)))
