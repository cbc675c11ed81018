"""Pre-train, fine-tune and score every recipe with every seed; what is finished is not run again.

OUT/
    RECIPE-seed0/    the run: checkpoints, model, results.json
    study.md  study.json

A seed decides a run from its first weights to its last fine-tuning, so seeds pair the rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from isoglot.corpus import Corpus
from isoglot.errors import IsoglotError, RecipeError
from isoglot.evaluate.cells import parts_to_score
from isoglot.evaluate.run import evaluate_tasks
from isoglot.evaluate.settings import FeatureSettings
from isoglot.finetune.asked import Finetuning
from isoglot.finetune.prepared import Prepared
from isoglot.finetune.run import finetune_and_score
from isoglot.pretrain.run import pretrain
from isoglot.recipe import dump
from isoglot.recipe.schema import Recipe
from isoglot.study.compare import Row, compare
from isoglot.study.table import write_study
from isoglot.tasks import FINE_TUNED, find_task

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.console import Console

    from isoglot.results import Score


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """What is compared, and on what."""

    recipes: tuple[Recipe, ...]
    """The rows; the first is what the others are compared with."""
    seeds: tuple[int, ...]
    tasks: tuple[str, ...]
    data: Path
    """Where the tasks' files lie."""
    finetuning: Finetuning = field(default_factory=Finetuning)
    """How tasks are learned and in which languages they are scored; its seeds are the study's."""

    def __post_init__(self) -> None:
        names = [recipe.name for recipe in self.recipes]
        for name in names:
            if names.count(name) > 1:
                raise RecipeError(
                    f"two recipes of the study are called {name!r}: give one another name."
                )


def study(
    asked: Study,
    out: Path,
    corpus_of: Callable[[Recipe], Path],
    terminal: Console,
    *,
    progress: Callable[[str, int, int | None], None] | None = None,
) -> list[Row]:
    """Run a study into a folder; gives the rows of its table, which is written there too.

    Args:
        asked: recipes, seeds and tasks.
        out: the study's folder.
        corpus_of: the folder of the prepared corpus that a recipe is trained on.
        terminal: where pre-training shows itself.
        progress: told (what, done, all) of fine-tuning and scoring.
    """
    wanted = _cells(asked)
    scores: dict[str, list[Score]] = {recipe.name: [] for recipe in asked.recipes}
    for seed in asked.seeds:
        for recipe in asked.recipes:
            folder = out / f"{recipe.name.replace('/', '-')}-seed{seed}"
            model = _model(replace(recipe, seed=seed), corpus_of(recipe), folder, terminal)
            found = _scores(asked, model, folder / "results.json", seed, progress)
            # the file may hold more: other settings', or somebody else's
            scores[recipe.name] += [
                replace(score, seed=seed)
                for score in found
                if _cell(score) in wanted and score.seed in (None, seed)
            ]
    rows = compare(scores)
    write_study(rows, out)
    return rows


def _cells(asked: Study) -> set[tuple[str, int, str | None, str]]:
    """What the study's scores are of; faults in what is asked are found before any training."""
    cells: set[tuple[str, int, str | None, str]] = set()
    for task in map(find_task, asked.tasks):
        if task.kind in FINE_TUNED:
            prepared = Prepared(task, asked.data, asked.finetuning)
            cells.update(*map(prepared.cells, prepared.plans))
        else:
            scenario = FeatureSettings().scenario(task.kind)
            parts = parts_to_score(task, asked.data, asked.finetuning.scenario.targets)
            cells |= {(task.name, task.version, scenario, part.language) for part in parts}
    return cells


def _cell(score: Score) -> tuple[str, int, str | None, str]:
    return score.task, score.version, score.scenario, score.language


def _model(recipe: Recipe, corpus: Path, folder: Path, terminal: Console) -> Path:
    """The model of a run: the finished one, or a new one."""
    text = dump(recipe)
    kept = folder / "recipe.yaml"
    if kept.is_file() and kept.read_text(encoding="utf-8") != text:
        raise RecipeError(
            f"{folder} holds a run of {recipe.name} with other settings ({kept}). Choose another "
            "folder with --out, or remove it."
        )
    if (folder / "model/config.json").is_file():
        return folder / "model"
    outcome = pretrain(
        recipe,
        Corpus.open(corpus),
        folder,
        resume=folder.exists(),
        name=recipe.name,
        recipe_text=text,
        terminal=terminal,
    )
    if outcome.model is None:
        raise IsoglotError(f"{folder} was stopped. Give the same command again to go on.")
    return outcome.model


def _scores(
    asked: Study,
    model: Path,
    file: Path,
    seed: int,
    progress: Callable[[str, int, int | None], None] | None,
) -> Sequence[Score]:
    asking = replace(asked.finetuning, seeds=(seed,))
    return evaluate_tasks(
        model,
        asked.tasks,
        asked.data,
        FeatureSettings(),
        out=file,
        languages=asking.scenario.targets,
        fine_tuner=partial(finetune_and_score, asked=asking, progress=progress),
        progress=progress,
    ).scores
