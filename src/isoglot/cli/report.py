"""`isoglot report`: results, runs and corpora as one HTML page."""

from __future__ import annotations

from pathlib import Path

import typer

from isoglot.cli import app


@app.command()
def report(
    folders: list[str] = typer.Argument(
        ...,
        metavar="DIR",
        help="Runs, folders with a results.json, results files, prepared corpora; NAME=DIR to say "
        "the name in tables and legends.",
    ),
    out: Path = typer.Option(Path("report.html"), "--out", "-o", help="The page."),
    markdown: Path | None = typer.Option(None, help="Write the tables as Markdown, too."),
    latex: Path | None = typer.Option(None, help="Write the tables as LaTeX, too."),
    languages: str = typer.Option(
        "",
        "--languages",
        "-l",
        help="Only scores in these languages, with commas; or a paper's (tatoeba-36, ppa-xnli).",
        show_default="all",
    ),
    title: str = typer.Option("Isoglot report", help="The page's heading."),
) -> None:
    """Show scores, training and languages of one or many models on one HTML page.

    The page opens from disk, without a network. Folders of one name (runs/a-seed1 runs/a-seed2, or
    a=DIR a=DIR) are repetitions of one model: their mean is shown.
    """
    from isoglot.report import latex as as_latex
    from isoglot.report import markdown as as_markdown
    from isoglot.report import named
    from isoglot.report.page import collect, page, tables
    from isoglot.tasks.subsets import codes_of

    codes = codes_of(languages.split(",")) if languages else None
    material = collect([named(folder) for folder in folders], codes)
    _write(out / "report.html" if out.is_dir() else out, page(material, title=title))
    for file, written in ((markdown, as_markdown.markdown), (latex, as_latex.latex)):
        if file is not None:
            _write(file, written(tables(material)))


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    print(f"{file} ({len(text.encode()) / 1e6:.1f} MB)")
