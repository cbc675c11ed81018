"""`isoglot pretrain`: train a recipe on a prepared corpus."""

from __future__ import annotations

import os
from pathlib import Path

import typer

from isoglot.cli import app
from isoglot.cli.outputs import output_folder

_EXAMPLE = """
Examples:

    isoglot pretrain tiny
    isoglot pretrain xlm --corpus corpora/mine --out runs/xlm
    isoglot pretrain xlm --corpus corpora/mine --set optimizer.learning_rate=5e-5
    isoglot pretrain mine.yaml --resume
    torchrun --nproc-per-node 8 -m isoglot pretrain xlm --corpus corpora/mine
"""


@app.command(epilog=_EXAMPLE)
def pretrain(
    recipe: str = typer.Argument(..., help="A built-in recipe (`isoglot show recipes`) or a file."),
    corpus: Path | None = typer.Option(
        None,
        help="A prepared corpus.",
        show_default="the recipe's own; tiny recipes generate theirs",
    ),
    out: Path | None = typer.Option(
        None,
        "--out",
        "-o",
        help="Folder of the run.",
        show_default="runs/RECIPE",
        callback=output_folder,
    ),
    resume: bool = typer.Option(
        False, "--resume", help="Continue from the newest undamaged checkpoint."
    ),
    settings: list[str] = typer.Option(
        [], "--set", help="Change a setting of the recipe: path.to.setting=value. May be repeated."
    ),
) -> None:
    """Pre-train an encoder and export it as a plain Hugging Face folder.

    Ctrl-C saves a checkpoint after the current step; --resume continues bit for bit.
    """
    from rich.console import Console

    from isoglot.api import pretrain as run
    from isoglot.cli.console import disable_progress_bars

    disable_progress_bars()
    console = Console(stderr=True)
    outcome = run(recipe, corpus, out, settings=settings, resume=resume, console=console)
    if os.environ.get("RANK", "0") != "0":
        return  # only the first process prints
    for warning in outcome.warnings:
        console.print(f"[yellow]note[/]: {warning}", highlight=False, soft_wrap=True)
    if outcome.finished:
        steps = "1 step" if outcome.total_steps == 1 else f"{outcome.total_steps:,} steps"
        print(f"{steps}, {outcome.tokens:,} tokens; model: {outcome.model}")
    else:
        print(f"stopped after step {outcome.total_steps:,}; add --resume to continue")
