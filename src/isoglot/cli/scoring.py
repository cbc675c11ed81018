"""The steps of `isoglot evaluate` with their printed output."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from isoglot.atomic import replace_file
from isoglot.cli.options import print_note
from isoglot.corpus.reading.files import require_file
from isoglot.locks import lock_file

if TYPE_CHECKING:
    from pathlib import Path

    from isoglot.cli.score_table import TableOptions
    from isoglot.evaluation.pairs import PairsByName
    from isoglot.evaluation.settings import FeatureConfig
    from isoglot.tasks.base import DataFolders

_MAX_DIFFERENCES = 20


def score_pairs(
    folder: Path, pairs: list[Path], file: Path, options: TableOptions, *, visualize: bool
) -> None:
    """Score retrieval on files of translations and print the accuracy of each language."""
    from rich.console import Console

    from isoglot.cli.score_table import print_scores
    from isoglot.evaluation.evaluate import MAX_PAIRS, pair_scores
    from isoglot.evaluation.pairs import read_pairs
    from isoglot.model_results import add_scores, existing_results

    console = Console(stderr=True)
    before = existing_results(folder, file)  # refuses scores of another model before the work
    scores = pair_scores(
        folder,
        pairs,
        options.settings,
        languages=options.languages,
        progress=lambda name: console.print(f"retrieval {name}"),
        note=print_note,
    )
    add_scores(before, scores, file)
    # the limit of a file of pairs is not part of the scores' scenario
    shown = replace(options, settings=replace(options.settings, limit=None))
    print_scores(scores, ["retrieval"], shown)
    print(f"all layers and directions in {file}")
    if visualize:
        limit = options.settings.limit or MAX_PAIRS
        write_visualizations(folder, file, read_pairs(pairs, limit, options.languages))


def score_text(
    folder: Path,
    given: list[str],
    settings: FeatureConfig,
    out: Path | None,
    compare_with: Path | None,
) -> None:
    """Print bits per character by language; write those of each line, compare another model's."""
    from isoglot.cli.console import StageProgress, print_table
    from isoglot.evaluation.text_scores import (
        compare_lengths,
        score_texts,
        text_files,
        write_lengths,
    )

    files = text_files(given)
    if compare_with is not None:
        require_file(compare_with)
    with ExitStack() as stack:
        if out is not None:
            stack.enter_context(lock_file(out))
        progress = stack.enter_context(StageProgress())
        scores = score_texts(folder, files, settings, progress=progress, note=print_note)
        changes = {} if compare_with is None else compare_lengths(scores, compare_with)
        if out is not None:
            partial_file = stack.enter_context(replace_file(out))
            with partial_file.open("w", encoding="utf-8") as stream:
                write_lengths(stream, scores)
    headings = ["language", "lines", "bits per character", "95 %", "tokens per word", "unknown"]
    rows = []
    for score in scores:
        low, high = score.lengths.interval()
        row = [
            score.language,
            f"{len(score.lengths.characters):,}",
            f"{score.lengths.bits_per_character:.3f}",
            f"{low:.3f} to {high:.3f}",
            f"{score.tokens.tokens_per_word:.2f}",
            f"{100 * score.tokens.unknown_rate:.2f} %",
        ]
        if score.language in changes:
            found = changes[score.language]
            low, high = 100 * found.low, 100 * found.high
            row += [f"{100 * found.value:+.1f} %", f"{low:+.1f} % to {high:+.1f} %"]
        rows.append(row)
    print_table([*headings, "change", "95 %"] if changes else headings, rows)
    print("95 %: bootstrap over lines. Lower is better; the same words are hidden for every model.")
    if out is not None:
        print(f"bits of each line in {out}")


def score_features(
    folder: Path,
    names: list[str],
    data: DataFolders,
    options: TableOptions,
    file: Path,
    predictions: Path | None,
) -> None:
    """Score tasks that read features, and print their scores."""
    from isoglot.cli.console import StageProgress
    from isoglot.cli.score_table import print_scores
    from isoglot.evaluation.evaluate import evaluate_tasks

    with ExitStack() as stack:
        on_prediction = None
        if predictions is not None:
            from isoglot.evaluation.probing import write_prediction

            stack.enter_context(lock_file(predictions))
            partial_file = stack.enter_context(replace_file(predictions))
            stream = stack.enter_context(partial_file.open("w", encoding="utf-8"))
            on_prediction = partial(write_prediction, stream)
        progress = stack.enter_context(StageProgress())
        results = evaluate_tasks(
            folder,
            names,
            data,
            options.settings,
            out=file,
            languages=options.languages,
            progress=progress,
            on_prediction=on_prediction,
            note=print_note,
        )
    print_scores(results.scores, names, options)
    print(f"all layers and metrics in {file}")


def write_visualizations(
    folder: Path, file: Path, pairs: PairsByName, words: PairsByName | None = None
) -> None:
    """Write the visualizations of a report next to the results file, and named after it."""
    from isoglot.evaluation.visualize import visualize_folder
    from isoglot.visualizations import visualizations_file

    beside = visualizations_file(file)
    visualize_folder(folder, pairs, words=words or {}).write(beside)
    print(f"visualizations in {beside}")


def visualize_tasks(
    folder: Path, file: Path, tasks: list[str], data: DataFolders, languages: tuple[str, ...] | None
) -> None:
    """Write visualizations of the sentence pairs and the dictionaries of tasks."""
    from isoglot.evaluation.visualize import sentence_pairs_of_tasks, word_pairs_of_tasks

    words = word_pairs_of_tasks(tasks, data, languages)
    pairs = sentence_pairs_of_tasks(tasks, data, languages, required=not words)
    write_visualizations(folder, file, pairs, words)


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
