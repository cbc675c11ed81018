"""`isoglot evaluate`: score an encoder across languages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from isoglot.cli import app, options, scoring
from isoglot.cli.console import disable_progress_bars
from isoglot.cli.fetch import fetch_missing
from isoglot.cli.outputs import output_file, output_file_or_folder
from isoglot.errors import IsoglotError, nearest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from isoglot.cli.score_table import TableOptions
    from isoglot.evaluation.settings import FeatureConfig
    from isoglot.tasks.base import DataFolders

_EXAMPLE = r"""
Examples:

    isoglot evaluate runs/mine --pairs test/en-sw.tsv

    isoglot evaluate runs/mine --text sw.txt --text en=test/english.txt

    isoglot evaluate runs/mine --tasks tatoeba,alignment,xfactr --data eval \
      --set max_masks=3

    isoglot evaluate runs/mine --tasks xnli,mlqa --data eval --seeds 5 \
      --languages sw,hi

    isoglot evaluate runs/mine --tasks my_package.my_module:MyTask \
      --data my/data
"""
_DEFAULT_ALIGNER = "transport"
_PAIRS = typer.Option(
    [],
    "--pairs",
    "-p",
    help="TSV file of translations, named after its languages (en-de.tsv, en-de.tsv.xz), or "
    "en-de=FILE; or CSV, JSON lines, Parquet with columns en and de, or TMX. May be repeated.",
)
_TEXT = typer.Option(
    [],
    "--text",
    metavar="FILE",
    help="Text file, named after its language (sw.txt, sw.txt.xz) or given as sw=news.txt: print "
    "bits per character. May be repeated.",
)
_TASKS = typer.Option(
    "",
    "--tasks",
    "-t",
    help="Tasks (`isoglot show tasks`), separated by commas: tatoeba,alignment. Your own: "
    "package.module:Class.",
)
_OUT = typer.Option(
    None,
    "--out",
    "-o",
    help="Results file (.json), or a folder for results.json; scores of the same data and weights "
    "are not computed again.",
    callback=output_file_or_folder,
    show_default="the run, or results/NAME",
)
_LIMIT = typer.Option(
    None,
    min=1,
    metavar="N",
    help="Score at most N examples: the first N pairs or lines of a file; of a task, one at random "
    "from each of N equal parts.",
    show_default="1000 pairs, 2000 lines, or all",
)
_CENTER = typer.Option(False, "--center", help="Retrieval: subtract each language's mean vector.")
_MARGIN = typer.Option(False, "--margin", help="Retrieval: rank by ratio margin instead of cosine.")
_LAYER = typer.Option(
    None,
    min=0,
    metavar="N",
    help="Retrieval: also print layer N (0: embeddings).",
    show_default="that of --protocol's paper: xtreme, ernie-m-base, ernie-m-large",
)
_DIRECTION = typer.Option(
    None,
    metavar="WAY",
    help="Retrieval: direction of the column of --layer: both, to-en, from-en.",
    show_default="the paper's",
)
_ALIGNER = typer.Option(
    _DEFAULT_ALIGNER, help="Word alignment: transport, entropic, argmax, itermax or softmax."
)
_PREDICTIONS = typer.Option(
    None,
    "--save-predictions",
    metavar="FILE",
    help="Write predictions of probes and entity linking, or the bits of each line of --text, as "
    "JSON lines.",
    callback=output_file,
)
_COMPARE_WITH = typer.Option(
    None,
    "--compare-with",
    metavar="FILE",
    help="Another model's --save-predictions file: print where the two differ; with --text, the "
    "change of bits per character.",
)
_SETTINGS = typer.Option(
    [],
    "--set",
    metavar="K=V",
    help="Change a setting of fine-tuning (epochs=2) or of features (max_masks=3). May be "
    "repeated.",
)
_VISUALIZATIONS = typer.Option(
    False,
    "--visualizations",
    help="Write a map of sentences and similarity grids of words for isoglot report, from --pairs "
    "or the retrieval tasks; with muse or xling a map of words (Figure 2 of MLM-GC).",
)


@app.command(epilog=_EXAMPLE)
def evaluate(
    model: Path = options.MODEL,
    pairs: list[Path] = _PAIRS,
    text: list[str] = _TEXT,
    tasks: str = _TASKS,
    data: list[Path] = options.DATA,
    fetch: bool = options.FETCH,
    languages: str = options.LANGUAGES,
    out: Path | None = _OUT,
    limit: int | None = _LIMIT,
    center: bool = _CENTER,
    margin: bool = _MARGIN,
    layer: int | None = _LAYER,
    direction: str | None = _DIRECTION,
    aligner: str = _ALIGNER,
    predictions: Path | None = _PREDICTIONS,
    compare_with: Path | None = _COMPARE_WITH,
    scenario: str = options.SCENARIO,
    protocol: str = options.PROTOCOL,
    seeds: int | None = options.SEEDS,
    source: list[str] = options.SOURCE,
    train_on: str | None = options.TRAIN_ON,
    selection: str | None = options.SELECTION,
    no_language_embeddings: bool = options.NO_LANGUAGE_EMBEDDINGS,
    settings: list[str] = _SETTINGS,
    visualizations: bool = _VISUALIZATIONS,
) -> None:
    """Score an encoder across languages.

    With --pairs, on your own translations: is the nearest sentence the translation? With --text,
    on your own text: bits per character, by which models with different vocabularies are compared;
    no results file is written. With --tasks, on public test sets, of two kinds (`isoglot show
    tasks`):

    tatoeba, alignment, lama and others need no training. All layers are scored; the table shows
    what users of the folder get: the exported sentence vectors, or the last layer. The best layer,
    chosen on one half of the examples and scored on the other, stands beside it.

    xnli, mlqa and others are fine-tuned first, with the protocol's number of seeds, and scored in
    languages without training data (`isoglot finetune` has more options).
    """
    _check_given(pairs, text, tasks, compare_with, predictions)
    features = {"limit": limit, "center": center, "margin": margin, "aligner": aligner}
    features["language_embeddings"] = with_languages = not no_language_embeddings
    training: dict[str, Any] = {"seeds": seeds, "selection": selection, "train_on": train_on}
    if pairs or text:
        unread = {**training, "set": settings, "fetch": fetch}
        if pairs:
            unread["save_predictions"] = predictions
        else:
            unread |= {"center": center, "margin": margin, "layer": layer is not None, "out": out}
            unread |= {"direction": direction, "visualizations": visualizations}
            unread |= {"languages": languages}
        _refuse_unread("--pairs" if pairs else "--text", unread, aligner, source, scenario)
    training |= {"scenario": scenario, "protocol": protocol, "sources": source}
    disable_progress_bars()
    folder = options.resolve_model(model, language_embeddings=with_languages)
    if text:
        scoring.score_text(folder, text, _feature_config(features), predictions, compare_with)
        return
    file, targets = options.results_file(out, model), options.parse_languages(languages)
    view = {"protocol": protocol, "layer": layer, "direction": direction}
    if pairs:
        options.tell_absent(languages, pairs=pairs)
        shown = _table_options(folder, _feature_config(features), targets, view)
        scoring.score_pairs(folder, pairs, file, shown, visualize=visualizations)
        return
    if fetch:
        fetch_missing(options.split_names(tasks), data, targets, source, train_on)
    options.tell_absent(languages, options.split_names(tasks), tuple(data))
    names = _score_tasks(
        folder, tasks, tuple(data), file, features, training, targets, settings, predictions, view
    )
    if predictions is not None and compare_with is not None:
        scoring.print_differing_predictions(predictions, compare_with)
    if visualizations:
        scoring.visualize_tasks(folder, file, names, tuple(data), targets)


def _check_given(
    pairs: list[Path],
    text: list[str],
    tasks: str,
    compare_with: Path | None,
    predictions: Path | None,
) -> None:
    if sum(map(bool, (pairs, text, tasks.strip(", ")))) != 1:
        raise typer.BadParameter(
            "give one of --pairs, --text and --tasks.", param_hint="--pairs / --text / --tasks"
        )
    if compare_with is not None and predictions is None and not text:
        raise typer.BadParameter(
            "it is compared with the predictions of this model: add --save-predictions FILE.",
            param_hint="--compare-with",
        )


def _refuse_unread(
    given: str, unread: Mapping[str, object], aligner: str, source: list[str], scenario: str
) -> None:
    """Refuse options that --pairs or --text do not read."""
    changed = {"aligner": aligner != _DEFAULT_ALIGNER, "source": source != ["en"]}
    changed |= {"scenario": scenario != "zero-shot"}
    for name, value in {**unread, **changed}.items():
        if value:
            option = f"--{name.replace('_', '-')}"
            raise typer.BadParameter(
                f"it has no effect with {given}: leave it out.", param_hint=option
            )


def _score_tasks(
    folder: Path,
    tasks: str,
    data: DataFolders,
    file: Path,
    features: Mapping[str, Any],
    training: Mapping[str, Any],
    targets: tuple[str, ...] | None,
    settings: Sequence[str],
    predictions: Path | None,
    view: Mapping[str, Any],
) -> list[str]:
    """Score tasks that read features, then tasks that are fine-tuned; gives the former's names.

    All options and files are checked before the first task is scored.
    """
    from isoglot.tasks import FINE_TUNED_KINDS, find_task

    names = options.split_names(tasks)
    kinds = {name: find_task(name).kind for name in names}
    trained = [name for name in names if kinds[name] in FINE_TUNED_KINDS]
    read = [name for name in names if name not in trained]
    if predictions is not None and not {"probe", "linking"} & set(kinds.values()):
        raise typer.BadParameter(
            "only probes and entity linking write predictions: add mlama, xfactr, lama or "
            "entity-linking to --tasks.",
            param_hint="--save-predictions",
        )
    of_features, of_training = _split_settings(settings, read=bool(read), trained=bool(trained))
    config = _feature_config(features, of_features)
    request, train_on = None, training["train_on"]
    if trained:
        limit = features["limit"]
        changes = [*of_training, *([] if limit is None else [f"max_test_examples={limit}"])]
        if not features["language_embeddings"]:
            changes.append("language_embeddings=false")
        others = {name: value for name, value in training.items() if name != "train_on"}
        request = options.finetune_request(**others, targets=targets, changes=changes)
        options.check_tasks(trained, data, request, train_on)
    if read:
        shown = _table_options(folder, config, targets, view)
        scoring.score_features(folder, read, data, shown, file, predictions)
    if request is not None:
        from isoglot.cli.finetune import finetune_and_print

        finetune_and_print(folder, trained, data, request, file, train_on=train_on)
    return read


def _table_options(
    folder: Path, config: FeatureConfig, languages: tuple[str, ...] | None, view: Mapping[str, Any]
) -> TableOptions:
    """What the printed table shows; a direction or layer that does not exist is refused here."""
    from isoglot.cli.score_table import TableOptions
    from isoglot.evaluation.exported import exported_vectors
    from isoglot.evaluation.views import RetrievalView
    from isoglot.models.language_embeddings import languages_of

    RetrievalView(direction=view["direction"] or "both")
    vectors = exported_vectors(folder).name
    if config.language_embeddings and languages_of(folder):
        vectors += ", with language embeddings"
    return TableOptions(settings=config, languages=languages, vectors=vectors, **view)


def _split_settings(
    settings: Sequence[str], *, read: bool, trained: bool
) -> tuple[list[str], list[str]]:
    """The `--set`s of features and of fine-tuning; one that no task reads is refused."""
    if not settings:
        return [], []
    from dataclasses import fields

    from isoglot.evaluation.settings import FeatureConfig
    from isoglot.finetuning.settings import FinetuneConfig

    of_features, of_training = (
        {field.name for field in fields(kind)} for kind in (FeatureConfig, FinetuneConfig)
    )
    known = (of_features if read else set()) | (of_training if trained else set())
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


def _feature_config(features: Mapping[str, Any], changes: Sequence[str] = ()) -> FeatureConfig:
    from typing import get_args

    from isoglot.evaluation.settings import Aligner, FeatureConfig

    aligners = get_args(Aligner)
    if features["aligner"] not in aligners:
        raise typer.BadParameter(
            f"{features['aligner']!r} is not possible: write {', '.join(aligners[:-1])} or "
            f"{aligners[-1]}.",
            param_hint="--aligner",
        )
    changed = options.parse_settings(changes, FeatureConfig) if changes else {}
    return FeatureConfig(**{**features, **changed})
