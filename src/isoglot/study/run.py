"""Pre-train, fine-tune and score every recipe with every seed; finished runs are not repeated.

OUT/
    RECIPE-seed0/    the run: checkpoints, model, results.json, corpus.json
    study.md  study.json

A seed determines a run from initial weights to fine-tuning, so rows are paired by seed.

A control has the same model, text and tokens with MLM as the only objective. The gain of a recipe
over its control comes from its objectives; the gain over another checkpoint may come from the data
(Wu and Dredze, 2020, lose the gains of explicit alignment under such a test).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from isoglot.errors import RecipeError, nearest
from isoglot.evaluation.data import splits_to_score
from isoglot.evaluation.settings import FeatureConfig
from isoglot.finetuning.plan import FinetunePlan
from isoglot.finetuning.settings import FinetuneRequest
from isoglot.pretraining.config import Recipe
from isoglot.pretraining.requirements import check_run
from isoglot.study.compare import ALL_PAIRS, StudyTable, compare, write_study
from isoglot.study.jobs import Job, is_finished, run_jobs
from isoglot.study.shapes import with_micro_rows
from isoglot.tasks import FINE_TUNED_KINDS, find_task
from isoglot.tasks.base import DataFolders

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rich.console import Console

    from isoglot.corpus.engine.runner import Progress
    from isoglot.results import Score

ScoreKey = tuple[str, int, "str | None", str]
"""Task, version, scenario, language."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """The recipes, seeds and tasks of a comparison."""

    recipes: tuple[Recipe, ...]
    """The rows of the table."""
    seeds: tuple[int, ...]
    """Random seeds of pre-training and fine-tuning."""
    tasks: tuple[str, ...]
    """Names of tasks."""
    data: DataFolders
    """Folders of the tasks' files."""
    finetuning: FinetuneRequest = field(default_factory=FinetuneRequest)
    """Fine-tuning settings and test languages; its seeds are replaced by the study's."""
    baseline: str | None = None
    """The row that the others are compared with; none: the first; `all`: every pair of rows."""

    def __post_init__(self) -> None:
        names = [recipe.name for recipe in self.recipes]
        if self.baseline not in (None, ALL_PAIRS, *names):
            raise RecipeError(
                f"--baseline: no row has the name {self.baseline!r}; "
                f"{nearest(str(self.baseline), [*names, ALL_PAIRS])}"
            )
        for name in names:
            if names.count(name) > 1:
                raise RecipeError(f"two recipes of the study have the name {name!r}: rename one.")


def run_study(
    study: Study,
    out: Path,
    corpus_of: Callable[[Recipe], Path],
    console: Console,
    *,
    num_parallel: int = 1,
    progress: Progress | None = None,
) -> StudyTable:
    """Run a study in the folder `out`; returns its table, which is written there.

    `corpus_of` gives the folder of a recipe's prepared corpus; `num_parallel` runs are trained at
    the same time; `progress` is called while scoring.
    """
    folders = {
        (recipe.name, seed): out / f"{recipe.name.replace('/', '-')}-seed{seed}"
        for seed in study.seeds
        for recipe in study.recipes
    }
    for recipe in study.recipes:
        left = [f for seed in study.seeds if not is_finished(f := folders[recipe.name, seed])]
        if left:  # a missing model is said before a corpus is generated
            check_run(recipe, left[0], resume=True)
    wanted = _score_keys(study)
    corpora = {recipe.name: corpus_of(recipe) for recipe in study.recipes}
    recipes = with_micro_rows(study.recipes, corpora, out, console, num_parallel=num_parallel)
    jobs = [
        Job(
            recipe=replace(recipe, seed=seed),
            corpus=corpora[recipe.name],
            folder=folders[recipe.name, seed],
            tasks=study.tasks,
            data=study.data,
            request=replace(study.finetuning, seeds=(seed,)),
        )
        for seed in study.seeds
        for recipe in recipes
    ]
    scores: dict[str, list[Score]] = {recipe.name: [] for recipe in study.recipes}
    for job, found in zip(jobs, run_jobs(jobs, num_parallel, console, progress), strict=True):
        seed = job.recipe.seed
        # the file may have scores of other settings too
        scores[job.recipe.name] += [
            replace(score, seed=seed)
            for score in found
            if (score.task, score.version, score.scenario, score.language) in wanted
            and score.seed in (None, seed)
        ]
    table = compare(scores, baseline=study.baseline)
    write_study(table, out)
    return table


def _score_keys(study: Study) -> set[ScoreKey]:
    """The keys of the study's scores; errors in the request are raised before any training."""
    keys: set[ScoreKey] = set()
    for task in map(find_task, study.tasks):
        if task.kind in FINE_TUNED_KINDS:
            plan = FinetunePlan(task, study.data, study.finetuning)
            keys.update(*map(plan.score_keys, plan.trainings))
        else:
            scenario = FeatureConfig().scenario(task.kind)
            parts = splits_to_score(task, study.data, study.finetuning.scenario.targets)
            keys |= {(task.name, task.version, scenario, part.language) for part in parts}
    return keys
