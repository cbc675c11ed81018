"""Cross-lingual transfer along training, or against a setting (`isoglot analyze transfer`).

    runs --models_to_plot--> models --score--> scores --> source, target mean and gap of each model

MetaXLM's Figure 5 has the models exported during training (`export.every_steps`), its Figure 1 the
final models of runs with different alphas. Scores are kept in results.json of each model and not
computed again. Held-out losses are read from metrics.jsonl and need no model.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from isoglot.averaging import scores_to_average
from isoglot.errors import IsoglotError, RecipeError
from isoglot.folders import model_folder
from isoglot.languages import is_pair
from isoglot.pretraining.export import INTERMEDIATE
from isoglot.recipe import document
from isoglot.report.metrics import RunMetrics
from isoglot.report.transfer import TransferCurves, TransferPoint
from isoglot.study.compare import comparable_averages, is_part_of
from isoglot.study.jobs import score_model

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from isoglot.averaging import Average
    from isoglot.corpus.engine.runner import Progress
    from isoglot.finetuning.settings import FinetuneRequest
    from isoglot.report.inputs import NamedFolder
    from isoglot.results import Score
    from isoglot.tasks.base import DataFolders


STEPS = "steps"
_HELDOUT = re.compile(r"valid/(\S+)/([^/ ]+)/(perplexity|loss)")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlottedModel:
    """A model, the curve it belongs to, and its place on the horizontal axis."""

    name: str
    x: float
    model: Path


def models_to_plot(runs: Sequence[NamedFolder], x_axis: str) -> list[PlottedModel]:
    """The models of runs: intermediate exports (`steps`), or final models by a recipe setting."""
    models: list[PlottedModel] = []
    for run in runs:
        if x_axis != STEPS:
            x = recipe_value(run.folder, x_axis)
            models.append(PlottedModel(name=run.name, x=x, model=model_folder(run.folder)))
            continue
        exports = sorted((run.folder / INTERMEDIATE).glob("step-*"))
        if not exports:
            raise IsoglotError(
                f"{run.folder} has no intermediate exports. Pre-train with --set "
                "export.every_steps=N, which exports the model every N steps."
            )
        models += [
            PlottedModel(name=run.name, x=float(model.name.removeprefix("step-")), model=model)
            for model in exports
        ]
    return models


def recipe_value(run: Path, path: str) -> float:
    """The value of a numeric setting in the recipe of a run, such as `optimizer.learning_rate`."""
    file = run / "recipe.yaml"
    value: object = document.read(file).data
    for key in path.split("."):
        if isinstance(value, list) and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        elif isinstance(value, dict) and key in value:
            value = value[key]
        else:
            raise RecipeError(f"{file} has no setting {path!r} (at {key!r}).")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise RecipeError(f"{file}: {path} is {value!r}, which is not a number.")
    return float(value)


def transfer_curves(
    models: Sequence[PlottedModel],
    tasks: Sequence[str],
    data: DataFolders,
    request: FinetuneRequest,
    *,
    source: str,
    progress: Progress | None = None,
) -> list[TransferCurves]:
    """Score every model on the tasks; a task has one metric, scenario and layer for all models."""
    scores: list[list[Score]] = []
    for model in models:
        named_progress = None if progress is None else _with_model(model, progress)
        found = score_model(
            model.model, tasks, data, request, model.model / "results.json", named_progress
        )
        scores.append([score for score in found if score.task in set(tasks)])
    return [
        TransferCurves(
            title=task + ("" if average.layer is None else f", layer {average.layer}"),
            unit=average.metric,
            points=tuple(
                _point(model, own, average, source)
                for model, own in zip(models, scores, strict=True)
            ),
        )
        for task, average in comparable_averages(scores).items()
    ]


def heldout_curves(
    runs: Sequence[NamedFolder], x_axis: str, *, source: str, objective: str = "mlm"
) -> TransferCurves:
    """Held-out losses from the runs' metrics: of all validations, or the last one by a setting."""
    points: list[TransferPoint] = []
    for run in runs:
        losses = heldout_losses(RunMetrics(run.folder), objective)
        if not losses:
            raise IsoglotError(
                f"{run.folder} has no held-out {objective} loss. A run records held-out losses "
                "every logging.validate_every_steps steps and at its end: finish it, or name "
                "another objective (--objective)."
            )
        if x_axis != STEPS:
            losses = {recipe_value(run.folder, x_axis): losses[max(losses)]}
        points += [_loss_point(run, x, by_language, source) for x, by_language in losses.items()]
    return TransferCurves(
        title=f"held-out {objective}", unit="loss (nats per token)", points=tuple(points)
    )


def heldout_losses(metrics: RunMetrics, objective: str) -> dict[float, dict[str, float]]:
    """Step -> language -> held-out loss of an objective."""
    losses: dict[float, dict[str, float]] = {}
    for name in metrics.names():
        match = _HELDOUT.fullmatch(name)
        if match is None or match[1] != objective or match[2] == "mean":
            continue
        for point in metrics.series(name):
            value = math.log(point.value) if match[3] == "perplexity" else point.value
            losses.setdefault(float(point.step), {})[match[2]] = value
    return losses


def _loss_point(
    run: NamedFolder, x: float, losses: Mapping[str, float], source: str
) -> TransferPoint:
    others = [loss for language, loss in losses.items() if language != source]
    if source not in losses or not others:
        raise IsoglotError(
            f"{run.folder} has held-out losses in {', '.join(losses)}: a transfer gap needs "
            f"{source!r} and another language."
        )
    return TransferPoint(
        name=run.name, x=x, source=losses[source], target=fmean(others), higher_is_better=False
    )


def _point(
    model: PlottedModel, scores: Sequence[Score], average: Average, source: str
) -> TransferPoint:
    values: dict[str, list[float]] = {}
    for score in scores_to_average(scores):
        if score.metric == average.metric and is_part_of(score, average):
            values.setdefault(score.language, []).append(score.value)
    means = {language: fmean(of_language) for language, of_language in values.items()}
    has_only_pairs = all(map(is_pair, means))
    others = [
        value
        for code, value in means.items()
        if code != source and (has_only_pairs or not is_pair(code))
    ]
    if not others:
        raise IsoglotError(
            f"{average.task} was scored only in {', '.join(means)}: a transfer gap needs a "
            f"language other than {source!r}."
        )
    return TransferPoint(
        name=model.name,
        x=model.x,
        source=means.get(source),
        target=fmean(others),
        higher_is_better=average.higher_is_better,
    )


def _with_model(model: PlottedModel, progress: Progress) -> Progress:
    return lambda what, done, total: progress(f"{model.name} {model.x:g} {what}", done, total)
