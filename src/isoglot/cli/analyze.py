"""`isoglot analyze`: metrics of runs and transfer between languages, as SVG figures."""

from __future__ import annotations

from pathlib import Path

import typer

from isoglot.cli import app, options
from isoglot.cli.console import write_file
from isoglot.cli.outputs import output_svg
from isoglot.languages import canonical
from isoglot.report.metrics import Axis

analyze = typer.Typer(
    help="Draw metrics of runs and transfer between languages.", no_args_is_help=True
)
app.add_typer(analyze, name="analyze")


_RUNS = typer.Argument(
    ..., metavar="RUN", help="Run folders (runs/NAME), or NAME=RUN to set the name in the legend."
)
_PLOT_EXAMPLE = r"""
Examples:

    isoglot analyze plot runs/mlm runs/tlm

    isoglot analyze plot runs/mlm runs/tlm \
      --metric 'valid/mlm/mean/perplexity' --log
"""
_TRANSFER_EXAMPLE = r"""
Examples:

    isoglot analyze transfer runs/metaxlm runs/xlm --out losses.svg

    isoglot analyze transfer runs/metaxlm runs/xlm --tasks mlqa \
      --protocol metaxlm --seeds 1

    isoglot analyze transfer x=runs/a3 x=runs/a7 \
      --x-axis stages.0.streams.text.alpha
"""


@analyze.command(epilog=_PLOT_EXAMPLE)
def plot(
    runs: list[str] = _RUNS,
    metric: str | None = typer.Option(
        None,
        "--metric",
        "-m",
        help="Metric, such as 'valid/btmlm/mean/perplexity'. Without it, list all metrics.",
    ),
    out: Path = typer.Option(
        Path("figure.svg"), "--out", "-o", help="Path of the figure (SVG).", callback=output_svg
    ),
    x_axis: Axis = typer.Option("steps", help="Unit of the horizontal axis."),
    smooth: int = typer.Option(1, min=1, help="Average over windows of this many steps."),
    log: bool = typer.Option(False, "--log", help="Logarithmic vertical axis."),
    title: str = typer.Option("", help="Title of the figure."),
) -> None:
    """Plot a training or validation metric of several runs against steps or tokens.

    Runs of the same name (runs/a-seed1 runs/a-seed2, or a=RUN a=RUN) are plotted as their mean with
    a band of one standard deviation.
    """
    from isoglot.report.inputs import parse_named_run
    from isoglot.report.metrics import RunMetrics, plot_metric

    inputs = [parse_named_run(run) for run in runs]
    if metric is None:
        names = {name: None for run in inputs for name in RunMetrics(run.path).names()}
        print("\n".join(names))
        return
    figure = plot_metric(inputs, metric, x_axis=x_axis, window=smooth, log=log, title=title)
    write_file(out, figure)
    number = "1 run" if len(inputs) == 1 else f"{len(inputs)} runs"
    print(f"{metric} of {number}: {out}")


_TASKS = typer.Option(
    "",
    "--tasks",
    "-t",
    help="Tasks (`isoglot show tasks`), separated by commas. Without it, held-out losses.",
)


@analyze.command(epilog=_TRANSFER_EXAMPLE)
def transfer(
    runs: list[str] = _RUNS,
    tasks: str = _TASKS,
    data: list[Path] = options.DATA,
    source: str = typer.Option("en", "--source", "-s", help="Source language."),
    x_axis: str = typer.Option(
        "steps", help="Horizontal axis: steps, or the path of a numeric recipe setting."
    ),
    objective: str = typer.Option("mlm", help="Objective of the held-out losses."),
    scenario: str = options.SCENARIO,
    protocol: str = options.PROTOCOL,
    seeds: int | None = options.SEEDS,
    languages: str = options.LANGUAGES,
    selection: str | None = options.SELECTION,
    settings: list[str] = options.SETTINGS,
    out: Path = typer.Option(
        Path("transfer.svg"), "--out", "-o", help="Path of the figure (SVG).", callback=output_svg
    ),
) -> None:
    """Plot source score, mean target score and transfer gap (MetaXLM, Figures 1 and 5).

    Against steps: intermediate exports (`export.every_steps`) scored on tasks, or held-out losses.
    Against a setting: the final models of runs that differ in it. Runs of the same name are plotted
    as their mean with a band of one standard deviation. Scores are kept in each model's folder.
    """
    from isoglot.cli.console import StageProgress, disable_progress_bars, print_table
    from isoglot.report.inputs import parse_named_run
    from isoglot.report.transfer import plot_transfer, transfer_rows
    from isoglot.study.transfer import heldout_curves, models_to_plot, transfer_curves

    disable_progress_bars()
    inputs = [parse_named_run(run) for run in runs]
    if tasks:
        request = options.finetune_request(
            scenario,
            protocol,
            seeds=seeds,
            sources=(source,),
            targets=options.parse_languages(languages),
            selection=selection,
            changes=settings,
        )
        models = models_to_plot(inputs, x_axis)
        with StageProgress() as progress:
            curves = transfer_curves(
                models,
                options.split_names(tasks),
                tuple(data),
                request,
                source=canonical(source),
                progress=progress,
            )
    else:
        curves = [heldout_curves(inputs, x_axis, source=canonical(source), objective=objective)]
    for one in curves:
        print(f"{one.title}, {one.unit}")
        print_table(["", x_axis, "source", "targets", "gap"], transfer_rows(one))
        print()
    write_file(out, plot_transfer(curves, x_label=x_axis.rpartition(".")[2]))
    print(out)
