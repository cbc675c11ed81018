"""The demo's last word: one page with the table, the curves, and the languages' shared space."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from isoglot.demo.world import TEST_PAIRS

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from isoglot.demo.jobs import Outcome


def write_page(outcomes: list[Outcome], corpus: Path, file: Path, terminal: Console) -> None:
    """Write the report of the demo's runs, with exhibits of one model of each kind."""
    try:
        import jinja2  # noqa: F401
        import sklearn  # noqa: F401
    except ImportError:
        terminal.print("For a page of all this: pip install 'isoglot[report]', and run it again.")
        return
    from isoglot.evaluate.exhibits import ExhibitConfig, exhibits_of_folder
    from isoglot.evaluate.run import read_pairs
    from isoglot.report import Named
    from isoglot.report.page import collect, page

    pairs = read_pairs(sorted((corpus.parent / "raw/test").glob("*.tsv")), most=TEST_PAIRS)
    shown = ExhibitConfig(sentences=100)
    for _, rows in groupby(sorted(outcomes, key=lambda row: row.label), lambda row: row.label):
        model = next(rows).model
        exhibits_of_folder(model, pairs, shown).write(model.parent / "exhibits.json")
    inputs = [Named(row.label, row.model.parent) for row in outcomes]
    title = "Isoglot's demo: one checkpoint, continued in three ways"
    file.write_text(page(collect([*inputs, Named("corpus", corpus)]), title=title), "utf-8")
    terminal.print(f"All of it on one page: {file}", highlight=False, soft_wrap=True)
