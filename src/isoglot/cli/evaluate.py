"""`isoglot evaluate`: judge an encoder across languages."""

from __future__ import annotations

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
    SOURCE,
    TRAIN_ON,
    changed,
    check_tasks,
    finetuning,
    folder_of,
    results_file,
    split,
    targets_of,
)
from isoglot.cli.finetune import finetune_tasks
from isoglot.cli.scoring import keep_exhibits, print_beside, score_features, score_pairs
from isoglot.errors import IsoglotError, nearest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isoglot.evaluate import FeatureSettings

_ALIGNER = "transport"
_EXAMPLE = """
Examples:

    isoglot evaluate runs/mine --pairs test/en-sw.tsv

    isoglot evaluate runs/mine --tasks tatoeba,alignment,xfactr --data eval --set masks=3

    isoglot evaluate runs/mine --tasks xnli,mlqa --data eval --seeds 5 --languages sw,hi

    isoglot evaluate runs/mine --tasks wikiann --data eval --source de --selection last
"""


@app.command(epilog=_EXAMPLE)
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
    data: Path = typer.Option(
        Path("eval"),
        "--data",
        "-d",
        help="Folder of the tasks' files (docs/evaluate.md has its layout).",
    ),
    languages: str = LANGUAGES,
    out: Path | None = typer.Option(
        None,
        "--out",
        "-o",
        help="Results file, or a folder for results.json; tasks and languages that it has are not "
        "scored again.",
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
        False, "--margin", help="Rank sentences by margin instead of cosine."
    ),
    aligner: str = typer.Option(
        _ALIGNER, help="How words are linked: transport, entropic, argmax or itermax."
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
    source: list[str] = SOURCE,
    train_on: str | None = TRAIN_ON,
    selection: str | None = SELECTION,
    settings: list[str] = typer.Option(
        [],
        "--set",
        help="Change a setting of the protocol (epochs=2) or of how features are read (masks=3). "
        "May be given several times.",
    ),
    exhibits: bool = typer.Option(
        False,
        "--exhibits",
        help="Keep a map of the sentences and grids of words for isoglot report, beside the "
        "results: of --pairs, or of the retrieval tasks.",
    ),
) -> None:
    """Score an encoder across languages.

    With --pairs, on your own translations: is the nearest sentence the translation? With --tasks,
    on public test sets, of two kinds (`isoglot show tasks`):

    tatoeba, alignment, lama and their like read the model as it is. A sentence's vector is the mean
    of a layer's states. All layers are scored; the one that is best on average is printed.

    xnli, mlqa and their like are fine-tuned for, several seeds each, and scored in languages that
    were not trained on (`isoglot finetune` has the remaining options).
    """
    from isoglot.cli.progress import without_bars_of_others
    from isoglot.evaluate.run import read_pairs

    if bool(pairs) == bool(tasks.strip(", ")):
        raise typer.BadParameter("give either --pairs or --tasks.", param_hint="--pairs / --tasks")
    if beside is not None and answers is None:
        raise typer.BadParameter(
            "what is to lie beside it? Add --answers FILE.", param_hint="--beside"
        )
    if pairs:
        only_of_tasks = {
            "--languages": languages,
            "--aligner": aligner != _ALIGNER,
            "--answers": answers,
            "--seeds": seeds,
            "--train-on": train_on,
            "--selection": selection,
            "--set": settings,
        }
        _refuse(only_of_tasks)
    without_bars_of_others()
    folder = folder_of(model)
    file = results_file(out, model)
    if pairs:
        score_pairs(folder, pairs, file, most=most or 1000, center=center, margin=margin)
        if exhibits:
            keep_exhibits(folder, file, read_pairs(pairs, most or 1000))
        return
    read, learned = _by_kind(tasks)
    _check_answers(answers, read)
    of_features, of_training = _by_owner(settings, read=bool(read), learned=bool(learned))
    targets = targets_of(languages)
    features = _settings(of_features, most=most, center=center, margin=margin, aligner=aligner)
    asked = finetuning(
        scenario,
        protocol,
        seeds=seeds,
        sources=source,
        targets=targets,
        selection=selection,
        changes=[*of_training, *([] if most is None else [f"max_scored={most}"])],
    )
    check_tasks(learned, data, asked, train_on)
    if read:
        score_features(folder, read, data, features, file, targets, answers)
    if learned:
        finetune_tasks(folder, learned, data, asked, file, train_on=train_on)
    if answers is not None and beside is not None:
        print_beside(answers, beside)
    if exhibits:
        from isoglot.evaluate.exhibits import pairs_of_tasks

        keep_exhibits(folder, file, pairs_of_tasks(read, data, ",".join(targets or ())))


def _refuse(only_of_tasks: dict[str, object]) -> None:
    """Say of an option that --pairs would not read that it belongs to --tasks."""
    for name, value in only_of_tasks.items():
        if value:
            raise typer.BadParameter("--pairs does not read it: use --tasks.", param_hint=name)


def _check_answers(answers: Path | None, names: Sequence[str]) -> None:
    """Refuse a file of answers that no task would write to."""
    from isoglot.tasks import find_task

    if answers is not None and all(find_task(name).kind != "probe" for name in names):
        raise typer.BadParameter(
            "only probes give answers: add mlama, xfactr or lama to --tasks.",
            param_hint="--answers",
        )


def _by_kind(tasks: str) -> tuple[list[str], list[str]]:
    """Tasks that read a model as it is, and tasks that it is fine-tuned for."""
    from isoglot.tasks import FINE_TUNED, find_task

    names = split(tasks)
    learned = [name for name in names if find_task(name).kind in FINE_TUNED]
    return [name for name in names if name not in learned], learned


def _by_owner(settings: Sequence[str], *, read: bool, learned: bool) -> tuple[list[str], list[str]]:
    """Changed settings of features, and of fine-tuning; one that no task would read is refused."""
    from dataclasses import fields

    from isoglot.evaluate import FeatureSettings
    from isoglot.finetune.settings import FinetuneConfig

    of_features, of_training = (
        {field.name for field in fields(kind)} for kind in (FeatureSettings, FinetuneConfig)
    )
    known = (of_features if read else set()) | (of_training if learned else set())
    names = [setting.partition("=")[0] for setting in settings]
    for name in names:
        if name not in known:
            raise IsoglotError(
                f"--set {name}: these tasks have no such setting; {nearest(name, known)}"
            )
    return (
        [setting for name, setting in zip(names, settings, strict=True) if name in of_features],
        [setting for name, setting in zip(names, settings, strict=True) if name in of_training],
    )


def _settings(
    changes: Sequence[str], *, most: int | None, center: bool, margin: bool, aligner: str
) -> FeatureSettings:
    from typing import get_args

    from isoglot.evaluate import FeatureSettings
    from isoglot.evaluate.settings import Aligner

    for known in get_args(Aligner):
        if known == aligner:
            said = {"most": most, "center": center, "margin": margin, "aligner": known}
            return FeatureSettings(**{**said, **changed(changes, FeatureSettings)})
    raise typer.BadParameter(f"{aligner!r} is none of {', '.join(get_args(Aligner))}.")
