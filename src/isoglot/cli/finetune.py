"""`isoglot finetune`: train an encoder on a task and score it in many languages."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from isoglot.cli import app
from isoglot.cli.asking import (
    LANGUAGES,
    PROTOCOL,
    SCENARIO,
    SEEDS,
    SELECTION,
    SETTINGS,
    SOURCE,
    TRAIN_ON,
    check_tasks,
    finetuning,
    folder_of,
    results_file,
    split,
    targets_of,
)

if TYPE_CHECKING:
    from isoglot.finetune.asked import Finetuning
    from isoglot.results import Results

_EXAMPLE = """
Examples:

    isoglot finetune runs/tiny --tasks testbed-nli --protocol testbed

    isoglot finetune runs/xlm-k --tasks xnli,mlqa --data eval --protocol xlm-k

    isoglot finetune runs/ppa --tasks xnli --data eval --protocol ppa --scenario translate-train

    isoglot finetune runs/metaxlm --tasks cls-books --data eval --protocol metaxlm -s en -s de
"""


@app.command(epilog=_EXAMPLE)
def finetune(
    model: Path = typer.Argument(..., help="A Hugging Face folder, or a run (runs/NAME)."),
    tasks: str = typer.Option(
        ..., "--tasks", "-t", help="Tasks (`isoglot show tasks`), with commas: xnli,mlqa."
    ),
    data: Path = typer.Option(
        Path("eval"), "--data", "-d", help="Folder of the tasks' files (docs/evaluate.md)."
    ),
    scenario: str = SCENARIO,
    protocol: str = PROTOCOL,
    seeds: int | None = SEEDS,
    source: list[str] = SOURCE,
    languages: str = LANGUAGES,
    train_on: str | None = TRAIN_ON,
    train_languages: str = typer.Option(
        "",
        "--train-languages",
        help="Languages whose data are joined (pooled, translate-train-all): en,nl, or a paper's.",
        show_default="all",
    ),
    selection: str | None = SELECTION,
    code_switch: bool | None = typer.Option(
        None, help="Mix translated pairs with their originals.", show_default="the protocol's"
    ),
    settings: list[str] = SETTINGS,
    keep: Path | None = typer.Option(None, help="Folder to keep the fine-tuned models in."),
    predictions: Path | None = typer.Option(
        None, help="Folder to write predictions to, as official scripts read them."
    ),
    out: Path | None = typer.Option(
        None,
        "--out",
        "-o",
        help="Results file; trainings whose scores it has are not run again.",
        show_default="MODEL/results.json",
    ),
) -> None:
    """Fine-tune an encoder on tasks and score it across languages.

    Scores of every language, seed and metric go to the results file, with averages and the
    transfer gap. A protocol is a paper's set of settings.
    """
    from isoglot.cli.progress import without_bars_of_others

    without_bars_of_others()
    switched = [] if code_switch is None else [f"code_switch={str(code_switch).lower()}"]
    asked = finetuning(
        scenario,
        protocol,
        seeds=seeds,
        sources=source,
        targets=targets_of(languages),
        selection=selection,
        changes=[*settings, *switched],
    )
    joined = replace(asked.scenario, trained=targets_of(train_languages))
    asked = replace(asked, scenario=joined)
    names = split(tasks)
    check_tasks(names, data, asked, train_on)
    file = results_file(out, model)
    finetune_tasks(
        folder_of(model),
        names,
        data,
        asked,
        file,
        train_on=train_on,
        keep=keep,
        predictions=predictions,
    )


def finetune_tasks(
    folder: Path,
    names: list[str],
    data: Path,
    asked: Finetuning,
    file: Path,
    *,
    train_on: str | None = None,
    keep: Path | None = None,
    predictions: Path | None = None,
) -> None:
    """Fine-tune on tasks, write the scores into a results file and print their averages."""
    from functools import partial

    from rich.console import Console

    from isoglot.cli.progress import Stages
    from isoglot.cli.scoring import tell
    from isoglot.evaluate import FeatureSettings
    from isoglot.evaluate.run import evaluate_tasks
    from isoglot.finetune.run import finetune_and_score
    from isoglot.tasks import find_task

    train_task = None if train_on is None else find_task(train_on)
    with Stages(Console(stderr=True)) as stages:
        tuner = partial(
            finetune_and_score,
            asked=asked,
            train_task=train_task,
            keep=keep,
            write=predictions,
            progress=stages,
        )
        results = evaluate_tasks(
            folder,
            names,
            data,
            FeatureSettings(),
            out=file,
            fine_tuner=tuner,
            progress=stages,
            note=tell,
        )
    _print_averages(results, names)
    print(f"every language and seed in {file}")


def _print_averages(results: Results, names: list[str]) -> None:
    """A line for each task, scenario and metric: mean over languages, then over seeds."""
    from isoglot.cli.tables import print_table
    from isoglot.evaluate.averages import averages

    rows = []
    for average in averages(score for score in results.scores if score.task in names):
        spread = "" if average.sd is None else f" ± {100 * average.sd:.1f}"
        rows.append(
            [
                average.task,
                average.scenario or "",
                average.metric,
                f"{100 * average.mean:.1f}{spread}",
                "" if average.gap is None else f"{100 * average.gap:.1f}",
                str(len(average.languages)),
                f"{len(average.seeds)} (best: {average.best_seed})",
            ]
        )
    headings = ["task", "scenario", "metric", "average", "transfer gap", "languages", "seeds"]
    print_table(headings, rows)
