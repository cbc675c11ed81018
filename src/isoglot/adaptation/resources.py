"""The time and the disk that a plan takes, from what was measured while looking and in a trial."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from isoglot.adaptation.choices import Decision
from isoglot.adaptation.knowledge_plan import scored_tokens
from isoglot.errors import IsoglotError
from isoglot.pretraining.costs import disk_of_run, seconds_of_run, steps_for_hours
from isoglot.progress import duration

if TYPE_CHECKING:
    from pathlib import Path

    from isoglot.adaptation.config import AdaptConfig
    from isoglot.adaptation.findings import DataFacts, Findings
    from isoglot.pretraining.config import Recipe
    from isoglot.pretraining.costs import RunCosts

_FORWARD = 3
"""A training step takes as long as this many forward passes over its tokens."""
_TOKEN_BYTES = 5
"""Bytes of a token in a corpus, with its indices."""
_VALIDATIONS = 10
"""Validations, and checkpoints, of a run."""
_MANY_STEPS = 10**9
_VALIDATION_SHARE = 0.1
"""Most time of validations and checkpoints, as a share of that of the steps."""


class Trial(NamedTuple):
    """What was measured by preparing a small corpus and training on it for a few steps."""

    rows: int
    """Rows of a step: fewer than planned where contrast needs all at a time, and they do not fit
    the memory."""
    micro_rows: int
    """Rows at a time."""
    reason: str
    """Why so many."""
    costs: RunCosts
    prepare_seconds: float
    """Time to prepare the small corpus, most of which does not depend on its size."""

    @property
    def tokens_per_second(self) -> float:
        """Speed of training."""
        stage = self.costs.stages[0]
        return stage.step_tokens / stage.step_seconds

    def scoring_seconds(self, models: int, tokens: float) -> float:
        """Time to read so many models and to encode so many tokens with them, all together."""
        return models * self.costs.build_seconds + tokens / (_FORWARD * self.tokens_per_second)


def seconds_without_training(
    findings: Findings, trial: Trial, *, grows: bool, workers: int, heldout_share: float
) -> dict[str, float]:
    """Time of each step but training.

    Preparing reads the data as looking did, and tokenizes them. For the scores before and after, a
    held-out line is encoded as often as its longest hidden word has tokens, about twice the mean;
    after training, held-out pairs are encoded once more, by the sentence-transformers model.

    Args:
        findings: what `look` found.
        trial: what was measured.
        grows: whether words are added to the vocabulary.
        workers: processes that prepare.
        heldout_share: share of the pairs of the corpus that are development pairs.
    """
    costs = trial.costs
    pairs = sum(one.heldout * _line_tokens(one) for one in findings.pairs.values())
    tokens = pairs
    for code, data in findings.text.items():
        passes = 2 * findings.languages[code].tokens_per_word
        tokens += passes * data.heldout * _line_tokens(data)
    scores = trial.scoring_seconds(1, tokens)
    vectors = trial.scoring_seconds(1, pairs) if findings.pairs else 0.0
    growing = {"grow": 2 * costs.build_seconds + costs.export_seconds} if grows else {}
    reading = (findings.read_seconds + findings.tokenize_seconds) / workers
    linking = {}
    if findings.knowledge is not None:
        encoded = 2 * scored_tokens(findings.knowledge)  # by two models
        linking = {"link": trial.scoring_seconds(2, encoded)}
    return {
        "before": scores,
        **growing,
        "prepare": trial.prepare_seconds + reading,
        "choose": _choose_seconds(findings, trial, heldout_share),
        "after": scores + vectors,
        **linking,
        "speed": _speed_seconds(findings, trial),
    }


def _choose_seconds(findings: Findings, trial: Trial, heldout_share: float) -> float:
    """Both models on the development pairs; then the poolings, and the folder for sentences."""
    from isoglot.adaptation.development import MAX_PAIRS

    tokens = sum(
        min(MAX_PAIRS, heldout_share * one.lines) * _line_tokens(one)
        for one in findings.pairs.values()
    )
    models = 3 if findings.pairs else 1  # without pairs only the export reads a model
    return trial.scoring_seconds(models, 3 * tokens) + trial.costs.export_seconds


def _speed_seconds(findings: Findings, trial: Trial) -> float:
    """Both models encode the same held-out sentences several times."""
    from isoglot.adaptation.scores import TIMED_SENTENCES, TIMINGS

    lines = sum(one.heldout for one in findings.text.values())
    tokens = sum(one.heldout * _line_tokens(one) for one in findings.text.values())
    timed = min(TIMED_SENTENCES, lines) * tokens / max(1, lines)
    return trial.scoring_seconds(2, 2 * (TIMINGS + 1) * timed)


def _line_tokens(data: DataFacts) -> float:
    """Mean tokens of a line, or of both sides of a pair."""
    return data.tokens / max(1, data.lines)


def scheduled(recipe: Recipe, steps: int, costs: RunCosts | None = None) -> Recipe:
    """The recipe with this many steps, and up to ten validations and checkpoints on the way.

    Where they would take more than a tenth of the time of the steps, there are fewer; early
    stopping needs all.
    """
    number = _VALIDATIONS
    if costs is not None and recipe.early_stopping is None:
        stage = costs.stages[0]
        each = stage.validation_seconds + costs.checkpoint_seconds
        affordable = _VALIDATION_SHARE * steps * stage.step_seconds / max(each, 1e-9)
        number = max(1, min(number, int(affordable)))
    every = -(-steps // number)
    return replace(
        recipe,
        stages=(replace(recipe.stages[0], steps=steps),),
        checkpoint=replace(recipe.checkpoint, every_steps=every),
        logging=replace(recipe.logging, validate_every_steps=every),
    )


def fill_hours(recipe: Recipe, trial: Trial, config: AdaptConfig, other_seconds: float) -> Recipe:
    """The recipe with the steps that fill what the other steps leave of the hours.

    Raises:
        IsoglotError: they leave nothing.
    """
    assert config.hours is not None
    left = 3600 * config.hours - other_seconds
    if left <= 0:
        raise IsoglotError(
            f"--hours {config.hours:g}: preparing and scoring alone take "
            f"{duration(other_seconds)}. Give more hours, or hold out fewer lines (--heldout, now "
            f"{config.heldout:,})."
        )
    # the number of steps decides on validations, which take time, too
    recipe = scheduled(recipe, _MANY_STEPS, trial.costs)
    for _ in range(4):
        (steps,) = steps_for_hours(recipe, trial.costs, (1,), left)
        recipe = scheduled(recipe, steps, trial.costs)
    return recipe


def train_seconds(recipe: Recipe, trial: Trial) -> float:
    """Time of training, with validations, checkpoints and the export."""
    return seconds_of_run(recipe, trial.costs, (_steps(recipe),))


def disk_bytes(findings: Findings, recipe: Recipe, trial: Trial, *, grows: bool) -> int:
    """The corpus, the run, and two or three folders of models."""
    tokens = sum(one.tokens for one in (*findings.text.values(), *findings.pairs.values()))
    if findings.knowledge is not None:  # the store, and its joins while it is written
        tokens += sum(one.characters for one in findings.knowledge.languages.values())
    models = (3 if grows else 2) * trial.costs.export_bytes
    return _TOKEN_BYTES * tokens + disk_of_run(recipe, trial.costs, (_steps(recipe),)) + models


def check_disk(needed: int, free: int, place: Path) -> None:
    """Refuse to begin what the disk cannot hold."""
    if needed > free:
        raise IsoglotError(
            f"{place}: the corpus, checkpoints and models need {needed / 1e9:,.1f} GB, and "
            f"{free / 1e9:,.1f} GB are free there. Free disk space or choose another --out."
        )


def time_decision(steps: dict[str, float], disk: int, findings: Findings) -> Decision:
    """How long everything takes."""
    names = ("before", "grow", "prepare", "train", "choose", "after", "link", "speed")
    order = [name for name in names if name in steps]
    parts = ", ".join(f"{name} {duration(steps[name])}" for name in order)
    machine = findings.machine
    where = machine.gpus[0] if machine.gpus else f"{machine.cores} CPU cores"
    return Decision(
        topic="time and disk",
        choice=f"{duration(sum(steps.values()))}, {disk / 1e9:,.2f} GB",
        reason=f"{parts}, measured on {where}; {machine.disk_free_bytes / 1e9:,.0f} GB are free",
    )


def _steps(recipe: Recipe) -> int:
    steps = recipe.stages[0].steps
    assert steps is not None
    return steps
