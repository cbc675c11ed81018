"""Training runs: losses and held-out perplexities as curves, and a table of all runs.

Reads metrics.jsonl, and the batch shape from recipe.yaml in the same folder.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from isoglot import yaml_text
from isoglot.pretraining.monitoring.heldout_scores import SHARES
from isoglot.report.chart import Chart, chart_svg
from isoglot.report.inputs import ReportError
from isoglot.report.metrics import (
    METRICS_FILE,
    RunMetrics,
    heldout_by_language,
    mean_line,
    smooth,
)
from isoglot.report.tables import Heading, Number, Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from isoglot.report.inputs import NamedFolder
    from isoglot.report.metrics import MetricPoint

_WINDOWS = 120
"""Points of a curve: steps are averaged over this many windows."""
_OTHER_METRICS = ("learning_rate", "gradient_norm", "tokens_per_second")


@dataclass(frozen=True, slots=True)
class TrainingRun:
    """The metrics of one run."""

    metrics: RunMetrics
    batch_tokens: int | None
    """Tokens of a full batch (rows times row length); None without a recipe."""


def read_runs(groups: Mapping[str, Sequence[NamedFolder]]) -> dict[str, list[TrainingRun]]:
    """Name -> its runs, for names with metrics."""
    found = {}
    for name, group in groups.items():
        folders = [one.folder for one in group if (one.folder / METRICS_FILE).is_file()]
        if folders:
            found[name] = [
                TrainingRun(RunMetrics(folder), _batch_tokens(folder)) for folder in folders
            ]
    return found


def training_figures(
    runs: Mapping[str, Sequence[TrainingRun]], colors: Mapping[str, int]
) -> list[tuple[str, str]]:
    """(metric, SVG) of held-out means, losses, learning rate, gradient norm and speed."""
    names = _metric_names(runs)
    losses = [name for name in names if name.endswith("/loss") and not name.startswith("valid/")]
    figures = []
    for metric in (*_heldout_means(names), *losses, *_OTHER_METRICS):
        figure = _figure(metric, runs, colors)
        if figure:
            figures.append((metric, figure))
    return figures


def _figure(
    metric: str, runs: Mapping[str, Sequence[TrainingRun]], colors: Mapping[str, int]
) -> str:
    series = {name: [run.metrics.series(metric) for run in group] for name, group in runs.items()}
    series = {name: found for name, found in series.items() if all(found)}
    if not series:
        return ""
    last = max(points[-1].step for found in series.values() for points in found)
    window = math.ceil(last / _WINDOWS)
    if metric.startswith("valid/"):
        window = 1  # held-out values are few and need no smoothing
    lines = []
    for name, found in series.items():
        means = [smooth(points, window) for points in found]
        line = mean_line(name, means, x_axis="steps", color=colors[name])
        if len(line.points) > 1:
            lines.append(line)
    if not lines:
        return ""
    label = metric if window == 1 else f"{metric}, {window}-step mean"
    chart = Chart(lines=tuple(lines), x_label="steps", y_label=label, width=580, height=300)
    return chart_svg(chart)


def heldout_figures(folder: Path) -> list[tuple[str, str]]:
    """(title, SVG) of each held-out metric of a run over its steps, with a line a language."""
    if not (folder / METRICS_FILE).is_file():
        return []
    metrics = RunMetrics(folder)
    figures = []
    for (objective, metric), names in heldout_by_language(metrics.names()).items():
        series = {language: metrics.series(name) for language, name in sorted(names.items())}
        lines = [
            mean_line(language, [points], x_axis="steps", color=number)
            for number, (language, points) in enumerate(series.items())
            if len(points) > 1
        ]
        if lines:
            chart = Chart(
                lines=tuple(lines), x_label="steps", y_label=metric, width=580, height=300
            )
            figures.append((f"held-out {metric}, {objective}", chart_svg(chart)))
    return figures


def training_table(runs: Mapping[str, Sequence[TrainingRun]]) -> Table | None:
    """Runs by steps, tokens, packing, speed and the last held-out values."""
    if not runs:
        return None
    heldout = _heldout_means(_metric_names(runs))
    ends = [points[-1] for group in runs.values() for points in _tokens(group) if points]
    steps = _unit(max((end.step for end in ends), default=0))
    tokens = _unit(max((end.tokens for end in ends), default=0))
    heads = [
        Heading(text="steps", note=_UNITS[steps]),
        Heading(text="tokens", note=_UNITS[tokens]),
        Heading(text="packing", note="% of positions filled"),
        Heading(text="speed", note="thousand tokens/s"),
    ]
    heads += [
        Heading(
            text=name.split("/")[1],
            note=f"held-out {name.rpartition('/')[2]}{', %' if _is_share(name) else ''}",
        )
        for name in heldout
    ]
    return Table(
        title="Runs",
        caption="Packing: the share of batch positions that are tokens, not padding. Held-out "
        "values are the last of each run, averaged over languages. Repetitions are averaged.",
        corner="run",
        columns=tuple(heads),
        rows=tuple(
            (Heading(text=name), tuple(_numbers(group, heldout, steps, tokens)))
            for name, group in runs.items()
        ),
    )


def _metric_names(runs: Mapping[str, Sequence[TrainingRun]]) -> list[str]:
    """The metrics of any run, in the order of appearance."""
    names = (name for group in runs.values() for run in group for name in run.metrics.names())
    return list(dict.fromkeys(names))


def _heldout_means(names: Sequence[str]) -> list[str]:
    return [name for name in names if name.startswith("valid/") and "/mean/" in name]


def _is_share(metric: str) -> bool:
    """Whether a metric is a share, which one decimal would round to 0 or 1."""
    return metric.rpartition("/")[2] in SHARES


_UNITS = {1.0: "", 1e3: "thousands", 1e6: "millions"}


def _unit(largest: float) -> float:
    """The unit in which the largest number of a column has one digit or more before the point."""
    return max(unit for unit in _UNITS if unit == 1 or largest >= unit)


def _tokens(group: Sequence[TrainingRun]) -> list[list[MetricPoint]]:
    return [run.metrics.series("tokens") for run in group]


def _numbers(
    group: Sequence[TrainingRun], heldout: Sequence[str], step_unit: float, token_unit: float
) -> list[Number]:
    tokens = _tokens(group)
    packing = [
        100 * fmean(point.value for point in points) / run.batch_tokens
        for run, points in zip(group, tokens, strict=True)
        if points and run.batch_tokens
    ]
    columns = [
        [points[-1].step / step_unit for points in tokens if points],
        [points[-1].tokens / token_unit for points in tokens if points],
        packing,
        [
            fmean(point.value for point in points) / 1e3
            for run in group
            if (points := run.metrics.series("tokens_per_second"))
        ],
    ]
    columns += [
        [
            points[-1].value * (100 if _is_share(name) else 1)
            for run in group
            if (points := run.metrics.series(name))
        ]
        for name in heldout
    ]
    note = "" if len(group) == 1 else f"mean of {len(group)} runs"
    return [Number(value=fmean(values), note=note) if values else Number() for values in columns]


def _batch_tokens(folder: Path) -> int | None:
    file = folder / "recipe.yaml"
    if not file.is_file():
        return None
    recipe, _ = yaml_text.read(file)
    try:
        batch = recipe["batch"]
        return int(batch["rows"]) * int(batch["row_length"])
    except (KeyError, TypeError, ValueError) as error:
        raise ReportError(f"{file}: has no batch.rows and batch.row_length ({error}).") from error
