"""`isoglot.prepare`, `isoglot.pretrain` and `isoglot.estimate`, which take files and folders.

    isoglot.prepare("prepare.yaml", "corpora/mine")
    outcome = isoglot.pretrain("tiny", corpus="corpora/mine", out="runs/mine")
    results = isoglot.evaluate(outcome.model, ["tatoeba"], "eval")

`isoglot.evaluate` and `isoglot.finetune` are defined in `evaluation/evaluate.py` and
`finetuning/finetune.py`. The verbs of the command line call the same functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isoglot.argument_names import public
from isoglot.errors import RecipeError, nearest
from isoglot.folders import RUNS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.console import Console

    from isoglot.adaptation.request import AdaptConfig
    from isoglot.adaptation.run import AdaptOutcome
    from isoglot.corpus import Corpus, Manifest
    from isoglot.corpus.engine.runner import Progress, Timings
    from isoglot.corpus.pipeline.plan import PrepareConfig
    from isoglot.pretraining.config import Recipe
    from isoglot.pretraining.estimates.estimate import RunEstimate
    from isoglot.pretraining.estimates.memory_estimate import MemoryEstimate
    from isoglot.pretraining.run import Outcome
    from isoglot.pretraining.train_step import StepResult

    Names = str | Path | Sequence[str | Path]
    """One name of data, or several."""


@public
def adapt(
    encoder: str | Path | AdaptConfig,
    out: str | Path = "adapted",
    *,
    text: Mapping[str, Names] | None = None,
    pairs: Mapping[str, Names] | None = None,
    dry_run: bool = False,
    push_to_hub: str | None = None,
    console: Console | None = None,
    **settings: Any,
) -> AdaptOutcome:
    """Make an encoder better in your languages: look, plan, train, score before and after.

        outcome = isoglot.adapt(
            "xlm-roberta-base",
            "adapted",
            text={"sw": "raw/sw/*.txt", "en": "raw/en.txt"},
            pairs={"en-sw": "raw/en-sw.tsv"},
            hours=2,
        )
        print(outcome.scores.worse, outcome.model)

    Args:
        encoder: a Hugging Face folder, a run or a name on the hub; a YAML file with all settings;
            or settings.
        out: folder for everything. Finished steps are kept; the same call continues.
        text: language -> its text: a file, pattern, folder, URL or name, or several of them.
        pairs: pair of languages (en-sw) -> its translations, named in the same way.
        dry_run: write and print the plan, and stop there.
        push_to_hub: name of a private repository (USER/NAME) for the model; another one for
            sentence-transformers gets the same name with `-sentence-transformers`.
        console: where facts, the plan and progress are shown; none: standard error.
        settings: other settings (`hours`, `heldout`, `vocabulary`, ...; docs/adapt.md).

    Returns:
        How it ended: scores before and after, the model's folders and the page; `finished` is
        False if it was asked to stop.
    """
    from rich.console import Console as TerminalConsole

    from isoglot.adaptation.run import adapt as run

    config = _adapt_config(encoder, {"text": text, "pairs": pairs}, settings)
    console = console or TerminalConsole(stderr=True)
    return run(config, Path(out), console=console, dry_run=dry_run, push_to_hub=push_to_hub)


def _adapt_config(
    encoder: str | Path | AdaptConfig,
    data: Mapping[str, Mapping[str, Names] | None],
    settings: Mapping[str, Any],
) -> AdaptConfig:
    """The settings of an adaptation: given, read from a file, or made from names; then changed."""
    from isoglot.adaptation.request import AdaptConfig, load_request

    known = [one.name for one in fields(AdaptConfig)]
    for name in settings:
        if name not in known:
            raise RecipeError(f"adapt has no setting {name!r}: {nearest(name, known)}")
    changes = dict(settings)
    for kind, named in data.items():
        if named is None:
            continue
        if not isinstance(named, Mapping):
            example = '{"en-sw": "FILE"}' if kind == "pairs" else '{"sw": "FILE"}'
            raise RecipeError(f"{kind}: {named!r:.80} names no language. Write {kind}={example}.")
        changes[kind] = {
            code: (str(one),) if isinstance(one, str | Path) else tuple(map(str, one))
            for code, one in named.items()
        }
    if isinstance(encoder, AdaptConfig):
        return replace(encoder, **changes)
    if Path(encoder).suffix in (".yaml", ".yml"):
        return replace(load_request(Path(encoder)), **changes)
    return AdaptConfig(encoder=str(encoder), **changes)


@public
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


@public
def pretrain(
    recipe: str | Path | Recipe,
    corpus: str | Path | Corpus | None = None,
    out: str | Path | None = None,
    *,
    settings: Sequence[str] = (),
    resume: bool = False,
    hours: float | None = None,
    started: float | None = None,
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
        hours: time for everything from now on: the stages get the steps that fill it, in the
            recipe's proportions; none: the recipe's steps. A resumed run keeps its steps.
        started: when the hours began, by `time.monotonic`; none: now.
        console: where progress is shown; none: standard error.
        on_step: called with each step; on a GPU after the next one was launched.

    Returns:
        How the run ended; `model` is the exported folder, none if the run was stopped.
    """
    from rich.console import Console as TerminalConsole

    from isoglot.pretraining.estimates.measuring import time_budget
    from isoglot.pretraining.run import pretrain as run
    from isoglot.recipe import dump

    budget = time_budget(hours, started)
    console = console or TerminalConsole(stderr=True)
    loaded, opened, folder = _inputs(recipe, corpus, out, settings, console, resume=resume)
    return run(
        loaded,
        opened,
        folder,
        resume=resume,
        name=loaded.name,
        recipe_text=dump,
        console=console,
        on_step=on_step,
        budget=budget,
    )


@public
def estimate(
    recipe: str | Path | Recipe,
    corpus: str | Path | Corpus | None = None,
    out: str | Path | None = None,
    *,
    settings: Sequence[str] = (),
    hours: float | None = None,
    console: Console | None = None,
) -> RunEstimate:
    """Measure what a recipe will take on a corpus: rows that fit, steps, passes, time, disk.

        print(isoglot.estimate("xlm", "corpora/mine").seconds)

    Args:
        recipe: name of a built-in recipe, path of a recipe file, or a loaded recipe.
        corpus: a prepared corpus or its folder; none: the recipe's own.
        out: folder of the run that is planned; nothing is left there.
        settings: changes of a recipe given by name or path, `path.to.setting=value`.
        hours: time for everything; none: the recipe's steps.
        console: where progress is shown; none: standard error.
    """
    from rich.console import Console as TerminalConsole

    from isoglot.pretraining.estimates.estimate import estimate_run

    console = console or TerminalConsole(stderr=True)
    loaded, opened, folder = _inputs(recipe, corpus, out, settings, console, resume=True)
    return estimate_run(loaded, opened, console, hours=hours, folder=folder)


@public
def estimate_memory(
    recipe: str | Path | Recipe,
    corpus: str | Path | Corpus | None = None,
    *,
    settings: Sequence[str] = (),
    processes: int = 1,
    console: Console | None = None,
) -> MemoryEstimate:
    """Calculate the GPU memory that a recipe will need, without building its model.

        print(isoglot.estimate_memory("xlm", "corpora/mine").peak)

    Args:
        recipe: name of a built-in recipe, path of a recipe file, or a loaded recipe.
        corpus: a prepared corpus or its folder; none: the recipe's own.
        settings: changes of a recipe given by name or path, `path.to.setting=value`.
        processes: GPUs of the run.
        console: where progress is shown; none: standard error.
    """
    from rich.console import Console as TerminalConsole

    from isoglot.corpus import Corpus
    from isoglot.pretraining.estimates import memory_estimate
    from isoglot.recipe import load_recipe

    console = console or TerminalConsole(stderr=True)
    loaded = load_recipe(str(recipe), settings) if isinstance(recipe, str | Path) else recipe
    if not isinstance(corpus, Corpus):
        corpus = Corpus.open(resolve_corpus(loaded, corpus, console))
    return memory_estimate.estimate_memory(loaded, corpus, processes=processes)


def _inputs(
    recipe: str | Path | Recipe,
    corpus: str | Path | Corpus | None,
    out: str | Path | None,
    settings: Sequence[str],
    console: Console,
    *,
    resume: bool,
) -> tuple[Recipe, Corpus, Path]:
    """The recipe, the opened corpus and the folder of a run."""
    from isoglot.corpus import Corpus
    from isoglot.pretraining.requirements import check_run
    from isoglot.recipe import load_recipe

    loaded = load_recipe(str(recipe), settings) if isinstance(recipe, str | Path) else recipe
    folder = Path(RUNS) / loaded.name if out is None else Path(out)
    if not isinstance(corpus, Corpus):
        # a missing model is said before a corpus is generated
        check_run(loaded, folder, resume=resume)
        corpus = Corpus.open(resolve_corpus(loaded, corpus, console))
    return loaded, corpus, folder


def resolve_corpus(recipe: Recipe, given: str | Path | None, console: Console) -> Path:
    """The folder of the corpus: `given`, or the recipe's own; a missing testbed is generated.

    That of a corpus by URL is in the cache of remote files.
    """
    from isoglot.corpus.storage.corpus import local_folder

    if given is not None:
        return local_folder(given)
    name = recipe.corpus or ""
    if name == "testbed" or name.startswith("testbed-"):
        from isoglot.demo.testbed_corpus import named_corpus

        return named_corpus(name, Path("corpora") / name, console)
    if recipe.corpus is None:
        raise RecipeError(
            f"the recipe {recipe.name!r} names no corpus: give one with --corpus FOLDER "
            f"(`isoglot prepare` makes it)."
        )
    return local_folder(recipe.corpus)
