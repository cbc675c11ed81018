"""`isoglot.prepare` and `isoglot.pretrain`: the two functions that take files and folders.

    isoglot.prepare("prepare.yaml", "corpora/mine")
    outcome = isoglot.pretrain("tiny", corpus="corpora/mine", out="runs/mine")
    results = isoglot.evaluate(outcome.model, ["tatoeba"], "eval")

`isoglot.evaluate` and `isoglot.finetune` are defined in `evaluation/evaluate.py` and
`finetuning/finetune.py`. The verbs of the command line call the same functions.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from isoglot.errors import RecipeError
from isoglot.folders import RUNS, corpus_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.console import Console

    from isoglot.corpus import Corpus, Manifest
    from isoglot.corpus.engine.runner import Progress, Timings
    from isoglot.corpus.pipeline.plan import PrepareConfig
    from isoglot.pretraining.config import Recipe
    from isoglot.pretraining.run import Outcome
    from isoglot.pretraining.train_step import StepResult


def prepare(
    file: str | Path | PrepareConfig,
    out: str | Path,
    *,
    settings: Sequence[str] = (),
    workers: int = 1,
    cluster: str = "local",
    dropped: str | Path | None = None,
    progress: Progress | None = None,
    timings: Timings | None = None,
    overwrite: bool = False,
) -> Manifest:
    """Clean and tokenize raw text and translations into a corpus that training reads.

        manifest = isoglot.prepare("prepare.yaml", "corpora/mine", workers=8)

    Args:
        file: a prepare file (docs/prepare.md), or its settings.
        out: folder of the corpus. Finished work is kept; an interrupted preparation continues.
        settings: changes of a file given by path, `path.to.setting=value`.
        workers: processes that clean and tokenize.
        cluster: `local`, `auto` (the Ray cluster of this machine) or `ray://HOST:PORT`.
        dropped: folder for every dropped line with its reason; none: reasons are only counted.
        progress: called with (stage, done, total).
        timings: filled with the seconds of each stage.
        overwrite: replace a finished corpus of other settings or files, which is refused otherwise.

    Returns:
        The corpus's manifest: sources, languages, counts of kept and dropped lines.
    """
    from isoglot.corpus.pipeline.run import prepare as prepare_corpus
    from isoglot.recipe import load_prepare

    base = Path()
    if isinstance(file, str | Path):
        base = Path(file).parent
        file = load_prepare(Path(file), settings)
    if dropped is not None:
        file = replace(file, dropped_folder=str(Path(dropped).resolve()))
    return prepare_corpus(
        file,
        out,
        base=base,
        workers=workers,
        cluster=cluster,
        progress=progress,
        timings=timings,
        overwrite=overwrite,
    )


def pretrain(
    recipe: str | Path | Recipe,
    corpus: str | Path | Corpus | None = None,
    out: str | Path | None = None,
    *,
    settings: Sequence[str] = (),
    resume: bool = False,
    console: Console | None = None,
    on_step: Callable[[StepResult], None] | None = None,
) -> Outcome:
    """Train all stages of a recipe on a corpus and export the encoder as a Hugging Face folder.

        outcome = isoglot.pretrain("xlm", "corpora/mine", settings=["stages.0.steps=1000"])

    Args:
        recipe: name of a built-in recipe, path of a recipe file, or a loaded recipe.
        corpus: a prepared corpus or its folder; none: the recipe's own.
        out: folder of the run, new unless `resume` is set; none: runs/RECIPE.
        settings: changes of a recipe given by name or path, `path.to.setting=value`.
        resume: continue from the newest valid checkpoint in `out`.
        console: where progress is shown; none: standard error.
        on_step: called with each step; on a GPU after the next one was launched.

    Returns:
        How the run ended; `model` is the exported folder, none if the run was stopped.
    """
    from rich.console import Console as TerminalConsole

    from isoglot.corpus import Corpus
    from isoglot.pretraining.requirements import check_run
    from isoglot.pretraining.run import pretrain as run
    from isoglot.recipe import dump, load_recipe

    loaded = load_recipe(str(recipe), settings) if isinstance(recipe, str | Path) else recipe
    console = console or TerminalConsole(stderr=True)
    folder = Path(RUNS) / loaded.name if out is None else Path(out)
    if not isinstance(corpus, Corpus):
        # a missing model is said before a corpus is generated
        check_run(loaded, folder, resume=resume)
        corpus = Corpus.open(resolve_corpus(loaded, corpus, console))
    return run(
        loaded,
        corpus,
        folder,
        resume=resume,
        name=loaded.name,
        recipe_text=dump(loaded),
        console=console,
        on_step=on_step,
    )


def resolve_corpus(recipe: Recipe, given: str | Path | None, console: Console) -> Path:
    """The folder of the corpus: `given`, or the recipe's own; a missing testbed is generated."""
    if given is not None:
        return corpus_folder(given)
    name = recipe.corpus or ""
    if name == "testbed" or name.startswith("testbed-"):
        from isoglot.demo.testbed_corpus import named_corpus

        return named_corpus(name, Path("corpora") / name, console)
    if recipe.corpus is None:
        raise RecipeError(
            f"the recipe {recipe.name!r} names no corpus: give one with --corpus FOLDER "
            f"(`isoglot prepare` makes it)."
        )
    return corpus_folder(recipe.corpus)
