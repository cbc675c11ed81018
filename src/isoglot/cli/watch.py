"""`isoglot watch`: pre-training runs on the terminal, while they run."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import typer

from isoglot.cli import app

if TYPE_CHECKING:
    from rich.console import Console

    from isoglot.report.live_run import LiveRun

_EXAMPLE = """
Examples:

    isoglot watch runs/mine

    isoglot watch mlm=runs/mlm-seed1 tlm=runs/tlm-seed1

    isoglot watch /mnt/cluster/runs/mine --every 10

    isoglot watch runs/mine --once
"""
_RUNS = typer.Argument(
    ...,
    metavar="RUN",
    help="Runs (runs/NAME) or folders of isoglot adapt, also on another machine's disk; NAME=RUN "
    "sets the name.",
)
_ONCE = typer.Option(False, "--once", help="Print what there is now, and end.")
_EVERY = typer.Option(
    2.0, "--every", min=0.1, max=3600, metavar="SECONDS", help="Seconds between two looks."
)


@app.command(epilog=_EXAMPLE)
def watch(runs: list[str] = _RUNS, once: bool = _ONCE, every: float = _EVERY) -> None:
    """Watch runs: losses, held-out scores by language, speed, time left, warnings.

    It only reads the files of a run (metrics.jsonl), again and again, until all runs have ended.
    Without a terminal it prints a line for each record.
    """
    from rich.console import Console

    from isoglot.report.inputs import parse_named_run, with_distinct_names
    from isoglot.report.live_run import LiveRun
    from isoglot.report.live_view import frame

    named = with_distinct_names([parse_named_run(run) for run in runs])
    live = [LiveRun(one.name, one.folder) for one in named]
    console = Console()
    if once:
        for run in live:
            run.update()
        console.print(frame(live, console.width))
    elif console.is_terminal:
        _show(live, console, every)
    else:
        _print_lines(live, every)


def _show(runs: list[LiveRun], console: Console, every: float) -> None:
    """Draw all runs anew, until they have ended or Ctrl-C is pressed."""
    from rich.live import Live

    from isoglot.report.live_view import frame

    with Live(console=console, auto_refresh=False, transient=True) as screen:
        while True:
            for run in runs:
                run.update()
            screen.update(frame(runs, console.width), refresh=True)
            if all(run.ending() is not None for run in runs) or _interrupted(every):
                break
    console.print(frame(runs, console.width))  # whole, also where the terminal is low


def _print_lines(runs: list[LiveRun], every: float) -> None:
    """Print a line for each record, and how each run ended."""
    from isoglot.report.live_view import status

    ended: set[int] = set()
    for run in runs:
        if not run.reader.file.exists():
            _say(f"{run.name}: {status(run)}")
    while True:
        for number, run in enumerate(runs):
            told = len(run.warnings)
            run.update(_say)
            for warning in run.warnings[told:]:
                _say(f"{run.name} warning: {warning}")
            if run.ending() is None:
                ended.discard(number)
            elif number not in ended:
                ended.add(number)
                _say(f"{run.name}: {status(run)}")
        if len(ended) == len(runs) or _interrupted(every):
            return


def _say(line: str) -> None:
    print(line, flush=True)


def _interrupted(seconds: float) -> bool:
    """Wait; true if Ctrl-C was pressed, which ends a look at a run and nothing else."""
    try:
        time.sleep(seconds)
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return True
    return False
