"""The plan of an adaptation: every choice with its reason, and the files that carry it out.

    findings, settings --choices, vocabulary--> prepare file, recipe --measured steps--> AdaptPlan

It is written to OUT/plan as prepare.yaml, recipe.yaml and plan.json. The files may be edited: they
are used as they are when the command runs again.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from isoglot import json_text
from isoglot.adaptation.choices import (
    Decision,
    choose_cleaning,
    choose_mixture,
    choose_optimizer,
    choose_rows,
)
from isoglot.adaptation.heldout import LANGUAGE_CONFIDENCE
from isoglot.adaptation.inputs import find_inputs, sources_of
from isoglot.adaptation.knowledge_plan import (
    knowledge_readings,
    knowledge_shares,
    knowledge_source,
    with_knowledge,
)
from isoglot.adaptation.measure import SampleTrial
from isoglot.adaptation.resources import (
    Trial,
    check_disk,
    disk_bytes,
    fill_hours,
    scheduled,
    seconds_without_training,
    time_decision,
    train_seconds,
)
from isoglot.adaptation.vocabulary import choose_growth
from isoglot.atomic import write_json, write_text
from isoglot.batching.loader import LoaderConfig
from isoglot.corpus.cleaning.cleaner import CleanConfig
from isoglot.corpus.deduplication.hashing import DuplicatesConfig
from isoglot.corpus.pipeline.plan import PrepareConfig
from isoglot.corpus.tokenization.build import TokenizerConfig
from isoglot.errors import RecipeError
from isoglot.models.config import ExportConfig, ModelConfig
from isoglot.pretraining.config import Recipe, StageConfig
from isoglot.pretraining.early_stopping import EarlyStoppingConfig
from isoglot.progress import duration

if TYPE_CHECKING:
    from collections.abc import Callable

    from isoglot.adaptation.choices import Mixture
    from isoglot.adaptation.config import AdaptConfig
    from isoglot.adaptation.findings import Findings, KnowledgeFacts
    from isoglot.adaptation.folder import AdaptFolder
    from isoglot.adaptation.vocabulary import Growth

_PREPARE, _RECIPE, _PLAN = "prepare.yaml", "recipe.yaml", "plan.json"
_DEVELOPMENT = (500, 0.005, 0.05)
"""Development lines of the smallest language that are wanted, and the least and greatest share."""


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


def make_plan(
    findings: Findings,
    config: AdaptConfig,
    folder: AdaptFolder,
    measure: Callable[[Recipe], Trial] | None = None,
    *,
    spent_seconds: float = 0.0,
) -> AdaptPlan:
    """Choose everything that the user did not.

    Args:
        findings: what `look` found.
        config: the settings.
        folder: the folder of the adaptation, with the samples in it.
        measure: tries a recipe for a few steps; none: on a corpus of the samples.
        spent_seconds: time that the command has taken until now, of the hours.

    Raises:
        IsoglotError: the disk or the hours do not suffice.
    """
    began = time.monotonic() - spent_seconds
    growth = choose_growth(findings, config, folder)
    shares = knowledge_shares(findings)
    mixture, knowledge = with_knowledge(
        choose_mixture(findings, config, knowledge_share=sum(one.share for one in shares.values())),
        findings.knowledge,
        shares,
    )
    confidence, cleaning = choose_cleaning(findings, LANGUAGE_CONFIDENCE)
    prepare = plan_prepare(findings, config, folder, growth, confidence)
    recipe, decisions = plan_recipe(findings, config, folder, growth, mixture)
    trial = (measure or SampleTrial(findings, folder, config.hours))(recipe)
    batch = replace(recipe.batch, rows=trial.rows, micro_rows=trial.micro_rows)
    recipe = scheduled(replace(recipe, batch=batch), mixture.num_steps(batch), trial.costs)
    steps = seconds_without_training(
        findings,
        trial,
        grows=growth.words > 0,
        workers=config.workers or findings.machine.cores,
        heldout_share=prepare.heldout_share,
    )
    if config.hours is not None:
        spent = time.monotonic() - began
        recipe = fill_hours(recipe, trial, config, sum(steps.values()) + spent)
    steps["train"] = train_seconds(recipe, trial)
    disk = disk_bytes(findings, recipe, trial, grows=growth.words > 0)
    check_disk(disk, findings.machine.disk_free_bytes, folder.path)
    return AdaptPlan(
        decisions=(
            mixture.objectives_decision,
            *knowledge,
            growth.decision,
            mixture.languages_decision,
            cleaning,
            *decisions,
            steps_decision(config, mixture, recipe, trial, findings.knowledge),
            time_decision(steps, disk, findings),
        ),
        prepare=prepare,
        recipe=recipe,
        new_words=growth.words,
        grow_from=growth.languages,
        step_seconds=steps,
        disk_bytes=disk,
        basis=PlanBasis(began, findings, mixture, trial),
    )


def plan_prepare(
    findings: Findings,
    config: AdaptConfig,
    folder: AdaptFolder,
    growth: Growth,
    confidence: float | None,
) -> PrepareConfig:
    """Settings of the corpus; paths below OUT are relative to OUT/plan."""
    inputs = find_inputs(config, folder.downloads)
    smallest = min(one.lines for one in (*findings.text.values(), *findings.pairs.values()))
    wanted, low, high = _DEVELOPMENT
    tokenizer = f"../{folder.encoder.name}" if growth.words else findings.encoder.folder
    kept_out = f"../{folder.heldout.name}/{folder.kept_out.name}"
    return PrepareConfig(
        sources=sources_of(inputs.data),
        tokenizer=TokenizerConfig(folder=tokenizer),
        clean=CleanConfig(language_confidence=confidence),
        duplicates=DuplicatesConfig(scope="language"),
        exclude=(kept_out, *map(str, inputs.tests)),
        heldout_share=round(min(high, max(low, wanted / max(1, smallest))), 4),
        heldout_seed=config.seed,
        knowledge=None if findings.knowledge is None else knowledge_source(findings.knowledge),
    )


def plan_recipe(
    findings: Findings,
    config: AdaptConfig,
    folder: AdaptFolder,
    growth: Growth,
    mixture: Mixture,
) -> tuple[Recipe, tuple[Decision, ...]]:
    """The recipe with the steps that the data suggest, and its decisions."""
    from isoglot.models import language_embeddings

    encoder = Path(findings.encoder.folder)
    used: Any = language_embeddings.used_on(encoder)
    start = folder.encoder.absolute() if growth.words else encoder
    optimizer, rate = choose_optimizer(findings, growth.words)
    batch, rows = choose_rows(findings, mixture.tokens)
    steps = mixture.num_steps(batch)
    recipe = Recipe(
        name="adapted",
        summary=f"{findings.encoder.name} adapted to {', '.join(config.languages)}",
        corpus=str(folder.corpus.absolute()),
        model=ModelConfig(
            init_from=str(start),
            language_embeddings=used or "none",
        ),
        stages=(StageConfig(steps=steps, streams=mixture.streams),),
        objectives=mixture.objectives,
        batch=batch,
        loader=LoaderConfig(num_workers=_loader_workers(findings)),
        optimizer=optimizer,
        early_stopping=EarlyStoppingConfig() if config.early_stopping else None,
        export=ExportConfig(
            checkpoint="best" if config.early_stopping else "last", license=config.license
        ),
        seed=config.seed,
    )
    return scheduled(recipe, steps), (rows, rate)


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
            f"{folder.plan}: is not a plan any more ({error}). Remove the folder to plan again."
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


def _loader_workers(findings: Findings) -> int:
    """Processes that build batches: on a GPU some of the cores, on a CPU none."""
    return min(4, findings.machine.cores - 1) if findings.machine.gpus else 0


def steps_decision(
    config: AdaptConfig,
    mixture: Mixture,
    recipe: Recipe,
    trial: Trial,
    facts: KnowledgeFacts | None,
) -> Decision:
    """How many steps there are, and why."""
    steps = recipe.stages[0].steps or 0
    total = steps * trial.costs.stages[0].step_tokens
    whole = mixture.text_tokens + mixture.pair_tokens
    passes = (1 - mixture.knowledge_share) * total / max(1, whole)
    if config.hours is None:
        reason = f"{whole / 1e6:,.1f}M tokens of data get {mixture.passes} passes"
    else:
        reason = f"they fill the {config.hours:g} hours after preparing and scoring"
        if passes > 2 * mixture.passes:
            reason += f"; the data suggest {mixture.passes} passes: add data, or stop early"
    return Decision(
        topic="steps",
        choice=f"{steps:,} steps, {total / 1e6:,.1f}M tokens: {_readings(mixture, facts, total)}",
        reason=f"{reason}; {trial.tokens_per_second:,.0f} tokens a second measured; "
        f"{recipe.batch.micro_rows} rows at a time: {trial.reason}",
    )


def _readings(mixture: Mixture, facts: KnowledgeFacts | None, total: float) -> str:
    """How often text, pairs and knowledge are read when so many tokens are trained on."""
    contrast = mixture.streams.get("parallel")
    shares = sum(stream.share for stream in mixture.streams.values())
    of_pairs = contrast.share / shares if contrast is not None else 0.0
    of_text = 1 - of_pairs - mixture.knowledge_share
    told = [("text", of_text * total / max(1, mixture.text_tokens))]
    if contrast is not None:
        told.append(("pairs", of_pairs * total / max(1, mixture.pair_tokens)))
    told += knowledge_readings(facts, mixture.streams, total)
    return ", ".join(f"{name} {times:.1f} times" for name, times in told)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
