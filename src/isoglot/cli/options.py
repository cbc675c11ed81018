"""Options that several commands share, and the functions that parse their values."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isoglot.finetuning.settings import FinetuneRequest

MODEL = typer.Argument(..., help="A Hugging Face folder, or a run (runs/NAME).")
TASKS = typer.Option(
    ...,
    "--tasks",
    "-t",
    help="Tasks (`isoglot show tasks`), separated by commas: xnli,mlqa. Your own by import path.",
)
DATA = typer.Option(
    Path("eval"), "--data", "-d", help="Folder of the tasks' files (docs/tasks.md)."
)
SCENARIO = typer.Option(
    "zero-shot",
    help="Training data: zero-shot, translate-train, pooled, supervised or translate-train-all",
)
PROTOCOL = typer.Option(
    "xtreme",
    help="Paper whose fine-tuning settings to use: xlm-k, ernie-m-base, ernie-m-large, mlm-gc, "
    "metaxlm, ppa, xtreme; or testbed, for tiny models.",
)
SEEDS = typer.Option(
    None, min=1, metavar="N", help="Number of random seeds.", show_default="the protocol's"
)
SOURCE = typer.Option(
    ["en"],
    "--source",
    "-s",
    metavar="CODE",
    help="Source language. May be repeated: one training for each.",
)
TRAIN_ON = typer.Option(
    None,
    "--train-on",
    help="Task to take the training data from.",
    show_default="the task itself; mlqa, xquad: squad; xcopa: copa; esxnli: xnli",
)
SELECTION = typer.Option(
    None,
    help="How the scored epoch is chosen: source-dev, all-dev or last.",
    show_default="the protocol's",
)
SETTINGS = typer.Option(
    [],
    "--set",
    metavar="K=V",
    help="Change a setting of the protocol, such as epochs=2. May be repeated.",
)
LANGUAGES = typer.Option(
    "",
    "--languages",
    "-l",
    help="Score only these languages, separated by commas (sw,hi), or a paper's set (xnli, ...).",
    show_default="all",
)


def resolve_model(model: Path) -> Path:
    """The Hugging Face folder of a run or a model; prints a note on what cannot be scored."""
    from isoglot.evaluation.loading import scoring_note
    from isoglot.model_results import model_folder

    folder = model_folder(model)
    note = scoring_note(folder)
    if note is not None:
        print_note(note)
    return folder


def print_note(note: str) -> None:
    """Print a note on standard error."""
    print(f"note: {note}", file=sys.stderr)


def results_file(out: Path | None, model: Path) -> Path:
    """The results file: `out`, results.json in the folder `out`, or results.json of the model."""
    file = model / "results.json" if out is None else out
    file = file / "results.json" if file.is_dir() else file
    there = next(place for place in (file, *file.absolute().parents) if place.exists())
    if not os.access(there, os.W_OK):
        raise typer.BadParameter(
            f"{file} cannot be written. Name another file.", param_hint="--out"
        )
    return file


def finetune_request(
    scenario: str,
    protocol: str,
    *,
    seeds: int | None,
    sources: Sequence[str] = ("en",),
    targets: tuple[str, ...] | None = None,
    train_languages: tuple[str, ...] | None = None,
    selection: str | None = None,
    changes: Sequence[str] = (),
) -> FinetuneRequest:
    """The fine-tuning request of a command's options, checked before anything is trained."""
    from isoglot.finetuning.protocols import build_request
    from isoglot.finetuning.settings import FinetuneConfig

    named: Any = scenario  # ScenarioConfig checks it
    selected = [] if selection is None else [f"selection={selection}"]
    settings = parse_settings([*changes, *selected], FinetuneConfig)
    return build_request(named, sources, targets, train_languages, protocol, settings, seeds)


def parse_languages(languages: str) -> tuple[str, ...] | None:
    """Language codes of `--languages`, sets of papers expanded; None for all languages."""
    from isoglot.tasks.language_sets import expand_languages

    return expand_languages(split_names(languages)) if languages else None


def split_names(names: str) -> list[str]:
    """Split a list of names at its commas; at least one name must be left."""
    found = [name.strip() for name in names.split(",") if name.strip()]
    if not found:
        raise typer.BadParameter(f"{names!r} contains no name.")
    return found


def parse_settings(settings: Sequence[str], kind: type[Any]) -> dict[str, Any]:
    """The values of `--set name=value`, checked against a settings class as a recipe's are."""
    from isoglot.recipe.document import Document, with_settings
    from isoglot.recipe.structure import structure

    document = with_settings(Document(data={}), settings)
    checked = structure(document, kind)
    return {name: getattr(checked, name) for name in document.data}


def check_tasks(
    names: Sequence[str], data: Path, request: FinetuneRequest, train_on: str | None = None
) -> None:
    """Check the data and the request of all fine-tuned tasks before the first one is trained."""
    from isoglot.finetuning.plan import FinetunePlan
    from isoglot.tasks import find_task

    train_task = None if train_on is None else find_task(train_on)
    for name in names:
        FinetunePlan(find_task(name), data, request, train_task)
