"""`isoglot draw`: a metric of several runs as a figure."""

from __future__ import annotations

from pathlib import Path

import typer

from isoglot.cli import app
from isoglot.report.metrics import Axis


@app.command()
def draw(
    runs: list[str] = typer.Argument(
        ..., metavar="RUN", help="Runs (runs/NAME), or NAME=RUN to say the name in the legend."
    ),
    metric: str | None = typer.Option(
        None,
        "--metric",
        "-m",
        help="What to draw, such as 'valid/btmlm/mean perplexity'. Without it, list what there is.",
    ),
    out: Path = typer.Option(Path("figure.svg"), "--out", "-o", help="The figure, an SVG file."),
    against: Axis = typer.Option("steps", help="What the horizontal axis counts."),
    smooth: int = typer.Option(1, min=1, help="Draw the mean of every so many steps."),
    log: bool = typer.Option(False, "--log", help="A logarithmic vertical axis."),
    title: str = typer.Option("", help="Above the figure."),
) -> None:
    """Draw a metric of several runs against steps or tokens.

    Runs of one name (runs/a-seed1 runs/a-seed2, or a=RUN a=RUN) are drawn as their mean, in a band
    of one standard deviation.
    """
    from isoglot.report import draw_curves, named
    from isoglot.report.metrics import Metrics

    inputs = [named(run) for run in runs]
    if metric is None:
        names = {name: None for run in inputs for name in Metrics(run.path).names()}
        print("\n".join(names))
        return
    figure = draw_curves(inputs, metric, against=against, smooth=smooth, log=log, title=title)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(figure, encoding="utf-8")
    print(f"{metric} of {len(inputs)} runs: {out}")
