"""`isoglot evaluate`: judge an encoder across languages."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from isoglot.cli import app
from isoglot.cli.finetune import (
    PROTOCOL,
    SCENARIO,
    SEEDS,
    finetune_tasks,
    finetuning,
    targets_of,
)

if TYPE_CHECKING:
    from isoglot.evaluate import FeatureSettings
    from isoglot.results import Results

_SHOWN = 20


@app.command()
def evaluate(
    model: Path = typer.Argument(..., help="A Hugging Face folder, or a run (runs/NAME)."),
    pairs: list[Path] = typer.Option(
        [],
        "--pairs",
        "-p",
        help="A file of translations, two columns with a tab between, named after its languages: "
        "en-de.tsv, or en-de.tsv.xz. May be given several times.",
    ),
    tasks: str = typer.Option(
        "", "--tasks", "-t", help="Tasks (`isoglot show tasks`), with commas: tatoeba,alignment."
    ),
    data: Path | None = typer.Option(
        None, "--data", "-d", help="Folder of the tasks' files (docs/evaluate.md has its layout)."
    ),
    languages: str = typer.Option(
        "",
        "--languages",
        "-l",
        help="Only these languages, with commas: sw,hi.",
        show_default="all",
    ),
    out: Path | None = typer.Option(
        None,
        "--out",
        "-o",
        help="Results file; tasks and languages that it has are not scored again.",
        show_default="MODEL/results.json",
    ),
    most: int | None = typer.Option(
        None,
        min=1,
        help="Examples to use: pairs from the top of a file, tasks evenly spaced.",
        show_default="1000 pairs, or all",
    ),
    center: bool = typer.Option(
        False,
        "--center",
        help="Take each language's mean vector off first.",
    ),
    margin: bool = typer.Option(
        False, "--margin", help="Rank sentences by margin instead of cosine (tasks only)."
    ),
    aligner: str = typer.Option(
        "transport", help="How words are linked: transport, entropic, argmax or itermax."
    ),
    answers: Path | None = typer.Option(
        None, "--answers", help="Write what the model says of each probed fact, as JSON lines."
    ),
    beside: Path | None = typer.Option(
        None, "--beside", help="Another model's --answers file: show where the two differ."
    ),
    scenario: str = SCENARIO,
    protocol: str = PROTOCOL,
    seeds: int | None = SEEDS,
    exhibits: bool = typer.Option(
        False,
        "--exhibits",
        help="Keep a map of the sentences and grids of words for isoglot report, beside the "
        "results: of --pairs, or of the retrieval tasks.",
    ),
) -> None:
    """Score an encoder across languages: is the nearest sentence the translation?

    With --pairs, on your own translations; with --tasks, on public test sets: retrieval, word
    alignment, dictionaries, analogies, facts. A sentence's vector is the mean of a layer's states;
    nothing is trained. All layers are scored; the one that is best on average is printed.

    Tasks such as xnli are fine-tuned for (isoglot finetune has all options), several seeds each.
    """
    from isoglot.cli.progress import without_bars_of_others
    from isoglot.evaluate.run import model_folder, read_pairs, scored_without

    if bool(pairs) == bool(tasks):
        raise typer.BadParameter("give either --pairs or --tasks.", param_hint="--pairs / --tasks")
    without_bars_of_others()
    folder = model_folder(model)
    note = scored_without(folder)
    if note is not None:
        from rich.console import Console

        Console(stderr=True).print(f"[yellow]note[/]: {note}", highlight=False, soft_wrap=True)
    file = out or model / "results.json"
    if pairs:
        _evaluate_pairs(folder, pairs, file, most=most or 1000, center=center)
        if exhibits:
            _keep_exhibits(folder, file, read_pairs(pairs, most or 1000))
        return
    if data is None:
        raise typer.BadParameter("--tasks needs the folder of their files.", param_hint="--data")
    settings = _settings(most=most, center=center, margin=margin, aligner=aligner)
    read, learned = _by_kind(tasks)
    if read:
        _evaluate_tasks(folder, read, data, settings, file, languages, answers)
    if learned:
        asked = finetuning(scenario, protocol, seeds=seeds, targets=targets_of(languages))
        finetune_tasks(folder, learned, data, asked, file)
    if answers is not None and beside is not None:
        _print_beside(answers, beside)
    if exhibits:
        from isoglot.evaluate.exhibits import pairs_of_tasks

        _keep_exhibits(folder, file, pairs_of_tasks(tasks.split(","), data, languages))


def _by_kind(tasks: str) -> tuple[list[str], list[str]]:
    """Tasks that read a model as it is, and tasks that it is fine-tuned for."""
    from isoglot.tasks import FINE_TUNED, find_task

    names = [name.strip() for name in tasks.split(",")]
    learned = [name for name in names if find_task(name).kind in FINE_TUNED]
    return [name for name in names if name not in learned], learned


def _settings(*, most: int | None, center: bool, margin: bool, aligner: str) -> FeatureSettings:
    from typing import get_args

    from isoglot.evaluate import FeatureSettings
    from isoglot.evaluate.settings import Aligner

    for known in get_args(Aligner):
        if known == aligner:
            return FeatureSettings(most=most, center=center, margin=margin, aligner=known)
    raise typer.BadParameter(f"{aligner!r} is none of {', '.join(get_args(Aligner))}.")


def _evaluate_pairs(
    folder: Path, pairs: list[Path], file: Path, *, most: int, center: bool
) -> None:
    from rich.console import Console

    from isoglot.evaluate import best_layer
    from isoglot.evaluate.run import add_to_file, evaluate_retrieval

    terminal = Console(stderr=True)
    results = evaluate_retrieval(
        folder,
        pairs,
        most=most,
        center=center,
        progress=lambda name: terminal.print(f"retrieval {name}"),
    )
    add_to_file(results, file)
    layer, means = best_layer(results.scores)
    for language, value in means.items():
        print(f"{language:<8} {100 * value:5.1f}")
    average = sum(means.values()) / len(means)
    print(
        f"{'average':<8} {100 * average:5.1f}   (layer {layer}, the best on average; all in {file})"
    )


def _evaluate_tasks(
    folder: Path,
    names: list[str],
    data: Path,
    settings: FeatureSettings,
    file: Path,
    languages: str,
    answers: Path | None,
) -> None:
    from rich.console import Console

    from isoglot.cli.progress import Stages
    from isoglot.evaluate.answers import write_answer
    from isoglot.evaluate.run import evaluate_tasks

    with ExitStack() as stack:
        listen = None
        if answers is not None:
            answers.parent.mkdir(parents=True, exist_ok=True)
            stream = stack.enter_context(answers.open("w", encoding="utf-8"))
            listen = partial(write_answer, stream)
        stages = stack.enter_context(Stages(Console(stderr=True)))
        results = evaluate_tasks(
            folder,
            [name.strip() for name in names],
            data,
            settings,
            out=file,
            languages=languages.split(",") if languages else None,
            progress=stages,
            listen=listen,
        )
    _print_tasks(results, names, settings)
    print(f"all layers and metrics in {file}")


def _print_tasks(results: Results, names: list[str], settings: FeatureSettings) -> None:
    """Each task's first metric, at the layer that is best on average over the languages."""
    from isoglot.cli.tables import print_table
    from isoglot.evaluate import best_layer
    from isoglot.tasks import find_task

    rows = []
    for name in names:
        task = find_task(name.strip())
        metric, scenario = task.metrics[0].name, settings.scenario(task.kind)
        found = [
            score
            for score in results.scores
            if (score.task, score.metric, score.scenario) == (task.name, metric, scenario)
        ]
        if not found:  # not in the languages asked for
            continue
        if any(score.layer is not None for score in found):
            layer, means = best_layer(score for score in found if score.layer is not None)
        else:
            layer, means = None, {score.language: score.value for score in found}
        means["average"] = sum(means.values()) / len(means)
        rows += [
            [task.name, language, metric, f"{100 * value:.1f}", "" if layer is None else str(layer)]
            for language, value in means.items()
        ]
    print_table(["task", "language", "metric", "percent", "layer"], rows)


def _keep_exhibits(folder: Path, file: Path, pairs: dict[str, tuple[list[str], list[str]]]) -> None:
    from isoglot.evaluate.exhibits import exhibits_of_folder
    from isoglot.exhibits import FILE

    exhibits_of_folder(folder, pairs).write(file.parent / FILE)
    print(f"exhibits in {file.parent / FILE}")


def _print_beside(first: Path, second: Path) -> None:
    from itertools import islice

    from isoglot.cli.tables import print_table
    from isoglot.evaluate.answers import side_by_side

    rows = [
        [row["prompt"], row["answers"][0], row["said"], other["said"]]
        for row, other in islice(side_by_side(first, second), _SHOWN)
    ]
    print_table(["cloze", "right", "this model", "the other"], rows)
