"""Make the plan of an adaptation: every choice with its reason.

    findings, settings --choices, vocabulary--> prepare file, recipe --measured steps--> AdaptPlan

`plan_files.py` writes it to OUT/plan.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isoglot.adaptation.choices import (
    Decision,
    choose_cleaning,
    choose_mixture,
    choose_optimizer,
    choose_rows,
)
from isoglot.adaptation.heldout import LANGUAGE_CONFIDENCE
from isoglot.adaptation.inputs import find_inputs, sources_of
from isoglot.adaptation.knowledge_plan import knowledge_shares, knowledge_source, with_knowledge
from isoglot.adaptation.plan_files import AdaptPlan, PlanBasis
from isoglot.adaptation.resources import (
    Trial,
    check_disk,
    disk_bytes,
    seconds_without_training,
    time_decision,
    train_seconds,
)
from isoglot.adaptation.training_steps import fill_hours, scheduled, steps_decision
from isoglot.adaptation.vocabulary import choose_growth, trained_data
from isoglot.batching.loader import LoaderConfig
from isoglot.corpus.cleaning.cleaner import CleanConfig
from isoglot.corpus.deduplication.hashing import DuplicatesConfig
from isoglot.corpus.pipeline.plan import PrepareConfig
from isoglot.corpus.tokenization.build import TokenizerConfig
from isoglot.models.config import ExportConfig, ModelConfig
from isoglot.pretraining.config import Recipe, StageConfig
from isoglot.pretraining.monitoring.early_stopping import EarlyStoppingConfig

if TYPE_CHECKING:
    from collections.abc import Callable

    from isoglot.adaptation.choices import Mixture
    from isoglot.adaptation.findings import Findings
    from isoglot.adaptation.folder import AdaptFolder
    from isoglot.adaptation.request import AdaptConfig
    from isoglot.adaptation.vocabulary import Growth

_DEVELOPMENT = (500, 0.005, 0.05)
"""Development lines of the smallest language that are wanted, and the least and greatest share."""


def make_plan(
    findings: Findings,
    config: AdaptConfig,
    folder: AdaptFolder,
    measure: Callable[[Recipe], Trial],
    *,
    spent_seconds: float = 0.0,
) -> AdaptPlan:
    """Choose everything that the user did not.

    Args:
        findings: what `look` found.
        config: the settings.
        folder: the folder of the adaptation, with the samples in it.
        measure: tries a recipe for a few steps.
        spent_seconds: time that the command has taken until now, of the hours.

    Raises:
        IsoglotError: the disk or the hours do not suffice.
    """
    began = time.monotonic() - spent_seconds
    growth = choose_growth(findings, config, folder)
    trained = trained_data(findings, growth)
    shares = knowledge_shares(trained)
    mixture, knowledge = with_knowledge(
        choose_mixture(trained, config, knowledge_share=sum(one.share for one in shares.values())),
        findings.knowledge,
        shares,
    )
    confidence, cleaning = choose_cleaning(findings, LANGUAGE_CONFIDENCE)
    prepare = plan_prepare(findings, config, folder, growth, confidence)
    recipe, decisions = plan_recipe(findings, config, folder, growth, mixture)
    trial = measure(recipe)
    if trial.rows < recipe.batch.rows:
        rows = choose_rows(findings, mixture.tokens, fitting=trial.rows)[1]
        decisions = tuple(rows if one.topic == rows.topic else one for one in decisions)
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


def _loader_workers(findings: Findings) -> int:
    """Processes that build batches: on a GPU some of the cores, on a CPU none."""
    return min(4, findings.machine.cores - 1) if findings.machine.gpus else 0
