"""`isoglot study`: recipes side by side, with seeds, a control and a test of the differences."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from isoglot.cli import app
from isoglot.cli.asking import (
    LANGUAGES,
    PROTOCOL,
    SCENARIO,
    SELECTION,
    SETTINGS,
    finetuning,
    split,
    targets_of,
)

if TYPE_CHECKING:
    from isoglot.recipe.schema import Recipe

_EXAMPLE = """
Examples:

    isoglot study tiny --control --tasks testbed-nli,testbed-ner --protocol testbed

    isoglot study a.yaml b.yaml --corpus corpora/mine --tasks xnli,tatoeba --data eval --seeds 5
"""


@app.command(epilog=_EXAMPLE)
def study(
    recipes: list[str] = typer.Argument(..., help="Built-in recipes or files; a row each."),
    tasks: str = typer.Option(
        ..., "--tasks", "-t", help="Tasks (`isoglot show tasks`), with commas: xnli,tatoeba."
    ),
    data: Path = typer.Option(
        Path("eval"), "--data", "-d", help="Folder of the tasks' files (docs/evaluate.md)."
    ),
    corpus: Path | None = typer.Option(
        None, help="A prepared corpus; left out, each recipe's own (tiny: the testbed)."
    ),
    seeds: int = typer.Option(3, min=1, help="Seeds to pre-train and fine-tune each recipe with."),
    control: bool = typer.Option(
        False, "--control", help="Add the control: the first row is MLM on the same data."
    ),
    scenario: str = SCENARIO,
    protocol: str = PROTOCOL,
    languages: str = LANGUAGES,
    selection: str | None = SELECTION,
    settings: list[str] = SETTINGS,
    out: Path = typer.Option(Path("studies/study"), "--out", "-o", help="Folder of the study."),
) -> None:
    """Pre-train recipes with several seeds, score them, and print one table.

    Each cell is the mean ± sd over seeds; each row is compared with the first by a paired bootstrap
    over seeds and languages. Runs and scores that are finished are not made again.
    """
    from rich.console import Console

    from isoglot.cli.own_corpus import corpus_for
    from isoglot.cli.progress import Stages, without_bars_of_others
    from isoglot.recipe import load_recipe
    from isoglot.study import Study, markdown, with_controls
    from isoglot.study import study as run

    without_bars_of_others()
    rows = [load_recipe(name) for name in recipes]
    asked = Study(
        recipes=tuple(with_controls(rows) if control else rows),
        seeds=tuple(range(seeds)),
        tasks=tuple(split(tasks)),
        data=data,
        finetuning=finetuning(
            scenario,
            protocol,
            seeds=seeds,
            targets=targets_of(languages),
            selection=selection,
            changes=settings,
        ),
    )
    terminal = Console(stderr=True)

    def corpus_of(recipe: Recipe) -> Path:
        return corpus_for(recipe, corpus, terminal)

    # two bars cannot share a terminal: pre-training has its own, scoring says a line a stage
    stages = Stages(Console(stderr=True, force_terminal=False))
    found = run(asked, out, corpus_of, terminal, progress=stages)
    print(markdown(found), end="")
    print(f"\n{out / 'study.md'}, {out / 'study.json'}; runs and their results beside them")
