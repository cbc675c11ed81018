"""`isoglot study`: compare recipes over several seeds, with a control and a significance test."""

from __future__ import annotations

from pathlib import Path

import typer

from isoglot.cli import app, options
from isoglot.cli.outputs import output_folder
from isoglot.locks import lock_folder

_EXAMPLE = r"""
Examples:

    isoglot study tiny --control --tasks testbed-nli,testbed-ner \
      --protocol testbed

    isoglot study a.yaml b.yaml --corpus corpora/mine --tasks xnli,tatoeba \
      --data eval --seeds 5
"""

_CORPUS = typer.Option(None, help="Folder of a prepared corpus.", show_default="the recipe's own")
_CONTROL = typer.Option(False, "--control", help="Add MLM on the same data as the first row.")
_SETTINGS = typer.Option(
    [],
    "--set",
    metavar="K=V",
    help="Change a setting of every recipe, such as stages.0.steps=500. May be repeated.",
)
_FINETUNE_SETTINGS = typer.Option(
    [],
    "--set-finetune",
    metavar="K=V",
    help="Change a setting of the protocol, such as epochs=2. May be repeated.",
)
_BASELINE = typer.Option(
    None,
    metavar="RECIPE",
    help="Row to compare the others with, or `all`: every pair of rows.",
    show_default="the first",
)
_JOBS = typer.Option(
    1, "--jobs", "-j", min=1, max=256, help="Runs trained at the same time, as GPUs allow."
)
_OUT = typer.Option(
    Path("studies/study"), "--out", "-o", help="Folder of the study.", callback=output_folder
)


@app.command(epilog=_EXAMPLE)
def study(
    recipes: list[str] = typer.Argument(..., help="Names or files of recipes, one row each."),
    tasks: str = options.TASKS,
    data: list[Path] = options.DATA,
    corpus: Path | None = _CORPUS,
    seeds: int = typer.Option(3, min=1, max=1000, help="Number of random seeds of each recipe."),
    control: bool = _CONTROL,
    scenario: str = options.SCENARIO,
    protocol: str = options.PROTOCOL,
    languages: str = options.LANGUAGES,
    selection: str | None = options.SELECTION,
    settings: list[str] = _SETTINGS,
    finetune_settings: list[str] = _FINETUNE_SETTINGS,
    baseline: str | None = _BASELINE,
    jobs: int = _JOBS,
    out: Path = _OUT,
) -> None:
    """Pre-train recipes with several seeds, score them, and print one table.

    Each cell is mean ± standard deviation over seeds. Rows are compared task by task with a
    paired bootstrap over seeds and languages (3 seeds or more). Finished runs and scores are not
    computed again.
    """
    from rich.console import Console

    from isoglot.api import resolve_corpus
    from isoglot.cli.console import StageProgress, disable_progress_bars
    from isoglot.recipe import load_recipe
    from isoglot.study.compare import markdown
    from isoglot.study.controls import with_controls
    from isoglot.study.run import Study, run_study

    disable_progress_bars()
    rows = [load_recipe(name, settings) for name in recipes]
    console = Console(stderr=True)
    with lock_folder(out):
        found = run_study(
            Study(
                recipes=tuple(with_controls(rows) if control else rows),
                seeds=tuple(range(seeds)),
                tasks=tuple(options.split_names(tasks)),
                data=tuple(data),
                finetuning=options.finetune_request(
                    scenario,
                    protocol,
                    seeds=seeds,
                    targets=options.parse_languages(languages),
                    selection=selection,
                    changes=finetune_settings,
                ),
                baseline=baseline,
            ),
            out,
            lambda recipe: resolve_corpus(recipe, corpus, console),
            console,
            num_parallel=jobs,
            # two bars cannot share a terminal: pre-training has one, scoring prints lines
            progress=StageProgress(Console(stderr=True, force_terminal=False)),
        )
    print(f"{markdown(found)}\n{out}/study.md, study.json, and the runs with their results")
