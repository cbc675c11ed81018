"""The study's tables and figure from WORK/results: study.md, study.json and study.svg in WORK.

    python -m benchmarks.transplant_study.table WORK

Losses are nats a predicted token; Tatoeba is accuracy@1 in percent, the mean over pairs and both
directions, at one layer for all: the one that is best at the end on average over arms and seeds.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from isoglot.report.transfer import TransferCurves, TransferPoint, plot_transfer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SOURCE = "en"
Cell = dict[str, Any]


def write_tables(work: Path) -> str:
    """Write the tables and the figure; gives the tables."""
    cells = read_cells(work / "results")
    layer = best_layer(cells)
    text = "\n".join(tables(cells, layer)) + "\n"
    (work / "study.md").write_text(text, encoding="utf-8")
    (work / "study.json").write_text(json.dumps(cells, ensure_ascii=False), encoding="utf-8")
    figure = plot_transfer([losses(cells), tatoeba(cells, layer)], x_label="steps")
    (work / "study.svg").write_text(figure, encoding="utf-8")
    return text


def read_cells(folder: Path) -> list[Cell]:
    """The results of all arms and seeds, the English model's own left out."""
    cells = [json.loads(file.read_text(encoding="utf-8")) for file in sorted(folder.glob("*.json"))]
    return [cell for cell in cells if cell["arm"] != "meta"]


def best_layer(cells: list[Cell]) -> str:
    """The layer that retrieves best at the end, on average over arms and seeds."""
    ends: list[dict[str, dict[str, float]]] = [cell["points"][-1]["tatoeba"] for cell in cells]
    return max(ends[0], key=lambda layer: fmean(fmean(end[layer].values()) for end in ends))


def losses(cells: list[Cell]) -> TransferCurves:
    """English and other held-out losses at the points where they were noted."""
    points = [
        TransferPoint(
            name=cell["arm"],
            x=float(point["step"]),
            source=point["losses"][SOURCE],
            target=fmean(v for code, v in point["losses"].items() if code != SOURCE),
            higher_is_better=False,
        )
        for cell in cells
        for point in cell["points"]
        if point["losses"]
    ]
    return TransferCurves(title="held-out MLM", unit="loss", points=tuple(points))


def tatoeba(cells: list[Cell], layer: str) -> TransferCurves:
    """Retrieval at the points where models were kept."""
    points = [
        TransferPoint(
            name=cell["arm"],
            x=float(point["step"]),
            source=None,
            target=fmean(point["tatoeba"][layer].values()),
        )
        for cell in cells
        for point in cell["points"]
        if point["tatoeba"]
    ]
    return TransferCurves(
        title=f"Tatoeba, layer {layer}", unit="accuracy@1, %", points=tuple(points)
    )


def tables(cells: list[Cell], layer: str) -> Iterator[str]:
    """Points by arm, then languages by arm at the end, then how words were matched."""
    yield from _head(["arm", "steps", "en loss", "other loss", "gap", f"tatoeba (layer {layer})"])
    of_loss, of_tatoeba = losses(cells).points, tatoeba(cells, layer).points
    for arm in _arms(cells):
        steps = sorted({point.x for point in (*of_loss, *of_tatoeba) if point.name == arm})
        for step in steps:
            there = [p for p in of_loss if (p.name, p.x) == (arm, step)]
            found = [p.target for p in of_tatoeba if (p.name, p.x) == (arm, step)]
            values = [
                [p.source for p in there if p.source is not None],
                [p.target for p in there],
                [p.gap for p in there if p.gap is not None],
            ]
            said = [*(_said(column, 3) for column in values), _said(found, 1)]
            yield _row([arm, f"{step:.0f}", *said])
    codes = [pair.split("-")[1] for pair in cells[0]["points"][-1]["tatoeba"][layer]]
    yield from ("", "At the end, by language: held-out loss / Tatoeba", "")
    yield from _head(["arm", "en", *codes])
    for arm in _arms(cells):
        ends = [cell["points"][-1] for cell in cells if cell["arm"] == arm]
        row = [_said([end["losses"][SOURCE] for end in ends], 2)]
        for code in codes:
            loss = _said([end["losses"][code] for end in ends], 2)
            right = _said([end["tatoeba"][layer][f"{SOURCE}-{code}"] for end in ends], 1)
            row.append(f"{loss} / {right}")
        yield _row([arm, *row])
    yield ""
    for arm in _arms(cells):
        own = [cell for cell in cells if cell["arm"] == arm]
        tokens, seconds = (fmean(c[k] for c in own) for k in ("tokens", "train_seconds"))
        speed = fmean(cell["tokens_per_second"] for cell in own)
        kinds = own[0]["kinds"]
        matched = "" if kinds is None else f"; words from: {kinds}"
        yield (
            f"- {arm}: {len(own)} seeds, {tokens / 1e6:.1f}M tokens, {seconds:.0f} s, "
            f"{speed:,.0f} tokens/s{matched}"
        )


def _arms(cells: list[Cell]) -> list[str]:
    return list(dict.fromkeys(cell["arm"] for cell in cells))


def _said(values: list[float], digits: int) -> str:
    if not values:
        return ""
    spread = f" ± {stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{fmean(values):.{digits}f}{spread}"


def _head(names: list[str]) -> Iterator[str]:
    yield _row(names)
    yield "|---|" + "--:|" * (len(names) - 1)


def _row(entries: Iterable[str]) -> str:
    return f"| {' | '.join(entries)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description="Print the study's tables.")
    parser.add_argument("work", type=Path)
    given = parser.parse_args()
    if not any((given.work / "results").glob("*.json")):
        parser.error(f"{given.work / 'results'} has no results yet: run the study first")
    print(write_tables(given.work))


if __name__ == "__main__":
    main()
