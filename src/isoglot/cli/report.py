"""`isoglot report`: results, runs and corpora as one HTML page."""

from __future__ import annotations

from pathlib import Path

import typer

from isoglot.cli import app
from isoglot.cli.console import write_page
from isoglot.cli.options import LANGUAGES, parse_languages
from isoglot.cli.outputs import output_file, output_file_or_folder


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
    languages: str = LANGUAGES,
    title: str = typer.Option("Isoglot report", help="Heading of the page."),
) -> None:
    """Show scores, training and languages of one or many models on one HTML page.

    The page needs no network. Folders that differ in the seed alone (runs/a-seed1 runs/a-seed2), or
    are given one name (a=DIR a=DIR), are repetitions of one model: their mean is shown.
    """
    from isoglot.report.inputs import parse_named_folder
    from isoglot.report.page import read_report_data, report_page, report_tables
    from isoglot.report.tables import to_latex, to_markdown

    codes = parse_languages(languages)
    data = read_report_data([parse_named_folder(folder) for folder in folders], codes)
    write_page(out / "report.html" if out.is_dir() else out, report_page(data, title=title))
    if markdown is not None:
        write_page(markdown, to_markdown(report_tables(data)))
    if latex is not None:
        write_page(latex, to_latex(report_tables(data)))
