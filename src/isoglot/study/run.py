"""Pre-train, fine-tune and score every recipe with every seed; finished runs are not repeated.

OUT/
    RECIPE-seed0/    the run: checkpoints, model, results.json
    study.md  study.json

A seed determines a run from initial weights to fine-tuning, so rows are paired by seed.

A control has the same model, text and tokens with MLM as the only objective. The gain of a recipe
over its control comes from its objectives; the gain over another checkpoint may come from the data
(Wu and Dredze, 2020, lose the gains of explicit alignment under such a test).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from isoglot.corpus import Corpus
from isoglot.errors import IsoglotError, RecipeError
from isoglot.evaluation.data import splits_to_score
from isoglot.evaluation.evaluate import evaluate_tasks
from isoglot.evaluation.settings import FeatureConfig
from isoglot.finetuning.finetune import finetune_tasks
from isoglot.finetuning.plan import FinetunePlan
from isoglot.finetuning.settings import FinetuneRequest
from isoglot.objectives import find_objective
from isoglot.pretraining.config import Recipe
from isoglot.pretraining.run import pretrain
from isoglot.recipe import dump
from isoglot.study.compare import Row, compare, write_study
from isoglot.tasks import FINE_TUNED_KINDS, find_task

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.console import Console

    from isoglot.corpus.engine.runner import Progress
    from isoglot.results import Score

ScoreKey = tuple[str, int, "str | None", str]
"""Task, version, scenario, language."""
_MLM = "mlm"


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """The recipes, seeds and tasks of a comparison."""

    recipes: tuple[Recipe, ...]
    """The rows; the others are compared with the first."""
    seeds: tuple[int, ...]
    """Random seeds of pre-training and fine-tuning."""
    tasks: tuple[str, ...]
    """Names of tasks."""
    data: Path
    """Folder of the tasks' files."""
    finetuning: FinetuneRequest = field(default_factory=FinetuneRequest)
    """Fine-tuning settings and test languages; its seeds are replaced by the study's."""

    def __post_init__(self) -> None:
        names = [recipe.name for recipe in self.recipes]
        for name in names:
            if names.count(name) > 1:
                raise RecipeError(f"two recipes of the study have the name {name!r}: rename one.")


def run_study(
    study: Study,
    out: Path,
    corpus_of: Callable[[Recipe], Path],
    console: Console,
    *,
    progress: Progress | None = None,
) -> list[Row]:
    """Run a study in the folder `out`; returns the rows of its table, which is written there.

    `corpus_of` gives the folder of a recipe's prepared corpus; `progress` is called while scoring.
    """
    wanted = _score_keys(study)
    scores: dict[str, list[Score]] = {recipe.name: [] for recipe in study.recipes}
    for seed in study.seeds:
        for recipe in study.recipes:
            folder = out / f"{recipe.name.replace('/', '-')}-seed{seed}"
            model = _pretrained(replace(recipe, seed=seed), corpus_of(recipe), folder, console)
            request = replace(study.finetuning, seeds=(seed,))
            found = score_model(
                model, study.tasks, study.data, request, folder / "results.json", progress
            )
            # the file may have scores of other settings too
            scores[recipe.name] += [
                replace(score, seed=seed)
                for score in found
                if (score.task, score.version, score.scenario, score.language) in wanted
                and score.seed in (None, seed)
            ]
    rows = compare(scores)
    write_study(rows, out)
    return rows


def score_model(
    model: Path,
    tasks: Sequence[str],
    data: Path,
    request: FinetuneRequest,
    out: Path,
    progress: Progress | None,
) -> tuple[Score, ...]:
    """Fine-tune or evaluate a model on each task; returns all scores of the results file."""
    finetuned = [name for name in tasks if find_task(name).kind in FINE_TUNED_KINDS]
    evaluated = [name for name in tasks if name not in finetuned]
    scores: tuple[Score, ...] = ()
    if evaluated:
        languages = request.scenario.targets
        scores = evaluate_tasks(
            model, evaluated, data, FeatureConfig(), out=out, languages=languages, progress=progress
        ).scores
    if finetuned:
        scores = finetune_tasks(model, finetuned, data, request, out=out, progress=progress).scores
    return scores


def mlm_control(recipe: Recipe) -> Recipe:
    """The recipe with every objective replaced by MLM on the same streams."""
    readable = find_objective(_MLM).reads
    stages = []
    for stage in recipe.stages:
        for name, stream in stage.streams.items():
            if stream.kind not in readable:
                raise RecipeError(
                    f"MLM cannot read the stream {name!r} ({stream.kind}) of {recipe.name}, so "
                    "--control cannot use the same text. Write the control as a recipe of its own."
                )
        streams = {name: replace(s, objectives=(_MLM,)) for name, s in stage.streams.items()}
        stages.append(replace(stage, streams=streams))
    objectives = {name: found for name, found in recipe.objectives.items() if name == _MLM}
    name = f"{recipe.name}-control"
    return replace(recipe, name=name, stages=tuple(stages), objectives=objectives)


def with_controls(recipes: Sequence[Recipe]) -> list[Recipe]:
    """The controls of recipes, then the recipes; shared or given controls appear once."""
    known = {recipe.fingerprint() for recipe in recipes}
    controls: dict[str, Recipe] = {}
    for recipe in recipes:
        control = mlm_control(recipe)
        if control.fingerprint() not in known:
            controls.setdefault(control.fingerprint(), control)
    return [*controls.values(), *recipes]


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


def _pretrained(recipe: Recipe, corpus: Path, folder: Path, console: Console) -> Path:
    """The model of a run, pre-trained now unless it is finished."""
    text = dump(recipe)
    file = folder / "recipe.yaml"
    if file.is_file() and file.read_text(encoding="utf-8") != text:
        raise RecipeError(
            f"{folder} has a run of {recipe.name} with other settings ({file}). Choose another "
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
        console=console,
    )
    if outcome.model is None:
        raise IsoglotError(f"{folder} was stopped. Repeat the command to continue.")
    return outcome.model
