"""`isoglot pretrain`: train a recipe on a prepared corpus."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from isoglot.cli import app
from isoglot.cli.outputs import output_folder

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console

    from isoglot.pretraining.run import Outcome

_EXAMPLE = r"""
Examples:

    isoglot pretrain tiny
    isoglot pretrain xlm --corpus corpora/mine --out runs/xlm
    isoglot pretrain xlm --corpus corpora/mine \
      --set optimizer.learning_rate=5e-5
    isoglot pretrain xlm --corpus corpora/mine --set batch.micro_rows=auto \
      --plan
    isoglot pretrain xlm --corpus corpora/mine --set batch.micro_rows=auto \
      --hours 2
    isoglot pretrain xlm --corpus s3://bucket/corpora/mine
    isoglot pretrain xlm --corpus corpora/mine --set model.size=xxl \
      --estimate --processes 8
    isoglot pretrain mine.yaml --resume
    torchrun --nproc-per-node 8 -m isoglot pretrain xlm --corpus corpora/mine
"""


@app.command(epilog=_EXAMPLE)
def pretrain(
    recipe: str = typer.Argument(..., help="A built-in recipe (`isoglot show recipes`) or a file."),
    corpus: Path | None = typer.Option(
        None,
        help="A prepared corpus: a folder, or a URL (s3://, gs://, https://, hf://datasets/).",
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
    hours: float | None = typer.Option(
        None,
        min=0.001,
        help="Time for the whole command: a few steps are timed, and the stages get the steps that "
        "fill it, in the recipe's proportions.",
        show_default="the recipe's steps",
    ),
    plan: bool = typer.Option(
        False,
        "--plan",
        help="Time a few steps, print rows that fit the memory, steps, passes over the data, "
        "hours, memory and disk, and stop.",
    ),
    estimate: bool = typer.Option(
        False,
        "--estimate",
        help="Calculate what each GPU will need: weights, gradients, moments, activations, logits; "
        "for any model and number of GPUs, also on a machine without one. Then stop.",
    ),
    processes: int | None = typer.Option(
        None,
        min=1,
        max=2**20,
        help="GPUs of the run to estimate; only with --estimate.",
        show_default="1",
    ),
) -> None:
    """Pre-train an encoder and export it as a plain Hugging Face folder.

    Ctrl-C, SIGTERM and SIGUSR1 save a checkpoint after the current step; --resume continues bit
    for bit. Exit codes: 0 finished, 75 stopped by a signal and to be resumed, 1 failed.
    """
    from rich.console import Console as TerminalConsole

    from isoglot.api import estimate as measure
    from isoglot.api import estimate_memory
    from isoglot.api import pretrain as run
    from isoglot.cli.console import disable_progress_bars, print_table
    from isoglot.errors import RecipeError
    from isoglot.pretraining.estimates.measuring import process_start
    from isoglot.pretraining.processes.interruptions import exit_at_signals
    from isoglot.pretraining.processes.liveness import STOPPED_EXIT_CODE

    disable_progress_bars()
    console = TerminalConsole(stderr=True)
    if processes is not None and not estimate:
        raise RecipeError(
            "--processes is for --estimate. To train on several GPUs: torchrun --nproc-per-node=N "
            "-m isoglot pretrain ..."
        )
    if estimate:
        needed = estimate_memory(
            recipe, corpus, settings=settings, processes=processes or 1, console=console
        )
        print_table(("", "on each GPU"), needed.rows())
        return
    if plan:
        found = measure(recipe, corpus, out, settings=settings, hours=hours, console=console)
        if os.environ.get("RANK", "0") == "0":
            print_table(("", ""), found.rows())
            _print_notes(found.notes(), console)
        return
    with exit_at_signals():
        outcome = run(
            recipe,
            corpus,
            out,
            settings=settings,
            resume=resume,
            hours=hours,
            started=process_start(),
            console=console,
        )
    if os.environ.get("RANK", "0") == "0":  # only the first process prints
        _print_outcome(outcome, console)
    if not outcome.finished:
        raise typer.Exit(STOPPED_EXIT_CODE)


def _print_outcome(outcome: Outcome, console: Console) -> None:
    _print_notes(outcome.warnings, console)
    if outcome.finished:
        steps = "1 step" if outcome.total_steps == 1 else f"{outcome.total_steps:,} steps"
        early = " (stopped early)" if outcome.stopped_early else ""
        best = f" of step {outcome.exported_step:,}"
        of_step = best if outcome.exported_step != outcome.total_steps else ""
        print(f"{steps}{early}, {outcome.tokens:,} tokens; model{of_step}: {outcome.model}")
    else:
        print(f"stopped after step {outcome.total_steps:,}; add --resume to continue")


def _print_notes(notes: Iterable[str], console: Console) -> None:
    for note in notes:
        console.print(f"[yellow]note[/]: {note}", highlight=False, soft_wrap=True)
