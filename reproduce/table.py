"""A paper's tables with the numbers that came out beside those that are printed.

    python -m reproduce.table ppa            in the working folder of reproduce/ppa.sh
    python -m reproduce.table ppa --printed  the paper's numbers alone

`tables/PAPER.yaml` has the printed numbers and names the results file of each row.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

import yaml

from isoglot.results import Results, Score

PAPERS = ("xlm-k", "ernie-m", "mlm-gc", "metaxlm", "ppa")
_MEANS = ("avg", "Avg")
_SMALL = (
    "**These numbers mean nothing.** `--small` trains a model of two layers for a few steps on "
    "generated text: it shows that every step works."
)


@dataclass(frozen=True, kw_only=True)
class Row:
    """One row of a table: the paper's numbers, and where ours are."""

    label: str
    results: str
    printed: tuple[str, ...]
    scenario: str = ""
    """First word of the scenario; empty: the file has one."""
    seeds: str = "all"
    """`all` for the mean over seeds, `best` for the seed with the best average."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table of a paper."""

    table: str
    title: str
    columns: list[str]
    rows: tuple[Row, ...]
    task: str = ""
    metrics: list[str] = field(default_factory=list)
    tasks: dict[str, list[str]] = field(default_factory=dict)
    """Column -> task and metrics, where columns are tasks and not languages."""
    results: dict[str, str] = field(default_factory=dict)
    """Column -> what is appended to the row's folder of results."""

    def measured(self, row: Row) -> list[str]:
        """The numbers of a row that came out; `-` where there is none."""
        cells: dict[str, tuple[float, ...]] = {}
        for column in self.columns:
            if column in _MEANS:
                continue
            file = Path(row.results + self.results.get(column, "")) / "results.json"
            scores = Results.read(file).scores if file.is_file() else ()
            task, *metrics = self.tasks.get(column) or [self.task, *self.metrics]
            language = None if self.tasks else column
            found = [_values(scores, row, task, metric, language) for metric in metrics]
            if all(found):
                cells[column] = tuple(map(fmean, found))
        if cells:
            if self.tasks:
                mean: tuple[float, ...] = (fmean(map(fmean, cells.values())),)
            else:
                mean = tuple(map(fmean, zip(*cells.values(), strict=True)))
            cells |= dict.fromkeys(_MEANS, mean)
        return [
            "/".join(f"{100 * one:.1f}" for one in cells[column]) if column in cells else "-"
            for column in self.columns
        ]


def _values(
    scores: tuple[Score, ...], row: Row, task: str, metric: str, language: str | None
) -> list[float]:
    """The values of the languages (none: all of them), each a mean over the row's seeds."""
    matching = [
        score
        for score in scores
        if score.task == task
        and score.metric == metric
        and (not row.scenario or _first_word(score.scenario) == row.scenario)
        and ("-" not in score.language or task == "translation")
    ]
    if row.seeds == "best" and matching:
        seeds = {score.seed for score in matching}
        best = max(seeds, key=lambda seed: fmean(s.value for s in matching if s.seed == seed))
        matching = [score for score in matching if score.seed == best]
    languages = {score.language for score in matching} if language is None else {language}
    return [
        fmean(values)
        for code in sorted(languages)
        if (values := [score.value for score in matching if score.language == code])
    ]


def _first_word(scenario: str | None) -> str:
    return (scenario or "").split(" ")[0].rstrip(",")


def read_tables(paper: str) -> list[Table]:
    """The tables of a paper."""
    file = Path(__file__).parent / "tables" / f"{paper}.yaml"
    return [_table(entry) for entry in yaml.safe_load(file.read_text(encoding="utf-8"))]


def _table(entry: dict[str, Any]) -> Table:
    rows = tuple(Row(**row | {"printed": tuple(row["printed"].split())}) for row in entry["rows"])
    table = Table(**entry | {"rows": rows})
    for row in rows:
        assert len(row.printed) == len(table.columns), f"{table.table}, {row.label}"
    return table


def markdown(tables: list[Table], *, measured: bool) -> str:
    """The tables as Markdown: of each row the paper's numbers and, with `measured`, ours."""
    blocks = []
    for table in tables:
        lines = [f"{table.table}: {table.title}", ""]
        sources = ["numbers of"] if measured else []
        lines.append("| " + " | ".join(["row", *sources, *table.columns]) + " |")
        lines.append("|" + "---|" * (1 + len(sources)) + "--:|" * len(table.columns))
        for row in table.rows:
            told = ["the paper"] if measured else []
            lines.append("| " + " | ".join([row.label, *told, *row.printed]) + " |")
            if measured:
                lines.append("| " + " | ".join(["", "this run", *table.measured(row)]) + " |")
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paper", choices=PAPERS)
    parser.add_argument("--small", action="store_true", help="say that the numbers mean nothing")
    parser.add_argument("--printed", action="store_true", help="the paper's numbers alone")
    given = parser.parse_args()
    text = markdown(read_tables(given.paper), measured=not given.printed)
    print(f"{_SMALL}\n\n{text}" if given.small else text)


if __name__ == "__main__":
    main()
