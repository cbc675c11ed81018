"""HTML pages: the report of models, and the page of a prepared corpus.

A page is one file without links to others. Its templates, the style sheet and a short script
(sorting tables, switching the theme) are in `templates/`; the page also works without the script.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from isoglot import __version__
from isoglot.corpus.cleaning.cleaner import DROP_REASONS
from isoglot.corpus.storage.manifest import FILE as MANIFEST_FILE
from isoglot.corpus.storage.manifest import read_manifest
from isoglot.report import colors
from isoglot.report.corpus_notes import corpus_notes
from isoglot.report.corpus_stats import (
    ALPHAS,
    SamplingShare,
    contaminated_records,
    corpus_parts,
    sample_rows,
    sampling_shares,
    sorted_counts,
)
from isoglot.report.explorer_links import task_errors
from isoglot.report.figures import layer_figures, sentence_map
from isoglot.report.inputs import (
    ReportError,
    group_by_name,
    read_results,
    read_visualizations,
    with_distinct_names,
)
from isoglot.report.leaderboard import Leaderboard, build_leaderboard
from isoglot.report.metrics import METRICS_FILE
from isoglot.report.names import shorten
from isoglot.report.ranking import overview_table
from isoglot.report.score_tables import (
    gap_table,
    heat_map,
    language_table,
    other_metrics_table,
    task_title,
)
from isoglot.report.tables import shared_note
from isoglot.report.training import TrainingRun, read_runs, training_figures, training_table
from isoglot.results import Results
from isoglot.visualizations import FILE as VISUALIZATIONS_FILE
from isoglot.visualizations import SentenceMap, Visualizations

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from jinja2 import Environment

    from isoglot.corpus import Corpus
    from isoglot.report.inputs import NamedFolder
    from isoglot.report.tables import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportData:
    """The contents of all folders of a report."""

    results: Mapping[str, Sequence[Results]]
    board: Leaderboard
    runs: Mapping[str, Sequence[TrainingRun]]
    visualizations: Mapping[str, Visualizations]
    corpora: Sequence[tuple[str, Sequence[SamplingShare]]]
    """Name and language sizes of each prepared corpus."""


def read_report_data(
    inputs: Sequence[NamedFolder], languages: Collection[str] | None = None
) -> ReportData:
    """Read all files of the folders; scores of all languages, or only of some."""
    inputs = with_distinct_names(inputs)
    groups = group_by_name(inputs)
    results = read_results(groups)
    data = ReportData(
        results=results,
        board=build_leaderboard(results, languages),
        runs=read_runs(groups),
        visualizations=read_visualizations(groups, results),
        corpora=[
            (one.name, tuple(sampling_shares(read_manifest(one.folder), ALPHAS)))
            for one in inputs
            if (one.folder / MANIFEST_FILE).is_file()
        ],
    )
    known = {*data.results, *data.runs, *data.visualizations, *(name for name, _ in data.corpora)}
    for one in inputs:
        if one.name not in known:
            raise ReportError(
                f"{one.path} has no results.json, {METRICS_FILE}, {VISUALIZATIONS_FILE} or "
                f"{MANIFEST_FILE}. Give a run, a folder that isoglot evaluate wrote to, or a "
                "prepared corpus."
            )
    return data


def report_page(data: ReportData, *, title: str, baseline: str | None = None) -> str:
    """The HTML of a report; the leaderboard compares with the model named `baseline`, if any."""
    board = data.board
    gaps = gap_table(board)
    runs = training_table(data.runs)
    model_colors = _model_colors(data)
    maps = _maps(data)
    language_colors = _language_colors(maps)
    return render(
        "page.html",
        title,
        languages=language_colors,
        models=data.results,
        overview=overview_table(board, baseline=baseline).split() if board.columns else [],
        heat_maps=[
            heat_map(board, model)
            for model in board.models
            if any((model, column) in board.scores for column in board.columns)
        ],
        gaps=gaps.split() if gaps else [],
        largest_gap=_largest(gaps),
        by_language=[
            (
                task_title(column),
                language_table(board, column).split(),
                other_metrics_table(board, column, others).split() if others else [],
            )
            for column, others in board.columns_by_task().items()
        ],
        board=board,
        errors=[(column, task_errors(board, column)) for column in board.primary_columns()],
        layer_figures=layer_figures(board, model_colors),
        runs=runs.split() if runs else [],
        training_figures=training_figures(data.runs, model_colors),
        corpora=[
            (name, kind, sorted(shares, key=lambda share: -share.tokens))
            for name, found in data.corpora
            for kind, shares in groupby(found, lambda share: share.kind)
        ],
        alphas=ALPHAS,
        spaces=[
            (section, title, unit, [(n, m, sentence_map(m, language_colors)) for n, m in own])
            for (section, title, unit), own in maps.items()
            if own
        ],
        grids={model: v.grids for model, v in data.visualizations.items() if v.grids},
    )


def report_tables(data: ReportData, *, baseline: str | None = None) -> list[Table]:
    """The tables of a report, whole: overview, gaps, each task by language, runs."""
    board = data.board
    overview = overview_table(board, baseline=baseline) if board.columns else None
    tables = [overview, gap_table(board)]
    for column, others in board.columns_by_task().items():
        tables.append(language_table(board, column))
        tables.append(other_metrics_table(board, column, others) if others else None)
    tables.append(training_table(data.runs))
    return [table for table in tables if table is not None]


def report_figures(data: ReportData) -> list[tuple[str, str]]:
    """(title, SVG) of every figure of a report: layers, training, maps."""
    colors_of_models, maps = _model_colors(data), _maps(data)
    drawn = [
        (f"{title} of {model}", sentence_map(found, _language_colors(maps)))
        for (_, title, _), own in maps.items()
        for model, found in own
    ]
    return [
        *layer_figures(data.board, colors_of_models),
        *training_figures(data.runs, colors_of_models),
        *drawn,
    ]


def _model_colors(data: ReportData) -> dict[str, int]:
    """Model -> the number of its color in every figure."""
    return {model: n for n, model in enumerate({**data.results, **data.runs})}


_Maps = dict[tuple[str, str, str], list[tuple[str, SentenceMap]]]


def _maps(data: ReportData) -> _Maps:
    """Section, its title and the unit of a dot -> model and map."""
    visualized = data.visualizations.items()
    return {
        ("space", "Sentence space", "sentence"): [
            (model, v.sentence_map) for model, v in visualized if v.sentence_map
        ],
        ("wordspace", "Word space", "word"): [
            (model, v.word_map) for model, v in visualized if v.word_map
        ],
    }


def _language_colors(maps: _Maps) -> dict[str, int]:
    """Language -> the number of its color on every map."""
    mapped = {code for own in maps.values() for _, found in own for code in found.points}
    return {language: number for number, language in enumerate(sorted(mapped))}


def corpus_page(corpus: Corpus, *, alphas: Sequence[float], samples: int, title: str) -> str:
    """The HTML of a corpus: its size, drop reasons, sampling probabilities and some rows."""
    manifest = corpus.manifest
    total = manifest.total()
    return render(
        "corpus.html",
        title,
        languages={},
        corpus=corpus,
        total=total,
        parts=corpus_parts(manifest),
        reasons=sorted_counts(total.dropped),
        meanings=DROP_REASONS,
        notes=corpus_notes(manifest),
        contaminated=contaminated_records(manifest),
        alphas=alphas,
        shares=list(sampling_shares(manifest, alphas)),
        tokenizer_stats=manifest.tokenizer.statistics,
        samples=list(sample_rows(corpus, samples)),
    )


def render(template: str, title: str, *, folder: Path | None = None, **values: Any) -> str:
    """The HTML of a template of this package, or of a folder whose templates include these."""
    page = _environment(folder).get_template(template)
    html: str = page.render(title=title, version=__version__, colors=colors, **values)
    # a table that is wider than a phone scrolls by itself, not the page with it
    html = html.replace("<table", '<div class="wide"><table')
    return html.replace("</table>", "</table></div>")


def _environment(folder: Path | None = None) -> Environment:
    from jinja2 import ChoiceLoader, Environment, FileSystemLoader, PackageLoader, StrictUndefined

    environment = Environment(
        loader=ChoiceLoader(
            [
                *([] if folder is None else [FileSystemLoader(folder)]),
                PackageLoader("isoglot.report"),
            ]
        ),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["shared_note"] = shared_note
    environment.filters["shorten"] = shorten
    environment.filters["isolate"] = _isolate
    return environment


def _isolate(text: str) -> str:
    """The text as HTML; letters written from right to left do not move what is around them."""
    from markupsafe import Markup, escape

    # a large page has thousands of names, most of them in ASCII
    return escape(text) if text.isascii() else Markup("<bdi>{}</bdi>").format(text)


def _largest(table: Table | None) -> float:
    """The largest number of a table: the length of its bars is relative to it."""
    if table is None:
        return 1.0
    values = [n.value for _, numbers in table.rows for n in numbers if n.value is not None]
    return max([*values, 1e-9])
