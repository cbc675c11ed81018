"""`isoglot finetune`: train an encoder on a task and score it in many languages."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from isoglot.cli import app

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isoglot.finetune.asked import Finetuning
    from isoglot.results import Results

_EXAMPLE = """
Examples:

    isoglot finetune runs/tiny --tasks testbed-nli --protocol testbed

    isoglot finetune runs/xlm-k --tasks xnli,mlqa --data eval --protocol xlm-k

    isoglot finetune runs/ppa --tasks xnli --data eval --protocol ppa --scenario translate-train

    isoglot finetune runs/metaxlm --tasks cls --data eval --source en --source de --source fr
"""

SCENARIO = typer.Option(
    "zero-shot",
    help="What is trained on: zero-shot, translate-train, translate-train-all, pooled, supervised.",
)
PROTOCOL = typer.Option(
    "xtreme",
    help="Whose settings: xlm-k, ernie-m-base, ernie-m-large, mlm-gc, metaxlm, ppa, xtreme, or "
    "testbed for tiny models.",
)
SEEDS = typer.Option(None, min=1, help="Trainings of each.", show_default="the protocol's")
SETTINGS = typer.Option(
    [], "--set", help="Change a setting of the protocol: epochs=2. May be given several times."
)


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
    source: list[str] = typer.Option(
        ["en"], "--source", "-s", help="Language to transfer from. Several: one training each."
    ),
    languages: str = typer.Option(
        "",
        "--languages",
        "-l",
        help="Languages to score, with commas: sw,hi; or a paper's (xnli, ppa-mlqa, conll, ...).",
        show_default="all",
    ),
    train_on: str | None = typer.Option(
        None,
        "--train-on",
        help="Task whose training data to use.",
        show_default="the task itself; mlqa, xquad: squad",
    ),
    selection: str | None = typer.Option(
        None,
        help="Which epoch's model is scored: source-dev, all-dev or last.",
        show_default="the protocol's",
    ),
    code_switch: bool | None = typer.Option(
        None, help="Mix translated pairs with their originals.", show_default="the protocol's"
    ),
    settings: list[str] = SETTINGS,
    keep: Path | None = typer.Option(None, help="Folder to keep the fine-tuned models in."),
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
    from isoglot.evaluate.run import model_folder, scored_without

    without_bars_of_others()
    changes = list(settings)
    if selection is not None:
        changes.append(f"selection={selection}")
    if code_switch is not None:
        changes.append(f"code_switch={str(code_switch).lower()}")
    asked = finetuning(
        scenario,
        protocol,
        seeds=seeds,
        sources=tuple(source),
        targets=targets_of(languages),
        changes=changes,
    )
    names = [name.strip() for name in tasks.split(",")]
    folder = model_folder(model)
    note = scored_without(folder)
    if note is not None:
        print(f"note: {note}", file=sys.stderr)
    file = out or model / "results.json"
    finetune_tasks(folder, names, data, asked, file, train_on=train_on, keep=keep)


def finetuning(
    scenario: str,
    protocol: str,
    *,
    seeds: int | None,
    sources: tuple[str, ...] = ("en",),
    targets: tuple[str, ...] | None = None,
    changes: Sequence[str] = (),
) -> Finetuning:
    """What the options of a verb ask for; faults are said here, before anything is trained."""
    from isoglot.finetune.asked import Finetuning
    from isoglot.finetune.protocols import find_protocol
    from isoglot.finetune.scenarios import ScenarioConfig

    number = seeds or find_protocol(protocol).seeds
    named: Any = scenario  # checked by the config itself
    return Finetuning(
        scenario=ScenarioConfig(name=named, sources=sources, targets=targets),
        protocol=protocol,
        changes=changed(changes),
        seeds=tuple(range(number)),
    )


def targets_of(languages: str) -> tuple[str, ...] | None:
    """Languages by code, or by the name that a paper's set of them has; none: all there are."""
    from isoglot.evaluate.averages import SUBSETS, subset

    if not languages:
        return None
    return subset(languages) if languages in SUBSETS else tuple(languages.split(","))


def changed(settings: Sequence[str]) -> dict[str, Any]:
    """The settings that `name=value` changes, checked as a recipe's are."""
    from isoglot.finetune.settings import FinetuneConfig
    from isoglot.recipe.document import Document, with_settings
    from isoglot.recipe.structure import structure

    document = with_settings(Document(data={}), settings)
    checked = structure(document, FinetuneConfig)
    return {name: getattr(checked, name) for name in document.data}


def finetune_tasks(
    folder: Path,
    names: list[str],
    data: Path,
    asked: Finetuning,
    file: Path,
    *,
    train_on: str | None = None,
    keep: Path | None = None,
) -> None:
    """Fine-tune on tasks, write the scores into a results file and print their averages."""
    from functools import partial

    from rich.console import Console

    from isoglot.cli.progress import Stages
    from isoglot.evaluate import FeatureSettings
    from isoglot.evaluate.run import evaluate_tasks
    from isoglot.finetune.run import finetune_and_score
    from isoglot.tasks import find_task

    train_task = None if train_on is None else find_task(train_on)
    with Stages(Console(stderr=True)) as stages:
        tuner = partial(
            finetune_and_score, asked=asked, train_task=train_task, keep=keep, progress=stages
        )
        results = evaluate_tasks(
            folder,
            names,
            data,
            FeatureSettings(),
            out=file,
            fine_tuner=tuner,
            selection=asked.selection(map(find_task, names)),
            progress=stages,
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
