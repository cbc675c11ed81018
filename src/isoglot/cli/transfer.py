"""`isoglot transfer`: source score, target scores and the gap between them, along training."""

from __future__ import annotations

from pathlib import Path

import typer

from isoglot.cli import app
from isoglot.cli.asking import (
    LANGUAGES,
    PROTOCOL,
    SCENARIO,
    SEEDS,
    SELECTION,
    SETTINGS,
    finetuning,
    split,
    targets_of,
)

_EXAMPLE = """
Examples:

    isoglot transfer runs/metaxlm runs/xlm --out losses.svg

    isoglot transfer runs/metaxlm runs/xlm --tasks mlqa --data eval --protocol metaxlm --seeds 1

    isoglot transfer x=runs/a3 x=runs/a7 --tasks xnli --against stages.0.streams.text.alpha
"""


@app.command(epilog=_EXAMPLE)
def transfer(
    runs: list[str] = typer.Argument(
        ..., metavar="RUN", help="Runs (runs/NAME), or NAME=RUN to say the name in the legend."
    ),
    tasks: str = typer.Option(
        "",
        "--tasks",
        "-t",
        help="Tasks (`isoglot show tasks`), with commas. Without it, held-out losses are drawn.",
    ),
    data: Path = typer.Option(
        Path("eval"), "--data", "-d", help="Folder of the tasks' files (docs/evaluate.md)."
    ),
    source: str = typer.Option("en", "--source", "-s", help="Language to transfer from."),
    against: str = typer.Option(
        "steps",
        help="The horizontal axis: steps, or a setting in which runs differ, by its path.",
    ),
    objective: str = typer.Option("mlm", help="Whose held-out losses to draw."),
    scenario: str = SCENARIO,
    protocol: str = PROTOCOL,
    seeds: int | None = SEEDS,
    languages: str = LANGUAGES,
    selection: str | None = SELECTION,
    settings: list[str] = SETTINGS,
    out: Path = typer.Option(Path("transfer.svg"), "--out", "-o", help="The figure, an SVG file."),
) -> None:
    """Draw what models reach in a source language, in the others, and the gap between the two.

    Against steps: of the models that a run kept along training (`export.every`), each scored on the
    tasks, or of its held-out losses. Against a setting: of the final models of runs that differ in
    it. Runs of one name are one line, repetitions its mean in a band of one standard deviation.
    Scores are kept beside each model and not made again.
    """
    from rich.console import Console

    from isoglot.cli.progress import Stages, without_bars_of_others
    from isoglot.cli.tables import print_table
    from isoglot.report import named
    from isoglot.report.transfer import draw_transfer, transfer_rows
    from isoglot.study.transfer import heldout, moments, score_moments

    without_bars_of_others()
    inputs = [named(run) for run in runs]
    if tasks:
        asked = finetuning(
            scenario,
            protocol,
            seeds=seeds,
            sources=(source,),
            targets=targets_of(languages),
            selection=selection,
            changes=settings,
        )
        with Stages(Console(stderr=True)) as stages:
            scored = score_moments(
                moments(inputs, against), split(tasks), data, asked, source=source, progress=stages
            )
    else:
        scored = [heldout(inputs, against, source=source, objective=objective)]
    for one in scored:
        print(f"{one.title}, {one.unit}")
        print_table(["", against, "source", "targets", "gap"], transfer_rows(one))
        print()
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(draw_transfer(scored, x_label=against.rpartition(".")[2]), encoding="utf-8")
    print(out)
