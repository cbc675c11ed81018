"""Models along training, or of runs that differ in one setting, scored and set side by side.

    runs --moments--> models --evaluate--> scores --points--> source, targets, gap of each

Figure 5 of MetaXLM has checkpoints along training (`export.every` keeps them), its Figure 1 the
final models of runs with different alphas. Scores are kept beside each model, in results.json, and
not made again. Held-out losses are read from metrics.jsonl and need no model.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from isoglot.averaging import is_pair, to_average
from isoglot.errors import IsoglotError, RecipeError
from isoglot.evaluate.averages import averages, headline
from isoglot.evaluate.run import evaluate_tasks, model_folder
from isoglot.evaluate.settings import FeatureSettings
from isoglot.finetune.run import finetune_and_score
from isoglot.pretrain.exports import ALONG
from isoglot.recipe import document
from isoglot.report.metrics import Metrics
from isoglot.report.transfer import Point, Scored

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from isoglot.evaluate.averages import Average
    from isoglot.finetune.asked import Finetuning
    from isoglot.report.inputs import Named
    from isoglot.results import Score

STEPS = "steps"
Progress = Callable[[str, int, "int | None"], None]
"""Told (what, done, all)."""
_HELDOUT = re.compile(r"valid/(\S+)/(\S+) (perplexity|loss)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """One model: which line it is on, and where."""

    name: str
    x: float
    model: Path


def moments(runs: Sequence[Named], against: str) -> list[Moment]:
    """The models of runs: those kept along training, or final ones by the value of a setting.

    Raises:
        IsoglotError: a run has no models, or its recipe no such setting.
    """
    found: list[Moment] = []
    for run in runs:
        if against != STEPS:
            x = setting_of(run.folder, against)
            found.append(Moment(name=run.name, x=x, model=model_folder(run.folder)))
            continue
        kept = sorted((run.folder / ALONG).glob("step-*"))
        if not kept:
            raise IsoglotError(
                f"{run.folder} kept no models along training. Pre-train with --set export.every=N, "
                "which keeps one every N steps."
            )
        found += [
            Moment(name=run.name, x=float(model.name.removeprefix("step-")), model=model)
            for model in kept
        ]
    return found


def setting_of(run: Path, path: str) -> float:
    """The value of a setting, a number, in the recipe of a run.

    Raises:
        RecipeError: there is no such setting, or it is no number.
    """
    value: object = document.read(run / "recipe.yaml").data
    for key in path.split("."):
        if isinstance(value, list) and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        elif isinstance(value, dict) and key in value:
            value = value[key]
        else:
            raise RecipeError(f"{run / 'recipe.yaml'} has no setting {path!r} (at {key!r}).")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise RecipeError(f"{run / 'recipe.yaml'}: {path} is {value!r}, which is no number.")
    return float(value)


def score_moments(
    found: Sequence[Moment],
    tasks: Sequence[str],
    data: Path,
    asked: Finetuning,
    *,
    source: str,
    progress: Progress | None = None,
) -> list[Scored]:
    """Score every model on the tasks; gives each task's points, read in one way for all."""
    scores: list[tuple[Moment, tuple[Score, ...]]] = []
    for moment in found:
        told = None if progress is None else _of(moment, progress)
        results = evaluate_tasks(
            moment.model,
            tasks,
            data,
            FeatureSettings(),
            out=moment.model / "results.json",
            languages=asked.scenario.targets,
            fine_tuner=partial(finetune_and_score, asked=asked, progress=told),
            progress=told,
        )
        scores.append((moment, tuple(s for s in results.scores if s.task in set(tasks))))
    ways = _common_ways(of for _, of in scores)
    return [
        Scored(
            title=task + ("" if way.layer is None else f", layer {way.layer}"),
            unit=way.metric,
            points=tuple(_point(moment, own, way, source) for moment, own in scores),
        )
        for task, way in ways.items()
    ]


def heldout(runs: Sequence[Named], against: str, *, source: str, objective: str = "mlm") -> Scored:
    """Held-out losses from the runs' metrics: all that were noted, or the last by a setting.

    Raises:
        IsoglotError: a run noted none, or none in the source language.
    """
    points: list[Point] = []
    for run in runs:
        noted = heldout_losses(Metrics(run.folder), objective)
        if not noted:
            raise IsoglotError(f"{run.folder} noted no held-out {objective} loss.")
        if against != STEPS:
            noted = {setting_of(run.folder, against): noted[max(noted)]}
        points += [_of_losses(run, x, losses, source) for x, losses in noted.items()]
    return Scored(title=f"held-out {objective}", unit="loss (nats a token)", points=tuple(points))


def _of_losses(run: Named, x: float, losses: Mapping[str, float], source: str) -> Point:
    others = [loss for language, loss in losses.items() if language != source]
    if source not in losses or not others:
        raise IsoglotError(
            f"{run.folder} has held-out losses in {', '.join(losses)}: a transfer gap needs "
            f"{source!r} and another language."
        )
    return Point(
        name=run.name, x=x, source=losses[source], target=fmean(others), higher_is_better=False
    )


def heldout_losses(metrics: Metrics, objective: str) -> dict[float, dict[str, float]]:
    """Step -> language -> an objective's held-out loss, where a run noted it."""
    found: dict[float, dict[str, float]] = {}
    for name in metrics.names():
        match = _HELDOUT.fullmatch(name)
        if match is None or match[1] != objective or match[2] == "mean":
            continue
        for point in metrics.series(name):
            value = math.log(point.value) if match[3] == "perplexity" else point.value
            found.setdefault(float(point.step), {})[match[2]] = value
    return found


def _of(moment: Moment, progress: Progress) -> Progress:
    """Progress that says which model it is of."""
    return lambda what, done, total: progress(f"{moment.name} {moment.x:g} {what}", done, total)


def _common_ways(scores: Iterable[Sequence[Score]]) -> dict[str, Average]:
    """Task -> the metric, scenario and layer that are best over all models."""
    numbers: dict[tuple[int, int | None], int] = {}
    pooled = [
        replace(score, seed=numbers.setdefault((model, score.seed), len(numbers)))
        for model, own in enumerate(scores)
        for score in own
    ]
    return headline([found for found in averages(pooled) if len(found.seeds) == len(numbers)])


def _point(moment: Moment, scores: Sequence[Score], way: Average, source: str) -> Point:
    own: dict[str, list[float]] = {}
    for score in to_average(scores):
        if _is_of(score, way):
            own.setdefault(score.language, []).append(score.value)
    means = {language: fmean(values) for language, values in own.items()}
    pairs = all(map(is_pair, means))
    others = [
        value for code, value in means.items() if code != source and (pairs or not is_pair(code))
    ]
    if not others:
        raise IsoglotError(
            f"{way.task} was scored in {', '.join(means)} alone: a transfer gap needs a language "
            f"other than {source!r}."
        )
    return Point(
        name=moment.name,
        x=moment.x,
        source=means.get(source),
        target=fmean(others),
        higher_is_better=way.higher_is_better,
    )


def _is_of(score: Score, way: Average) -> bool:
    said = (score.task, score.version, score.metric, score.scenario, score.layer)
    return (
        said == (way.task, way.version, way.metric, way.scenario, way.layer)
        and score.language in way.languages
    )
