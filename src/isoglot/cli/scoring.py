"""What `isoglot evaluate` does with tasks and pairs that read features, and how it is printed."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from isoglot.evaluate import FeatureSettings
    from isoglot.results import Results

_SHOWN = 20


def tell(line: str) -> None:
    """Say what is to be known of the scores, beside the output."""
    from rich.console import Console

    Console(stderr=True).print(f"note: {line}", highlight=False, soft_wrap=True)


def score_pairs(
    folder: Path, pairs: list[Path], file: Path, *, most: int, center: bool, margin: bool
) -> None:
    """Score retrieval on files of translations and print each language's share."""
    from rich.console import Console

    from isoglot.evaluate import best_layer
    from isoglot.evaluate.run import add_scores, evaluate_retrieval, so_far

    terminal = Console(stderr=True)
    before = so_far(folder, file)  # refuses scores of another model before there is work to lose
    results = evaluate_retrieval(
        folder,
        pairs,
        most=most,
        center=center,
        margin=margin,
        progress=lambda name: terminal.print(f"retrieval {name}"),
        note=tell,
    )
    add_scores(before, results.scores, file)
    layer, means = best_layer(results.scores)
    for language, value in means.items():
        print(f"{language:<8} {100 * value:5.1f}")
    average = sum(means.values()) / len(means)
    print(
        f"{'average':<8} {100 * average:5.1f}   (layer {layer}, the best on average; all in {file})"
    )


def score_features(
    folder: Path,
    names: list[str],
    data: Path,
    settings: FeatureSettings,
    file: Path,
    languages: tuple[str, ...] | None,
    answers: Path | None,
) -> None:
    """Score tasks that read features; print each one's first metric at its best layer."""
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
            names,
            data,
            settings,
            out=file,
            languages=languages,
            progress=stages,
            listen=listen,
            note=tell,
        )
    _print_tasks(results, names, settings, languages)
    print(f"all layers and metrics in {file}")


def _print_tasks(
    results: Results,
    names: list[str],
    settings: FeatureSettings,
    languages: tuple[str, ...] | None,
) -> None:
    """Each task's first metric, at the layer that is best on average over the languages.

    Only the languages asked for count: the results file may have more.
    """
    from isoglot.cli.tables import print_table
    from isoglot.evaluate import best_layer
    from isoglot.tasks import find_task
    from isoglot.tasks.subsets import is_wanted

    rows = []
    for name in names:
        task = find_task(name)
        metric = task.metrics[0].name
        shown = task.name, task.version, metric, settings.scenario(task.kind)
        found = [
            score
            for score in results.scores
            if (score.task, score.version, score.metric, score.scenario) == shown
            and is_wanted(score.language, languages)
        ]
        if not found:
            rows.append([task.name, "–", "not in the languages asked for", "", ""])
            continue
        if any(score.layer is not None for score in found):
            layer, means = best_layer(score for score in found if score.layer is not None)
        else:
            layer, means = None, {score.language: score.value for score in found}
        average = "average" + _how_many(means, languages)
        means[average] = sum(means.values()) / len(means)
        rows += [
            [task.name, language, metric, f"{100 * value:.1f}", "" if layer is None else str(layer)]
            for language, value in means.items()
        ]
    print_table(["task", "language", "metric", "percent", "layer"], rows)


def _how_many(scored: Collection[str], languages: tuple[str, ...] | None) -> str:
    """How many of the languages asked for an average is over, where some have no data."""
    have = {
        code
        for language in scored
        for code in (language, *language.split("-"))
        if code != "en" or language == "en"  # of a pair, English is no language of its own
    }
    missing = set(languages or ()) - have
    if languages is None or not missing:
        return ""
    return f" ({len(languages) - len(missing)} of {len(languages)})"


def keep_exhibits(folder: Path, file: Path, pairs: dict[str, tuple[list[str], list[str]]]) -> None:
    """Write the map and the grids of a report beside the results."""
    from isoglot.evaluate.exhibits import exhibits_of_folder
    from isoglot.exhibits import FILE

    exhibits_of_folder(folder, pairs).write(file.parent / FILE)
    print(f"exhibits in {file.parent / FILE}")


def print_beside(first: Path, second: Path) -> None:
    """The first facts of which two models say different things."""
    from itertools import islice

    from isoglot.cli.tables import print_table
    from isoglot.evaluate.answers import side_by_side

    rows = [
        [row["prompt"], row["answers"][0], row["said"], other["said"]]
        for row, other in islice(side_by_side(first, second), _SHOWN)
    ]
    print_table(["cloze", "right", "this model", "the other"], rows)
