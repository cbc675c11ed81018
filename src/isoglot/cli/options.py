"""Options that several commands share, and the functions that parse their values."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from isoglot.cli.outputs import check_output

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isoglot.finetuning.settings import FinetuneRequest
    from isoglot.tasks.base import DataFolders

MODEL = typer.Argument(..., help="A Hugging Face folder, a run (runs/NAME) or a name on the hub.")
TASKS = typer.Option(
    ...,
    "--tasks",
    "-t",
    help="Tasks (`isoglot show tasks`), separated by commas: xnli,mlqa. Your own by import path.",
)
DATA = typer.Option(
    [Path("eval")],
    "--data",
    "-d",
    help="Folder of the tasks' files (docs/tasks.md). May be repeated: training and test data may "
    "be in different folders.",
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
    help="Change a setting of the protocol, such as epochs=2 (`isoglot show protocol NAME` lists "
    "them). May be repeated.",
)
LANGUAGES = typer.Option(
    "",
    "--languages",
    "-l",
    help="Only these languages, separated by commas (sw,hi), or a paper's set (xnli, ...).",
    show_default="all",
)
CLUSTER = typer.Option(
    "local",
    help="Where tasks run: `local` (this machine), `auto` (the Ray cluster it belongs to) or "
    "ray://HOST:PORT.",
)
FETCH = typer.Option(
    False,
    "--fetch",
    help="Download data of the tasks that is missing into --data first (isoglot fetch).",
)
NO_LANGUAGE_EMBEDDINGS = typer.Option(
    False,
    "--no-language-embeddings",
    help="Leave out the language embeddings of a model that was trained with them (XLM, MLM-GC).",
)


def resolve_model(model: Path, *, language_embeddings: bool = True) -> Path:
    """The Hugging Face folder of a run or a model; prints a note on how it is run."""
    from isoglot.evaluation.loading import scoring_note
    from isoglot.folders import model_folder

    folder = model_folder(model)
    note = scoring_note(folder, with_languages=language_embeddings)
    if note is not None:
        print_note(note)
    return folder


def print_note(note: str) -> None:
    """Print a note on standard error."""
    print(f"note: {note}", file=sys.stderr)


def results_file(out: Path | None, model: Path) -> Path:
    """The results file: `out`, results.json in the folder `out`, or one of the model.

    A run has its own, in its folder; any other model's is results/NAME/results.json in the working
    folder, because a model folder is not written to. The NAME of adapted/model is `adapted`.
    """
    if out is None:
        run = model.parent if model.name == "model" and is_run(model.parent) else model
        name = _results_name(model) if model.exists() else model  # a name on the hub
        out = run if is_run(run) else Path("results", name)
        file = out / "results.json"
    elif out.is_file() or out.suffix == ".json":
        file = out
    else:
        file = out / "results.json"
    return check_output(file, "file", "--out")


_OWNER_FILES = ("adapt.yaml", "finetune.json")
"""Files of folders in which commands write models, besides runs."""
_UNNAMED = ("model", "exports", "intermediate", "languages")
"""Folders in them that do not tell models apart."""


def _results_name(model: Path) -> str:
    """The name of the results of a model: `adapted` for adapted/model.

    A model that a command wrote inside a run, a folder of `adapt` or a fine-tuned model is named
    after both, as others have parts of the same names: `mine-step-00000200` for
    runs/mine/exports/step-00000200.
    """
    folder = model.resolve()
    for owner in list(folder.parents)[:3]:
        if is_run(owner) or any((owner / name).is_file() for name in _OWNER_FILES):
            inside = folder.relative_to(owner).parts
            return "-".join([owner.name, *(part for part in inside if part not in _UNNAMED)])
    inside_another = folder.name == "model" and folder.parent not in (
        Path.cwd(),
        Path(folder.anchor),
    )
    return folder.parent.name if inside_another else folder.name


def is_run(folder: Path) -> bool:
    """Whether a folder is a run of `isoglot pretrain`, not a model alone."""
    has_run = (folder / "recipe.yaml").is_file() or (folder / "metrics.jsonl").is_file()
    return has_run and not (folder / "config.json").is_file()


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


def tell_absent(
    languages: str,
    tasks: Sequence[str] = (),
    data: DataFolders = (),
    *,
    pairs: Sequence[Path] = (),
) -> None:
    """Print one note on languages of `--languages` of which there are no data."""
    if languages:
        from isoglot.evaluation.evaluate import tell_absent as tell

        tell(split_names(languages), tasks, data, pairs, print_note)


def split_names(names: str) -> list[str]:
    """Split a list of names at its commas; at least one name must be left."""
    found = [name.strip() for name in names.split(",") if name.strip()]
    if not found:
        raise typer.BadParameter(f"{names!r} contains no name. Write names with commas between.")
    return found


def language_pair(given: str) -> tuple[str, str] | None:
    """The two codes of `--languages` of a command that reads two sides; None if not given."""
    from isoglot.languages import canonical

    if not given:
        return None
    codes = [canonical(code) for code in split_names(given)]
    if len(codes) != 2:
        raise typer.BadParameter(
            f"{given!r} has {len(codes)} languages. Name those of the two sides: en,sw.",
            param_hint="--languages",
        )
    return codes[0], codes[1]


def check_choices(**choices: tuple[str, Sequence[str]]) -> dict[str, Any]:
    """The values of options by name, each checked against those that it may have."""
    for name, (value, known) in choices.items():
        if value not in known:
            raise typer.BadParameter(
                f"{value!r} is not possible: write {', '.join(known[:-1])} or {known[-1]}.",
                param_hint=f"--{name.replace('_', '-')}",
            )
    return {name: value for name, (value, _) in choices.items()}


def parse_settings(settings: Sequence[str], kind: type[Any]) -> dict[str, Any]:
    """The values of `--set name=value`, checked against a settings class as a recipe's are."""
    from isoglot.recipe.document import Document, with_settings
    from isoglot.recipe.structure import structure

    document = with_settings(Document(data={}), settings)
    checked = structure(document, kind)
    return {name: getattr(checked, name) for name in document.data}


def check_tasks(
    names: Sequence[str], data: DataFolders, request: FinetuneRequest, train_on: str | None = None
) -> None:
    """Check the data and the request of all fine-tuned tasks before the first one is trained."""
    from isoglot.finetuning.plan import FinetunePlan
    from isoglot.tasks import find_task

    train_task = None if train_on is None else find_task(train_on)
    for name in names:
        FinetunePlan(find_task(name), data, request, train_task)
