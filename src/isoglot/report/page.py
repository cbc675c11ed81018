"""The page: every part that the inputs have something for, in one file without links to others.

The template, the style sheet and the few lines of script (sorting, the theme's switch) lie in
`templates/`; the page reads the same without the script.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from isoglot import __version__
from isoglot.exhibits import Exhibits
from isoglot.report import colours, views
from isoglot.report.board import Board, gather
from isoglot.report.corpora import ALPHAS, Shares, corpora
from isoglot.report.errors import ReportError
from isoglot.report.heat import heat_map
from isoglot.report.inputs import by_name
from isoglot.report.layers import layer_figures
from isoglot.report.models import exhibits_of, results_of
from isoglot.report.space import space_svg
from isoglot.report.table import shared_note
from isoglot.report.training import Run, runs_of, training_figures, training_table
from isoglot.results import Results

if TYPE_CHECKING:
    from jinja2 import Environment

    from isoglot.report.inputs import Named
    from isoglot.report.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """All that a report is made of."""

    results: Mapping[str, Sequence[Results]]
    board: Board
    runs: Mapping[str, Sequence[Run]]
    exhibits: Mapping[str, Exhibits]
    corpora: Sequence[Shares]


def collect(inputs: Sequence[Named], languages: Collection[str] | None = None) -> Material:
    """Read everything that the inputs hold; of scores, those in some languages (none: all).

    Raises:
        ReportError: one of them holds nothing that a report could show.
    """
    groups = by_name(inputs)
    material = Material(
        results=(results := results_of(groups)),
        board=gather(results, languages),
        runs=runs_of(groups),
        exhibits=exhibits_of(groups),
        corpora=corpora(inputs),
    )
    known = {*material.results, *material.runs, *material.exhibits}
    known |= {shares.corpus for shares in material.corpora}
    for one in inputs:
        if one.name not in known:
            raise ReportError(
                f"{one.path} holds no results.json, metrics.jsonl, exhibits.json or manifest.json. "
                "Give a run, a folder that isoglot evaluate wrote to, or a prepared corpus."
            )
    return material


def page(material: Material, *, title: str) -> str:
    """The HTML of a report, under a title."""
    template = environment().get_template("page.html")
    return template.render(title=title, version=__version__, **_parts(material))


def environment() -> Environment:
    """What makes pages of templates.

    Raises:
        ReportError: jinja2 is not installed.
    """
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError as error:
        raise ReportError("A page needs jinja2: pip install 'isoglot[report]'.") from error
    found = Environment(
        loader=PackageLoader("isoglot.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters["shared_note"] = shared_note
    return found


def tables(material: Material) -> list[Table]:
    """The tables of a report, for Markdown and LaTeX: overview, gaps, each task by language."""
    board = material.board
    gap = views.gaps(board)
    found = [views.overview(board)] if board.columns else []
    found += [gap] if gap else []
    for column, others in board.by_task().items():
        found.append(views.by_language(board, column))
        found += [views.other_metrics(board, column, others)] if others else []
    runs = training_table(material.runs)
    found += [runs] if runs else []
    return [piece for table in found for piece in table.pieces()]


def _parts(material: Material) -> dict[str, Any]:
    board = material.board
    gap = views.gaps(board)
    runs = training_table(material.runs)
    languages = sorted(
        {
            language
            for exhibits in material.exhibits.values()
            if exhibits.space
            for language in exhibits.space.points
        }
    )
    numbers = {language: number for number, language in enumerate(languages)}
    of_model = {model: n for n, model in enumerate({**material.results, **material.runs})}
    return {
        "colours": colours,
        "models": material.results,
        "overview": views.overview(board).pieces() if len(board.columns) > 0 else [],
        "heat_maps": [
            heat_map(board, model)
            for model in board.models
            if any((model, column) in board.entries for column in board.columns)
        ],
        "gaps": gap.pieces() if gap else [],
        "widest_gap": _widest(gap),
        "by_language": [
            (
                views.title(column),
                views.by_language(board, column).pieces(),
                views.other_metrics(board, column, others).pieces() if others else [],
            )
            for column, others in board.by_task().items()
        ],
        "layer_figures": layer_figures(board, of_model),
        "runs": runs.pieces() if runs else [],
        "training_figures": training_figures(material.runs, of_model),
        "corpora": material.corpora,
        "alphas": ALPHAS,
        "languages": numbers,
        "spaces": [
            (model, exhibits.space, space_svg(exhibits.space, numbers))
            for model, exhibits in material.exhibits.items()
            if exhibits.space
        ],
        "grids": {m: e.grids for m, e in material.exhibits.items() if e.grids},
    }


def _widest(table: Table | None) -> float:
    """The largest number of a table, which its bars are measured by."""
    if table is None:
        return 1.0
    values = [n.value for _, numbers in table.rows for n in numbers if n.value is not None]
    return max([*values, 1e-9])
