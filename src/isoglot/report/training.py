"""How runs went: losses and held-out perplexity as curves, and a table of what each run did.

Reads metrics.jsonl, and the shape of the rows from recipe.yaml beside it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

import yaml

from isoglot.report.chart import Chart, svg
from isoglot.report.curves import joined
from isoglot.report.errors import ReportError
from isoglot.report.metrics import FILE, Metrics, smoothed
from isoglot.report.table import Heading, Number, Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from isoglot.report.inputs import Named

_WINDOWS = 120
"""Points of a curve: a run's steps are averaged over as many windows."""
_ALSO = ("learning_rate", "gradient_norm", "tokens_per_second")


@dataclass(frozen=True, slots=True)
class Run:
    """One run as its folder tells it."""

    metrics: Metrics
    places: int | None
    """Tokens that the rows of a step have room for; None where no recipe says it."""


def runs_of(groups: Mapping[str, Sequence[Named]]) -> dict[str, list[Run]]:
    """The runs among the inputs, under their names."""
    found = {}
    for name, group in groups.items():
        folders = [one.folder for one in group if (one.folder / FILE).is_file()]
        if folders:
            found[name] = [Run(Metrics(folder), _places(folder)) for folder in folders]
    return found


def training_figures(
    runs: Mapping[str, Sequence[Run]], colours: Mapping[str, int]
) -> list[tuple[str, str]]:
    """(metric, SVG) for losses, held-out means and what else tells how a run went."""
    names = {name: None for group in runs.values() for run in group for name in run.metrics.names()}
    losses = [name for name in names if name.endswith("/loss") and not name.startswith("valid/")]
    heldout = [name for name in names if name.startswith("valid/") and "/mean " in name]
    figures = []
    for metric in (*heldout, *losses, *_ALSO):
        figure = _figure(metric, runs, colours)
        if figure:
            figures.append((metric, figure))
    return figures


def _figure(metric: str, runs: Mapping[str, Sequence[Run]], colours: Mapping[str, int]) -> str:
    series = {name: [run.metrics.series(metric) for run in group] for name, group in runs.items()}
    series = {name: found for name, found in series.items() if all(found)}
    if not series:
        return ""
    last = max(points[-1].step for found in series.values() for points in found)
    window = math.ceil(last / _WINDOWS)
    if metric.startswith("valid/"):
        window = 1  # held-out values are few and exact: they stay as they are
    lines = []
    for name, found in series.items():
        means = [smoothed(points, window) for points in found]
        line = joined(name, means, against="steps", colour=colours[name])
        if len(line.points) > 1:
            lines.append(line)
    if not lines:
        return ""
    label = metric if window == 1 else f"{metric}, {window}-step mean"
    chart = Chart(lines=tuple(lines), x_label="steps", y_label=label, width=580, height=300)
    return svg(chart)


def training_table(runs: Mapping[str, Sequence[Run]]) -> Table | None:
    """Models down; steps, tokens, packing, speed and the last held-out numbers across."""
    if not runs:
        return None
    heldout = {
        name: None
        for group in runs.values()
        for run in group
        for name in run.metrics.names()
        if name.startswith("valid/") and "/mean " in name
    }
    heads = [
        Heading(text="steps", note="thousands"),
        Heading(text="tokens", note="millions"),
        Heading(text="packing", note="% of places filled"),
        Heading(text="speed", note="thousand tokens/s"),
    ]
    heads += [
        Heading(text=name.split("/")[1], note=f"held-out {name.split()[-1]}") for name in heldout
    ]
    rows = [
        (Heading(text=name), tuple(_numbers(group, list(heldout)))) for name, group in runs.items()
    ]
    return Table(
        title="Runs",
        caption="Packing: the share of the rows' places that hold a token and not padding. "
        "Held-out numbers are the last of each run, the mean over its languages. "
        "Repetitions are averaged.",
        corner="run",
        columns=tuple(heads),
        rows=tuple(rows),
    )


def _numbers(group: Sequence[Run], heldout: Sequence[str]) -> list[Number]:
    tokens = [run.metrics.series("tokens") for run in group]
    packing = [
        100 * fmean(point.value for point in points) / run.places
        for run, points in zip(group, tokens, strict=True)
        if points and run.places
    ]
    columns = [
        [points[-1].step / 1e3 for points in tokens if points],
        [points[-1].tokens / 1e6 for points in tokens if points],
        packing,
        [
            fmean(point.value for point in points) / 1e3
            for run in group
            if (points := run.metrics.series("tokens_per_second"))
        ],
    ]
    columns += [
        [points[-1].value for run in group if (points := run.metrics.series(name))]
        for name in heldout
    ]
    note = "" if len(group) == 1 else f"mean of {len(group)} runs"
    return [Number(value=fmean(values), note=note) if values else Number() for values in columns]


def _places(folder: Path) -> int | None:
    """Rows times their length, from the recipe as it ran."""
    file = folder / "recipe.yaml"
    if not file.is_file():
        return None
    try:
        batch = yaml.safe_load(file.read_text(encoding="utf-8"))["batch"]
        return int(batch["rows"]) * int(batch["row_length"])
    except (yaml.YAMLError, KeyError, TypeError, ValueError) as error:
        raise ReportError(f"{file}: does not say the rows of a batch ({error}).") from error
