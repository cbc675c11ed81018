"""The steps of `isoglot evaluate` with their printed output."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

from isoglot.cli.options import print_note

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from isoglot.evaluation.data import PairsByName
    from isoglot.evaluation.settings import FeatureConfig
    from isoglot.results import Results

_MAX_DIFFERENCES = 20


def score_pairs(
    folder: Path, pairs: list[Path], file: Path, settings: FeatureConfig, *, visualize: bool
) -> None:
    """Score retrieval on files of translations and print the accuracy of each language."""
    from rich.console import Console

    from isoglot.averaging import best_layer
    from isoglot.evaluation.data import read_pairs
    from isoglot.evaluation.evaluate import MAX_PAIRS, pair_scores
    from isoglot.model_results import add_scores, existing_results

    console = Console(stderr=True)
    before = existing_results(folder, file)  # refuses scores of another model before the work
    scores = pair_scores(
        folder,
        pairs,
        settings,
        progress=lambda name: console.print(f"retrieval {name}"),
        note=print_note,
    )
    add_scores(before, scores, file)
    layer, means = best_layer(scores)
    for language, value in means.items():
        print(f"{language:<8} {100 * value:5.1f}")
    average = sum(means.values()) / len(means)
    print(
        f"{'average':<8} {100 * average:5.1f}   (layer {layer}, the best on average; all in {file})"
    )
    if visualize:
        write_visualizations(folder, file, read_pairs(pairs, settings.limit or MAX_PAIRS))


def score_features(
    folder: Path,
    names: list[str],
    data: Path,
    settings: FeatureConfig,
    file: Path,
    languages: tuple[str, ...] | None,
    predictions: Path | None,
) -> None:
    """Score tasks that read features; print the first metric of each at its best layer."""
    from isoglot.cli.console import StageProgress
    from isoglot.evaluation.evaluate import evaluate_tasks

    with ExitStack() as stack:
        on_prediction = None
        if predictions is not None:
            from isoglot.evaluation.probing import write_prediction

            predictions.parent.mkdir(parents=True, exist_ok=True)
            stream = stack.enter_context(predictions.open("w", encoding="utf-8"))
            on_prediction = partial(write_prediction, stream)
        progress = stack.enter_context(StageProgress())
        results = evaluate_tasks(
            folder,
            names,
            data,
            settings,
            out=file,
            languages=languages,
            progress=progress,
            on_prediction=on_prediction,
            note=print_note,
        )
    _print_tasks(results, names, settings, languages)
    print(f"all layers and metrics in {file}")


def _print_tasks(
    results: Results, names: list[str], settings: FeatureConfig, languages: tuple[str, ...] | None
) -> None:
    """The first metric of each task, at the layer that is best on average over the languages.

    Only the given languages count: the results file may have more.
    """
    from isoglot.averaging import best_layer
    from isoglot.cli.console import print_table
    from isoglot.tasks import find_task
    from isoglot.tasks.language_sets import is_selected

    rows = []
    for name in names:
        task = find_task(name)
        metric = task.metrics[0].name
        shown = task.name, task.version, metric, settings.scenario(task.kind)
        found = [
            score
            for score in results.scores
            if (score.task, score.version, score.metric, score.scenario) == shown
            and is_selected(score.language, languages)
        ]
        if not found:
            rows.append([task.name, "–", "not in the languages asked for", "", ""])
            continue
        if any(score.layer is not None for score in found):
            layer, means = best_layer(score for score in found if score.layer is not None)
        else:
            layer, means = None, {score.language: score.value for score in found}
        average = "average" + _coverage(means, languages)
        means[average] = sum(means.values()) / len(means)
        rows += [
            [task.name, language, metric, f"{100 * value:.1f}", "" if layer is None else str(layer)]
            for language, value in means.items()
        ]
    print_table(["task", "language", "metric", "percent", "layer"], rows)


def _coverage(scored: Collection[str], languages: tuple[str, ...] | None) -> str:
    """How many of the given languages an average covers (` (18 of 36)`), if not all."""
    have = {
        code
        for language in scored
        for code in (language, *language.split("-"))
        if code != "en" or language == "en"  # a pair with English does not cover English
    }
    missing = set(languages or ()) - have
    if languages is None or not missing:
        return ""
    return f" ({len(languages) - len(missing)} of {len(languages)})"


def write_visualizations(folder: Path, file: Path, pairs: PairsByName) -> None:
    """Write the visualizations of a report next to the results file."""
    from isoglot.evaluation.visualize import visualize_folder
    from isoglot.visualizations import FILE

    visualize_folder(folder, pairs).write(file.parent / FILE)
    print(f"visualizations in {file.parent / FILE}")


def visualize_tasks(
    folder: Path, file: Path, tasks: list[str], data: Path, languages: tuple[str, ...] | None
) -> None:
    """Write visualizations of the sentence pairs of tasks."""
    from isoglot.evaluation.visualize import sentence_pairs_of_tasks

    write_visualizations(folder, file, sentence_pairs_of_tasks(tasks, data, languages))


def print_differing_predictions(first: Path, second: Path) -> None:
    """Print the first facts for which two models predict different objects."""
    from itertools import islice

    from isoglot.cli.console import print_table
    from isoglot.evaluation.probing import differing_predictions

    rows = [
        [row["prompt"], row["answers"][0], row["predicted"], other["predicted"]]
        for row, other in islice(differing_predictions(first, second), _MAX_DIFFERENCES)
    ]
    print_table(["prompt", "answer", "this model", "the other model"], rows)
