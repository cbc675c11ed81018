"""The plan of an adaptation, and its files: OUT/plan/prepare.yaml, recipe.yaml and plan.json.

    AdaptPlan --write_plan--> OUT/plan --read_plan--> AdaptPlan, with the files as they are now

The files may be edited: they are used as they are when the command runs again.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from isoglot import json_text
from isoglot.adaptation.choices import Decision
from isoglot.atomic import write_json, write_text
from isoglot.corpus.pipeline.plan import PrepareConfig
from isoglot.errors import RecipeError
from isoglot.pretraining.config import Recipe
from isoglot.progress import duration

if TYPE_CHECKING:
    from isoglot.adaptation.choices import Mixture
    from isoglot.adaptation.findings import Findings
    from isoglot.adaptation.folder import AdaptFolder
    from isoglot.adaptation.resources import Trial

_PREPARE, _RECIPE, _PLAN = "prepare.yaml", "recipe.yaml", "plan.json"


class PlanBasis(NamedTuple):
    """What the number of steps was planned from; only the command that makes the plan has it."""

    began: float
    """When the command began, by `time.monotonic`."""
    findings: Findings
    mixture: Mixture
    trial: Trial


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptPlan:
    """What will be done; written to OUT/plan as prepare.yaml, recipe.yaml and plan.json."""

    decisions: tuple[Decision, ...]
    prepare: PrepareConfig
    """Settings of the corpus; its files are those of the user, other paths relative to OUT/plan."""
    recipe: Recipe
    """Settings of the training run."""
    new_words: int
    """Words to add to the vocabulary before preparing; 0: it stays."""
    grow_from: tuple[str, ...] = ()
    """Languages whose samples (OUT/sample) the new words are chosen from."""
    step_seconds: dict[str, float] = field(default_factory=dict)
    """Estimated time of each step: before, grow, prepare, train, choose, after, link, speed."""
    disk_bytes: int
    """Size of all files that will be written."""
    edited: tuple[str, ...] = ()
    """Files of the plan that were changed by hand."""
    basis: PlanBasis | None = field(default=None, compare=False, repr=False)
    """None in a plan that was read from its files."""

    @property
    def seconds(self) -> float:
        """Time of all steps."""
        return sum(self.step_seconds.values())


def write_plan(plan: AdaptPlan, folder: AdaptFolder) -> None:
    """Write prepare.yaml, recipe.yaml and, last, plan.json."""
    from isoglot.recipe import dump

    files = {_PREPARE: dump(plan.prepare), _RECIPE: dump(plan.recipe)}
    for name, text in files.items():
        write_text(folder.plan / name, text)
    content = {
        "decisions": [asdict(one) for one in plan.decisions],
        "new_words": plan.new_words,
        "grow_from": plan.grow_from,
        "step_seconds": plan.step_seconds,
        "train_tokens": _train_tokens(plan.recipe),
        "disk_bytes": plan.disk_bytes,
        "files": {name: _sha256(text.encode()) for name, text in files.items()},
    }
    write_json(folder.plan / _PLAN, content, indent=1)


def read_plan(folder: AdaptFolder) -> AdaptPlan | None:
    """The plan of an earlier start, with the files as they are now; none if there is none.

    Raises:
        RecipeError: a file of it cannot be read any more.
    """
    from isoglot.recipe import load_prepare, load_recipe

    if not (folder.plan / _PLAN).is_file():
        return None
    try:
        content = json_text.parse((folder.plan / _PLAN).read_bytes())
        decisions = tuple(Decision(**one) for one in content["decisions"])
        edited = _edited(folder, content["files"])
        known = {name: content[name] for name in ("new_words", "step_seconds", "disk_bytes")}
        grow_from = tuple(content["grow_from"])
        planned_tokens = content.get("train_tokens")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RecipeError(
            f"{folder.plan}: the plan cannot be read ({error}). Remove the folder to plan again."
        ) from error
    recipe = load_recipe(str(folder.plan / _RECIPE))
    if edited:
        seconds = known["step_seconds"]
        tokens = _train_tokens(recipe)
        seconds["train"] *= tokens / planned_tokens if tokens and planned_tokens else 1
        decisions = (*decisions, _edited_decision(edited, recipe, sum(seconds.values())))
    return AdaptPlan(
        decisions=decisions,
        prepare=load_prepare(folder.plan / _PREPARE),
        recipe=recipe,
        grow_from=grow_from,
        edited=edited,
        **known,
    )


def is_as_written(folder: AdaptFolder) -> bool:
    """Whether the files of the plan are there and nobody has changed them."""
    try:
        content = json_text.parse((folder.plan / _PLAN).read_bytes())
        return not _edited(folder, content["files"])
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _edited(folder: AdaptFolder, files: dict[str, str]) -> tuple[str, ...]:
    """Those of the files whose SHA-256 is another than the known one."""
    return tuple(
        name for name, known in files.items() if _sha256((folder.plan / name).read_bytes()) != known
    )


def _train_tokens(recipe: Recipe) -> int | None:
    """Places of all rows of all steps; none where a stage has no number of steps."""
    steps = [stage.steps for stage in recipe.stages if stage.steps is not None]
    whole = len(steps) == len(recipe.stages)
    return sum(steps) * recipe.batch.rows * recipe.batch.row_length if whole else None


def _edited_decision(files: tuple[str, ...], recipe: Recipe, seconds: float) -> Decision:
    steps = ", ".join(
        f"{stage.epochs:g} epochs" if stage.steps is None else f"{stage.steps:,} steps"
        for stage in recipe.stages
    )
    about = "" if _train_tokens(recipe) is None else f"; about {duration(seconds)}"
    return Decision(
        topic="EDITED",
        choice=f"{steps}, {recipe.batch.rows} rows of {recipe.batch.row_length} tokens{about}",
        reason=f"{' and '.join(files)} changed by hand; the choices above are those before",
    )


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
