"""`isoglot finetune`: train an encoder on a task and score it in many languages."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

import typer

from isoglot.cli import app, options
from isoglot.cli.fetch import fetch_missing
from isoglot.cli.outputs import output_file_or_folder, output_folder

if TYPE_CHECKING:
    from collections.abc import Iterable

    from isoglot.averaging import Average
    from isoglot.finetuning.settings import FinetuneRequest
    from isoglot.results import Results, Score
    from isoglot.tasks.base import DataFolders

_EXAMPLE = r"""
Examples:

    isoglot finetune runs/tiny --tasks testbed-nli --protocol testbed

    isoglot finetune runs/xlm-k --tasks xnli,mlqa --data eval --protocol xlm-k

    isoglot finetune runs/ppa --tasks xnli --data eval --protocol ppa \
      --scenario translate-train

    isoglot finetune runs/metaxlm --tasks cls-books --data eval \
      --protocol metaxlm -s en -s de
"""
_TRAIN_LANGUAGES = typer.Option(
    "",
    "--train-languages",
    help="Training languages of the scenarios that join several: en,nl, or a paper's set.",
    show_default="all",
)
_OUT = typer.Option(
    None,
    "--out",
    "-o",
    help="Results file (.json), or a folder for results.json; trainings whose scores it has, of "
    "the same data and weights, are skipped.",
    callback=output_file_or_folder,
    show_default="the run, or results/NAME",
)


_CODE_SWITCH = typer.Option(
    None, help="Train on pairs with one side translated (PPA).", show_default="the protocol's"
)


@app.command(epilog=_EXAMPLE)
def finetune(
    model: Path = options.MODEL,
    tasks: str = options.TASKS,
    data: list[Path] = options.DATA,
    fetch: bool = options.FETCH,
    scenario: str = options.SCENARIO,
    protocol: str = options.PROTOCOL,
    seeds: int | None = options.SEEDS,
    source: list[str] = options.SOURCE,
    languages: str = options.LANGUAGES,
    train_on: str | None = options.TRAIN_ON,
    train_languages: str = _TRAIN_LANGUAGES,
    selection: str | None = options.SELECTION,
    code_switch: bool | None = _CODE_SWITCH,
    settings: list[str] = options.SETTINGS,
    save_models: Path | None = typer.Option(
        None, help="Folder for the fine-tuned models.", callback=output_folder
    ),
    save_predictions: Path | None = typer.Option(
        None,
        help="Folder for predictions, in the formats of the official scripts.",
        callback=output_folder,
    ),
    out: Path | None = _OUT,
) -> None:
    """Fine-tune an encoder on tasks and score it across languages.

    Scores of every language, seed and metric go to the results file, with averages and the
    transfer gap. A protocol is the set of hyperparameters of a paper.
    """
    from isoglot.cli.console import disable_progress_bars

    disable_progress_bars()
    code_switching = [] if code_switch is None else [f"code_switch={str(code_switch).lower()}"]
    request = options.finetune_request(
        scenario,
        protocol,
        seeds=seeds,
        sources=source,
        targets=options.parse_languages(languages),
        train_languages=options.parse_languages(train_languages),
        selection=selection,
        changes=[*settings, *code_switching],
    )
    names = options.split_names(tasks)
    folders = tuple(data)
    if fetch:
        fetch_missing(names, data, request.scenario.targets, source, train_on)
    options.check_tasks(names, folders, request, train_on)
    options.tell_absent(languages, names, folders)
    file = options.results_file(out, model)
    finetune_and_print(
        options.resolve_model(
            model, language_embeddings=request.changes.get("language_embeddings", True)
        ),
        names,
        folders,
        request,
        file,
        train_on=train_on,
        save_models=save_models,
        save_predictions=save_predictions,
    )


def finetune_and_print(
    folder: Path,
    names: list[str],
    data: DataFolders,
    request: FinetuneRequest,
    file: Path,
    *,
    train_on: str | None = None,
    save_models: Path | None = None,
    save_predictions: Path | None = None,
) -> None:
    """Fine-tune on tasks with a progress bar and print the averages of their scores."""
    from isoglot.cli.console import StageProgress, ctrl_c_says
    from isoglot.finetuning.finetune import finetune_tasks

    kept = (
        f"scores of finished trainings are in {file}; the same command continues with the others."
    )
    with ctrl_c_says(kept), StageProgress() as progress:
        results = finetune_tasks(
            folder,
            names,
            data,
            request,
            out=file,
            train_on=train_on,
            save_models=save_models,
            save_predictions=save_predictions,
            progress=progress,
            note=options.print_note,
        )
    _print_averages(results, names)
    print(f"scores of every language and seed: {file}")


def _print_averages(results: Results, names: list[str]) -> None:
    """One line for each task, scenario and metric: mean over languages, then over seeds."""
    from isoglot.averaging import averages
    from isoglot.cli.console import print_table
    from isoglot.tasks import find_task

    metrics = {task.name: {one.name for one in task.metrics} for task in map(find_task, names)}
    shown = [score for score in results.scores if score.metric in metrics.get(score.task, ())]
    rows = []
    for average in averages(shown):
        sd = "" if average.sd is None else f" ± {100 * average.sd:.1f}"
        rows.append(
            [
                average.task,
                average.scenario or "",
                average.metric,
                f"{100 * average.mean:.1f}{sd}",
                _interval(average),
                _chance(average, shown),
                "" if average.gap is None else f"{100 * average.gap:.1f}",
                str(len(average.languages)),
                "1" if average.sd is None else f"{len(average.seeds)} (best: {average.best_seed})",
            ]
        )
    headings = [
        *("task", "scenario", "metric", "average", "95 %", "chance", "transfer gap"),
        *("languages", "seeds"),
    ]
    print_table(headings, rows)
    first = {task.name: task.metrics[0].name for task in map(find_task, names)}
    by_language: dict[tuple[str, str | None], dict[str, list[float]]] = {}
    for score in shown:
        if score.metric == first[score.task]:
            values = by_language.setdefault((score.task, score.scenario), {})
            values.setdefault(score.language, []).append(score.value)
    for (task, scenario), values in by_language.items():
        listed = ", ".join(f"{code} {100 * fmean(of):.1f}" for code, of in values.items())
        print(f"{task} {scenario or ''}: {first[task]} {listed}")


def _interval(average: Average) -> str:
    """The interval over examples; empty where it is unknown."""
    if average.interval is None:
        return ""
    low, high = average.interval
    return f"{100 * low:.1f} to {100 * high:.1f}"


def _chance(average: Average, scores: Iterable[Score]) -> str:
    """The mean share of each language's most frequent answer; empty where it is unknown."""
    found = [
        score.chance
        for score in scores
        if score.chance is not None
        and score.language in average.languages
        and (score.task, score.version, score.scenario, score.metric)
        == (average.task, average.version, average.scenario, average.metric)
    ]
    return f"{100 * fmean(found):.1f}" if found else ""
