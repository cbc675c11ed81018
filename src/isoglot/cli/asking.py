"""Options that the verbs of fine-tuning and scoring share, and what they ask for."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from isoglot.finetune.asked import Finetuning

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
SOURCE = typer.Option(
    ["en"], "--source", "-s", help="Language to transfer from. Several: one training each."
)
TRAIN_ON = typer.Option(
    None,
    "--train-on",
    help="Task whose training data to use.",
    show_default="the task itself; mlqa, xquad: squad; xcopa: copa",
)
SELECTION = typer.Option(
    None,
    help="Which epoch's model is scored: source-dev, all-dev or last.",
    show_default="the protocol's",
)
SETTINGS = typer.Option(
    [], "--set", help="Change a setting of the protocol: epochs=2. May be given several times."
)
LANGUAGES = typer.Option(
    "",
    "--languages",
    "-l",
    help="Only these languages, with commas: sw,hi; or a paper's (xnli, ppa-mlqa, conll, ...).",
    show_default="all",
)


def folder_of(model: Path) -> Path:
    """The Hugging Face folder that a path means; what it is scored without is said."""
    from isoglot.evaluate.run import model_folder, scored_without

    folder = model_folder(model)
    note = scored_without(folder)
    if note is not None:
        print(f"note: {note}", file=sys.stderr)
    return folder


def results_file(out: Path | None, model: Path) -> Path:
    """Where results go: a file, or results.json in a folder; none: beside the model."""
    file = model / "results.json" if out is None else out
    file = file / "results.json" if file.is_dir() else file
    there = next(place for place in (file, *file.absolute().parents) if place.exists())
    if not os.access(there, os.W_OK):
        raise typer.BadParameter(
            f"{file} cannot be written. Name another file.", param_hint="--out"
        )
    return file


def finetuning(
    scenario: str,
    protocol: str,
    *,
    seeds: int | None,
    sources: Sequence[str] = ("en",),
    targets: tuple[str, ...] | None = None,
    selection: str | None = None,
    changes: Sequence[str] = (),
) -> Finetuning:
    """What the options of a verb ask for; faults are said here, before anything is trained."""
    from isoglot.finetune.asked import Finetuning
    from isoglot.finetune.protocols import find_protocol
    from isoglot.finetune.scenarios import ScenarioConfig
    from isoglot.finetune.settings import FinetuneConfig

    number = seeds or find_protocol(protocol).seeds
    named: Any = scenario  # checked by the config itself
    chosen = [] if selection is None else [f"selection={selection}"]
    return Finetuning(
        scenario=ScenarioConfig(name=named, sources=tuple(sources), targets=targets),
        protocol=protocol,
        changes=changed([*changes, *chosen], FinetuneConfig),
        seeds=tuple(range(number)),
    )


def targets_of(languages: str) -> tuple[str, ...] | None:
    """Languages by code, or by the name that a paper's set of them has; none: all there are."""
    from isoglot.tasks.subsets import codes_of

    return codes_of(split(languages)) if languages else None


def split(names: str) -> list[str]:
    """Names with commas between them, or after them; at least one."""
    found = [name.strip() for name in names.split(",") if name.strip()]
    if not found:
        raise typer.BadParameter(f"{names!r} names nothing.")
    return found


def changed(settings: Sequence[str], kind: type[Any]) -> dict[str, Any]:
    """The settings of a kind that `name=value` changes, checked as a recipe's are."""
    from isoglot.recipe.document import Document, with_settings
    from isoglot.recipe.structure import structure

    document = with_settings(Document(data={}), settings)
    checked = structure(document, kind)
    return {name: getattr(checked, name) for name in document.data}


def check_tasks(
    names: Sequence[str], data: Path, asked: Finetuning, train_on: str | None = None
) -> None:
    """Find all faults in what is asked of fine-tuned tasks, before the first one is trained."""
    from isoglot.finetune.prepared import Prepared
    from isoglot.tasks import find_task

    train_task = None if train_on is None else find_task(train_on)
    for name in names:
        Prepared(find_task(name), data, asked, train_task)
