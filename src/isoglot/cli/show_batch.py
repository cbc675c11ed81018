"""`isoglot show batch`: the rows that a recipe feeds the model, decoded."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from isoglot.cli.console import disable_progress_bars, print_table, write_page
from isoglot.cli.outputs import output_file
from isoglot.cli.show import show


@show.command()
def batch(
    name: str = typer.Argument(..., help="A built-in recipe (`isoglot show recipes`) or a file."),
    corpus: str | None = typer.Option(
        None,
        "--corpus",
        "-c",
        help="A prepared corpus: a folder, or a URL.",
        show_default="the recipe's own; tiny recipes generate theirs",
    ),
    stage: int = typer.Option(0, min=0, help="The stage: N of `stages.N` in the recipe."),
    step: int = typer.Option(1, min=1, max=1000, help="The step of the stage."),
    micro_batch: int = typer.Option(0, min=0, help="The micro-batch of the step, from 0."),
    rows: int = typer.Option(2, min=1, help="Rows to show, of each kind."),
    settings: list[str] = typer.Option(
        [], "--set", help="Change a setting: path.to.setting=value. May be repeated."
    ),
    html: Path | None = typer.Option(
        None, help="Also write an HTML page, with attention masks.", callback=output_file
    ),
) -> None:
    """Show a batch of a recipe: its rows decoded, masked tokens with their targets, the counts.

    Masked tokens are reversed, with the target after an arrow; slots are in brackets; ^ marks a
    position that an objective's loss reads. No model is loaded: tokens that a model would generate
    first (btmlm, backtranslate) are not there yet.
    """
    from rich.console import Console

    from isoglot.api import resolve_corpus
    from isoglot.corpus import Corpus
    from isoglot.explore.batch_html import COUNT_HEADINGS, counts
    from isoglot.explore.batch_page import batch_page, row_lines
    from isoglot.explore.drawn_batch import decode_batch
    from isoglot.explore.stage_batches import open_stage
    from isoglot.recipe import load_recipe

    disable_progress_bars()
    recipe = load_recipe(name, settings)
    opened = Corpus.open(resolve_corpus(recipe, corpus, Console(stderr=True)))
    found = open_stage(recipe, opened, stage, fetch_models=True)
    drawn = decode_batch(found.micro_batch(step, micro_batch), found)
    shown = [row for row in drawn.rows if row.sequences and row.number < rows]
    console = Console(width=None if sys.stdout.isatty() else 200, highlight=False)
    for row in shown:
        for line in row_lines(row):
            console.print(line, soft_wrap=True)
        print()
    print_table(COUNT_HEADINGS, counts(drawn))
    if html is not None:
        print()
        title = f"{recipe.name}, stage {stage}, step {step}, micro-batch {micro_batch}"
        write_page(html, batch_page(drawn, shown, title=title))
