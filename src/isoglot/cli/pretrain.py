"""`isoglot pretrain`: train a recipe on a corpus."""

from __future__ import annotations

import os
from pathlib import Path

import typer

from isoglot.cli import app

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
        None, help="A prepared corpus; left out, the recipe's own (tiny: the testbed)."
    ),
    out: Path | None = typer.Option(
        None, "--out", "-o", help="Folder of the run.", show_default="runs/RECIPE"
    ),
    resume: bool = typer.Option(False, "--resume", help="Go on from the newest sound checkpoint."),
    settings: list[str] = typer.Option(
        [], "--set", help="Change a setting: path.to.it=value. May be given several times."
    ),
) -> None:
    """Pre-train an encoder and export it as a plain Hugging Face folder.

    Ctrl-C saves a checkpoint after the running step; --resume goes on as if nothing had happened.
    """
    from rich.console import Console

    from isoglot.cli.own_corpus import corpus_for
    from isoglot.cli.progress import without_bars_of_others
    from isoglot.corpus import Corpus
    from isoglot.pretrain.run import pretrain as run
    from isoglot.recipe import dump, load_recipe

    without_bars_of_others()
    loaded = load_recipe(recipe, settings)
    terminal = Console(stderr=True)
    outcome = run(
        loaded,
        Corpus.open(corpus_for(loaded, corpus, terminal)),
        out or Path("runs") / loaded.name,
        resume=resume,
        name=loaded.name,
        recipe_text=dump(loaded),
        terminal=terminal,
    )
    if os.environ.get("RANK", "0") != "0":
        return  # of several processes, one speaks
    for warning in outcome.warnings:
        terminal.print(f"[yellow]note[/]: {warning}", highlight=False, soft_wrap=True)
    if outcome.finished:
        print(f"{outcome.total_steps:,} steps, {outcome.tokens:,} tokens; model: {outcome.model}")
    else:
        print(f"stopped after step {outcome.total_steps:,}; add --resume to go on")
