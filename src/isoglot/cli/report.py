"""`isoglot report`: results, runs and corpora as one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from isoglot.cli import app
from isoglot.cli.console import write_page
from isoglot.cli.options import LANGUAGES, parse_languages
from isoglot.cli.outputs import output_file, output_file_or_folder, output_folder

if TYPE_CHECKING:
    from isoglot.report.page import ReportData
    from isoglot.report.tables import Table


@app.command()
def report(
    folders: list[str] = typer.Argument(
        ...,
        metavar="DIR",
        help="Runs, folders with a results.json, results files, prepared corpora; NAME=DIR sets "
        "the name in tables and legends.",
    ),
    out: Path = typer.Option(
        Path("report.html"),
        "--out",
        "-o",
        help="Path of the HTML page.",
        callback=output_file_or_folder,
    ),
    markdown: Path | None = typer.Option(
        None, help="Also write the tables as Markdown.", callback=output_file
    ),
    latex: Path | None = typer.Option(
        None, help="Also write the tables as LaTeX.", callback=output_file
    ),
    export: Path | None = typer.Option(
        None,
        help="Also write every figure as SVG and PNG (PNG needs Chromium or Chrome) and every "
        "table as CSV into this folder.",
        callback=output_folder,
    ),
    baseline: str | None = typer.Option(
        None,
        metavar="NAME",
        help="The model that the leaderboard's marks compare the others with.",
    ),
    languages: str = LANGUAGES,
    title: str = typer.Option("Isoglot report", help="Heading of the page."),
) -> None:
    """Show scores, training and languages of one or many models on one HTML page.

    The page needs no network. Folders that differ in the seed alone (runs/a-seed1 runs/a-seed2), or
    are given one name (a=DIR a=DIR), are repetitions of one model: their mean is shown.
    """
    from isoglot.report.inputs import parse_named_folders
    from isoglot.report.page import read_report_data, report_page, report_tables
    from isoglot.report.tables import split_all, to_latex, to_markdown

    codes = parse_languages(languages)
    named = [one for folder in folders for one in parse_named_folders(folder)]
    data = read_report_data(named, codes)
    page = report_page(data, title=title, baseline=baseline)
    write_page(out / "report.html" if out.is_dir() else out, page)
    tables = report_tables(data, baseline=baseline)
    if markdown is not None:
        write_page(markdown, to_markdown(split_all(tables)))
    if latex is not None:
        write_page(latex, to_latex(split_all(tables)))
    if export is not None:
        _export(export, data, tables)


def _export(folder: Path, data: ReportData, tables: list[Table]) -> None:
    """Write figures and tables, and say what was written."""
    from isoglot.locks import lock_folder
    from isoglot.report.export import write_export
    from isoglot.report.page import report_figures

    with lock_folder(folder):
        svg, png, csv = write_export(folder, report_figures(data), tables)
    print(f"{folder}: {svg} figures as SVG, {png} as PNG, {csv} tables as CSV")
    if png < svg:
        print(
            "PNG files need Chromium or Chrome, and none was found; the page's own PNG buttons "
            "work in every browser."
        )
