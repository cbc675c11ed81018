"""`isoglot study`: compare recipes over several seeds, with a control and a significance test."""

from __future__ import annotations

from pathlib import Path

import typer

from isoglot.cli import app, options

_EXAMPLE = """
Examples:

    isoglot study tiny --control --tasks testbed-nli,testbed-ner --protocol testbed

    isoglot study a.yaml b.yaml --corpus corpora/mine --tasks xnli,tatoeba --data eval --seeds 5
"""


@app.command(epilog=_EXAMPLE)
def study(
    recipes: list[str] = typer.Argument(..., help="Names or files of recipes, one row each."),
    tasks: str = options.TASKS,
    data: Path = options.DATA,
    corpus: Path | None = typer.Option(
        None, help="Folder of a prepared corpus.", show_default="the recipe's own"
    ),
    seeds: int = typer.Option(3, min=1, help="Number of random seeds of each recipe."),
    control: bool = typer.Option(
        False, "--control", help="Add MLM on the same data as the first row."
    ),
    scenario: str = options.SCENARIO,
    protocol: str = options.PROTOCOL,
    languages: str = options.LANGUAGES,
    selection: str | None = options.SELECTION,
    settings: list[str] = options.SETTINGS,
    out: Path = typer.Option(Path("studies/study"), "--out", "-o", help="Folder of the study."),
) -> None:
    """Pre-train recipes with several seeds, score them, and print one table.

    Each cell is mean ± standard deviation over seeds; each row is compared with the first by a
    paired bootstrap over seeds and languages. Finished runs and scores are not computed again.
    """
    from rich.console import Console

    from isoglot.api import resolve_corpus
    from isoglot.cli.console import StageProgress, disable_progress_bars
    from isoglot.recipe import load_recipe
    from isoglot.study.compare import markdown
    from isoglot.study.run import Study, run_study, with_controls

    disable_progress_bars()
    rows = [load_recipe(name) for name in recipes]
    console = Console(stderr=True)
    found = run_study(
        Study(
            recipes=tuple(with_controls(rows) if control else rows),
            seeds=tuple(range(seeds)),
            tasks=tuple(options.split_names(tasks)),
            data=data,
            finetuning=options.finetune_request(
                scenario,
                protocol,
                seeds=seeds,
                targets=options.parse_languages(languages),
                selection=selection,
                changes=settings,
            ),
        ),
        out,
        lambda recipe: resolve_corpus(recipe, corpus, console),
        console,
        # two bars cannot share a terminal: pre-training has one, scoring prints lines
        progress=StageProgress(Console(stderr=True, force_terminal=False)),
    )
    print(markdown(found), end="")
    print(f"\n{out / 'study.md'}, {out / 'study.json'}; runs and their results in {out}")
